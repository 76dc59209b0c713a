"""Which network addresses an MCP server may have: public ones, and this machine where the catalogue says so.

Rules and words only. `judge` decides about one IP address, `check_host` about a host as it is written, `check_url` gives
the first readable refusal of a catalogue's address. None of them opens anything: what is connected to is decided once
more, with the address itself, in `outbound`, because only the address that is used is worth checking.

Ranges are listed here rather than taken from `ipaddress.is_global`, whose answers differ between versions of Python.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from urllib.parse import urlsplit

from pitboss.core.errors import UserError

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port → the IP addresses it answers to, as text."""

LONGEST_URL = 2_048
LOOPBACK = "this machine itself"

_CLOSED_4: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "this network"),
    ("10.0.0.0/8", "a private network"),
    ("100.64.0.0/10", "a provider's inner network"),
    ("127.0.0.0/8", LOOPBACK),
    ("168.63.129.16/32", "a cloud's own service"),
    ("169.254.0.0/16", "link-local, where clouds keep their metadata"),
    ("172.16.0.0/12", "a private network"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "for documentation"),
    ("192.88.99.0/24", "a tunnel into another network"),
    ("192.168.0.0/16", "a private network"),
    ("198.18.0.0/15", "for benchmarks"),
    ("198.51.100.0/24", "for documentation"),
    ("203.0.113.0/24", "for documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
)
_CLOSED_6: tuple[tuple[str, str], ...] = (
    ("::/128", "unspecified"),
    ("::1/128", LOOPBACK),
    ("::/96", "an IPv4 address in disguise"),
    ("::ffff:0:0/96", "an IPv4 address in disguise"),
    ("::ffff:0:0:0/96", "an IPv4 address in disguise"),
    ("64:ff9b::/96", "an IPv4 address in disguise"),
    ("64:ff9b:1::/48", "an IPv4 address in disguise"),
    ("2001::/32", "a tunnel into another network"),
    ("2001::/23", "reserved"),
    ("2001:db8::/32", "for documentation"),
    ("2002::/16", "a tunnel into another network"),
    ("3fff::/20", "for documentation"),
    ("fc00::/7", "a private network"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "a private network"),
    ("ff00::/8", "multicast"),
)
_NETWORKS_4 = tuple((IPv4Network(network), reason) for network, reason in _CLOSED_4)
_NETWORKS_6 = tuple((IPv6Network(network), reason) for network, reason in _CLOSED_6)
_OPEN_6 = IPv6Network("2000::/3")
"""All that has been given out as public; the rest is reserved and may become anything."""
_ISATAP = (0x00005EFE, 0x02005EFE)

_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*")
_NUMERIC = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+))*")
_INNER = ("localhost", "internal", "local", "localdomain", "lan", "home", "corp", "intranet", "private", "home.arpa")
"""Endings of names that belong to a machine or a network of one's own."""
_UNSEEN = re.compile(r"[\x00-\x20\x7f\\]")


def judge(address: str) -> str:
    """Why an IP address is not a public one; empty if it is. Text that is no address at all is not."""
    try:
        found = _parse(address)
    except ValueError:
        return "not an IP address"
    if isinstance(found, IPv4Address):
        return next((reason for network, reason in _NETWORKS_4 if found in network), "")
    if found.scope_id is not None:
        return "bound to one network card"
    for network, reason in _NETWORKS_6:
        if found in network:
            return reason
    if found not in _OPEN_6:
        return "reserved"
    # An interface of this form hands the packet to the IPv4 address in its last four bytes.
    return "a tunnel into another network" if (int(found) >> 32) & 0xFFFFFFFF in _ISATAP else ""


def is_loopback(address: str) -> bool:
    """Whether an IP address is this machine itself, in its plain spellings alone."""
    return judge(address) == LOOPBACK


def literal(host: str) -> str | None:
    """The IP address that a host is, if it is written as one. Brackets and a last dot are as good as none."""
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host.removesuffix(".")
    try:
        return str(_parse(bare))
    except ValueError:
        return None


def check_host(host: str, loopback: bool = False) -> str:
    """Why a host as written may not be connected to; empty if it may be looked up, or is an address that is allowed."""
    address = literal(host)
    if address is not None:
        reason = judge(address)
        return "" if not reason or (loopback and reason == LOOPBACK) else reason
    name = host.lower().removesuffix(".")
    if not name.isascii() or "%" in name:
        return "not written in plain letters and digits"
    if _NUMERIC.fullmatch(name) or ":" in name or name.startswith("["):
        return "an IP address in an unusual spelling"
    if not _NAME.fullmatch(name):
        return "not the name of a host"
    if name == "localhost" and loopback:
        return ""
    if "." not in name or any(name == inner or name.endswith(f".{inner}") for inner in _INNER):
        return "a name inside one's own network"
    return ""


def check_url(url: str, loopback: bool = False) -> str:
    """The address if a server of the catalogue may have it; else `UserError` with the first thing that is wrong."""
    problem = _problem(url, loopback)
    if problem:
        raise UserError(f"{_short(url)}: {problem}", "an address is https://host/path, and public")
    return url


def _problem(url: str, loopback: bool) -> str:
    if not url or len(url) > LONGEST_URL or not url.isascii() or _UNSEEN.search(url):
        return "not an address: empty, too long, or with characters that have no place in one"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return "not an address"
    if "@" in parts.netloc:
        return "a user or a password in an address is not sent; keys are named by `secret`"
    if not host:
        return "no host"
    if parts.fragment:
        return "a fragment (#…) is never sent"
    reason = check_host(host, loopback)
    if reason:
        return f"{host} is {reason}"
    inner = host.lower().removesuffix(".") == "localhost" or is_loopback(literal(host) or "")
    if parts.scheme == "https" or (parts.scheme == "http" and loopback and inner):
        return ""
    return "only https is allowed" + (", and http to this machine where the entry allows loopback" if inner else "")


def _parse(text: str) -> IPv4Address | IPv6Address:
    return IPv6Address(text) if ":" in text else IPv4Address(text)


def _short(url: str) -> str:
    host = url.rpartition("@")[2] if "@" in url else url  # what stands before an @ may be a password
    clean = "".join(c if c.isprintable() else "?" for c in host)
    return clean if len(clean) <= 80 else f"{clean[:77]}…"
