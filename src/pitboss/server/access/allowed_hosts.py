"""`AllowedHosts`: under which names the server may be addressed.

A page of another site can point a name of its own at this machine (DNS rebinding); the browser then sends that name as `Host`. Only
names of this server are answered. An address in digits cannot be rebound, so that a server on all addresses takes any of them.
"""

from dataclasses import dataclass
from ipaddress import ip_address

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
WILDCARDS = frozenset({"0.0.0.0", "::"})


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """The host names, in lower case and without ports."""

    names: frozenset[str] = LOOPBACK
    any_address: bool = False

    @classmethod
    def of(cls, bound_host: str, setting: str) -> "AllowedHosts":
        """Those of a server that listens on a host; `setting` is `serve_hosts`."""
        named = {name.strip().lower() for name in setting.split(",") if name.strip()}
        return cls(LOOPBACK | {bound_host.lower(), *named} - WILDCARDS, bound_host in WILDCARDS)

    def allow(self, host: str) -> bool:
        """Whether a `Host` header names this server."""
        name = host_name(host)
        return name in self.names or (self.any_address and _is_address(name))


def host_name(host: str) -> str:
    """The name in a `Host` header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine reach a server that listens there."""
    return host.lower() in LOOPBACK or (_is_address(host) and ip_address(host).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
