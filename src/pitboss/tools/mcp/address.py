"""The network addresses that an MCP server may have: public ones, and loopback where the catalogue allows it.

Rules only. `blocked_reason` checks one IP address, `check_host` a host as written, `check_url` a URL of the catalogue.
None of them opens a connection: `transport` checks again the address to which the socket is opened, because only that
check is binding.

Ranges are listed here rather than taken from `ipaddress.is_global`, whose results differ between versions of Python.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from urllib.parse import urlsplit

from pitboss.core.errors import UserError
from pitboss.core.plain_http import names_this_machine

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a host and port to IP addresses, as text."""

MAX_URL_CHARS = 2_048
LOOPBACK = "this machine itself"

_BLOCKED_4: tuple[tuple[str, str], ...] = (
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
_BLOCKED_6: tuple[tuple[str, str], ...] = (
    ("::/128", "unspecified"),
    ("::1/128", LOOPBACK),
    ("::/96", "an IPv4 address inside an IPv6 address"),
    ("::ffff:0:0/96", "an IPv4 address inside an IPv6 address"),
    ("::ffff:0:0:0/96", "an IPv4 address inside an IPv6 address"),
    ("64:ff9b::/96", "an IPv4 address inside an IPv6 address"),
    ("64:ff9b:1::/48", "an IPv4 address inside an IPv6 address"),
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
_NETWORKS_4 = tuple((IPv4Network(network), reason) for network, reason in _BLOCKED_4)
_NETWORKS_6 = tuple((IPv6Network(network), reason) for network, reason in _BLOCKED_6)
_PUBLIC_6 = IPv6Network("2000::/3")
"""The range allocated for public addresses; the rest is reserved."""
_ISATAP = (0x00005EFE, 0x02005EFE)

_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*")
_NUMERIC = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+))*")
_PRIVATE_SUFFIXES = (
    "localhost",
    "internal",
    "local",
    "localdomain",
    "lan",
    "home",
    "corp",
    "intranet",
    "private",
    "home.arpa",
)
"""Host name suffixes of a machine itself or of private networks."""
_NOT_IN_URL = re.compile(r"[\x00-\x20\x7f\\]")


def blocked_reason(address: str) -> str:
    """Why an IP address is not public, or is not an IP address; empty if it is public."""
    try:
        ip = _parse(address)
    except ValueError:
        return "not an IP address"
    if isinstance(ip, IPv4Address):
        return next((reason for network, reason in _NETWORKS_4 if ip in network), "")
    if ip.scope_id is not None:
        return "bound to one network card"
    for network, reason in _NETWORKS_6:
        if ip in network:
            return reason
    if ip not in _PUBLIC_6:
        return "reserved"
    # An ISATAP interface forwards the packet to the IPv4 address in its last four bytes.
    return "a tunnel into another network" if (int(ip) >> 32) & 0xFFFFFFFF in _ISATAP else ""


def is_loopback(address: str) -> bool:
    """Whether an IP address is loopback, in its plain notation only."""
    return blocked_reason(address) == LOOPBACK


def literal(host: str) -> str | None:
    """The IP address of a host that is written as one, else None. Brackets and a trailing dot are ignored."""
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host.removesuffix(".")
    try:
        return str(_parse(bare))
    except ValueError:
        return None


def check_host(host: str, loopback: bool = False) -> str:
    """Why a host as written is refused; empty if it is a name that may be resolved or an allowed address."""
    address = literal(host)
    if address is not None:
        reason = blocked_reason(address)
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
    if "." not in name or any(name == suffix or name.endswith(f".{suffix}") for suffix in _PRIVATE_SUFFIXES):
        return "a name inside one's own network"
    return ""


def check_url(url: str, loopback: bool = False) -> str:
    """The URL if a server of the catalogue may have it; else `UserError` with the first problem."""
    problem = _url_problem(url, loopback)
    if problem:
        raise UserError(f"{_short(url)}: {problem}", "an address is https://host/path, and public")
    return url


def _url_problem(url: str, loopback: bool) -> str:
    if not url or len(url) > MAX_URL_CHARS or not url.isascii() or _NOT_IN_URL.search(url):
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
    is_local = names_this_machine(host)
    if parts.scheme == "https" or (parts.scheme == "http" and loopback and is_local):
        return ""
    return "only https is allowed" + (", and http to this machine where the entry allows loopback" if is_local else "")


def _parse(text: str) -> IPv4Address | IPv6Address:
    return IPv6Address(text) if ":" in text else IPv4Address(text)


def _short(url: str) -> str:
    host = url.rpartition("@")[2] if "@" in url else url  # the part before an @ may be a password
    clean = "".join(c if c.isprintable() else "?" for c in host)
    return clean if len(clean) <= 80 else f"{clean[:77]}…"
