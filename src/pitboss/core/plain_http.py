"""Plain `http://` addresses: only for this machine and for hosts that the user allows by name.

A key, or a prompt, sent over plain http to another machine can be read on its way. Every place that takes an address
together with a key checks it here. The setting `http_hosts` holds the allowed hosts.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address

from pitboss.core.errors import UserError

HTTP_HOSTS = "PITBOSS_HTTP_HOSTS"
"""The variable of the setting."""
_LOOPBACK_4, _LOOPBACK_6 = IPv4Network("127.0.0.0/8"), IPv6Address("::1")


def check_plain_http(scheme: str, host: str | None, name: str, http_hosts: str) -> None:
    """Refuse a plain http address of another machine. `name` is that of the variable or option, `http_hosts` the setting."""
    host = (host or "").lower().removesuffix(".")
    allowed = {entry.strip().lower().removesuffix(".") for entry in http_hosts.split(",")}
    if scheme == "http" and not names_this_machine(host) and host not in allowed:
        shown = "".join(letter if letter.isprintable() else "?" for letter in host[:80])
        raise UserError(
            f"{name}: http:// to {shown} is refused: what is sent there, keys included, could be read on its way",
            f"use https://, or allow this host: {HTTP_HOSTS}={shown}",
        )


def names_this_machine(host: str) -> bool:
    """Whether a host as written is localhost or a loopback address."""
    name = host.lower().removesuffix(".")
    try:
        bare = name[1:-1] if name.startswith("[") and name.endswith("]") else name
        return IPv6Address(bare) == _LOOPBACK_6 if ":" in bare else IPv4Address(bare) in _LOOPBACK_4
    except ValueError:
        return name == "localhost"
