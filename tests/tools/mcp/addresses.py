"""Forms of addresses that are not public, as attackers, libraries and name servers write them; seeded, never random."""

import ipaddress
import random
import socket
from collections.abc import Sequence
from typing import Any

import anyio

PUBLIC = "93.184.216.34"
PUBLIC_6 = "2606:2800:220:1:248:1893:25c8:1946"

CLOSED_4 = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "255.255.255.255/32",
    "169.254.169.254/32",
    "127.0.0.1/32",
    "168.63.129.16/32",
]
CLOSED_6 = [
    "::/128",
    "::1/128",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
    "fd00:ec2::254/128",
    "2001::/32",
    "2002::/16",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "::ffff:0:0/96",
    "::/96",
    "2001:db8::/32",
    "100::/64",
    "4000::/3",
]


def inside(rng: random.Random, network: str) -> Any:
    net = ipaddress.ip_network(network)
    return net[rng.randrange(min(net.num_addresses, 2**64))]


def spell_4(rng: random.Random, address: ipaddress.IPv4Address) -> str:
    """One of the many ways to write an IPv4 address that some library or other understands."""
    a, b, c, d = address.packed
    number = int(address)
    odd = [
        str(address), f"{address}.", str(number), hex(number), f"0{number:o}", f"0x{number:08X}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}", f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}", f"{a}.{(b << 16) + (c << 8) + d}",
        f"{a}.{b}.{(c << 8) + d}", f"{a:03d}.{b:03d}.{c:03d}.{d:03d}", f"{a}.0x{b:x}.0{c:o}.{d}",
        f"{a + 256}.{b}.{c}.{d}", f"{number + 2**32}", str(address).translate({48 + i: 0xFF10 + i for i in range(10)}),
        str(address).replace(".", "。"), str(address).replace(".", "%2e"), "".join(f"%{ord(x):02x}" for x in str(address)),
        f"[::ffff:{address}]", f"[::ffff:{a:x}{b:02x}:{c:x}{d:02x}]", f"[::{address}]", f"[64:ff9b::{address}]",
        f"[2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1]", f"[2001:0:{a:02x}{b:02x}:{c:02x}{d:02x}::1]",
        f"[0:0:0:0:0:ffff:{address}]", f"[2606:4700::5efe:{address}]", f"[::ffff:0:{address}]", f"[{address}]",
    ]  # fmt: skip
    return rng.choice(odd)


def spell_6(rng: random.Random, address: ipaddress.IPv6Address) -> str:
    zone = rng.choice(["", "", "%25lo", "%25eth0", "%lo"])
    return f"[{rng.choice([address.compressed, address.exploded, address.compressed.upper()])}{zone}]"


NAMES = [
    "localhost",
    "LOCALHOST",
    "localhost.",
    "a.localhost",
    "metadata",
    "metadata.google.internal",
    "x.internal",
    "printer.local",
    "host.lan",
    "ip6-localhost",
    "localhost.localdomain",
    "kubernetes.default.svc.cluster.local",
    "box.home.arpa",
    "intranet",
    "127.0.0.1.evil-resolver.example",
    "private.example",
    "mixed.example",
    "loop6.example",
    "mapped.example",
]
ANSWERS = {
    "127.0.0.1.evil-resolver.example": ["127.0.0.1"],
    "private.example": ["10.1.2.3"],
    "mixed.example": [PUBLIC, "127.0.0.1"],
    "loop6.example": ["::1"],
    "mapped.example": ["::ffff:127.0.0.1"],
}


def hosts(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.6:
        return spell_4(rng, inside(rng, rng.choice(CLOSED_4)))
    return spell_6(rng, inside(rng, rng.choice(CLOSED_6))) if kind < 0.85 else rng.choice(NAMES)


def urls(rng: random.Random, port: int) -> str:
    """A whole address, with the tricks that are played around a host."""
    host = hosts(rng)
    front = rng.choice(["", "", "", "user@", f"{PUBLIC}@", "example.com%40", "example.com#@", "example.com\\@"])
    scheme = rng.choice(["https", "https", "http", "HTTP", "ftp", "//"])
    start = f"{scheme}://" if scheme != "//" else "//"
    return f"{start}{front}{host}:{port}{rng.choice(['', '/', '/mcp', '/mcp?x=1', '/../', '/#f'])}"


async def system_like(host: str, port: int) -> Sequence[str]:
    """The system's look-up for what it reads as a number; a table for names, so that no name server is asked."""
    if host in ANSWERS:
        return ANSWERS[host]
    if host.endswith("localhost") or host.startswith(("localhost", "ip6-localhost")):
        return ["127.0.0.1", "::1"]
    rows = await anyio.getaddrinfo(host, port, flags=socket.AI_NUMERICHOST)
    return [str(row[4][0]) for row in rows]
