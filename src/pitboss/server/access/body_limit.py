"""The limit on the size of a request: by its declared length, and by what really arrives."""

from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from pitboss.server.problem import Problem

MOST_BYTES = 1_000_000
MOST_IMPORT_BYTES = 64_000_000
"""For paths that take a file: those with a part `import`."""


def most_bytes(path: str) -> int:
    """How many bytes a request to a path may have."""
    return MOST_IMPORT_BYTES if "import" in path.split("/") else MOST_BYTES


def too_large(path: str, headers: Headers) -> Problem | None:
    """The refusal of a request that declares to be too large."""
    length = headers.get("content-length", "0")
    if not length.isdecimal():
        return Problem(400, "bad_request", "the length of the request is not a number")
    return _problem(most_bytes(path)) if int(length) > most_bytes(path) else None


def limited(receive: Any, path: str) -> Any:
    """`receive` that fails when more arrives than allowed."""
    most, seen = most_bytes(path), 0

    async def receive_limited() -> Any:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise HTTPException(413, _problem(most).detail)
        return message

    return receive_limited


def _problem(most: int) -> Problem:
    return Problem(413, "too_large", f"a request has at most {most:,} bytes", "send less at once")
