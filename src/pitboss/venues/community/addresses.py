"""Splits the addresses of servers that users write, so that a malformed one is reported and not a crash."""

from urllib.parse import SplitResult, urlsplit

from pitboss.core.errors import UserError


def split_address(url: str, name: str) -> SplitResult:
    """The parts of an address. `name` is that of its option or setting; the address may hold a key, so no message repeats it."""
    try:
        parts = urlsplit(url)
        _ = parts.hostname, parts.port  # checked when they are read
    except ValueError:
        raise UserError(
            f"{name} is not the address of a server", "correct it: it begins with https:// and the name of a host"
        ) from None
    return parts
