"""The gate before a vendor's own client: a whole reply of bounded size, in the form its provider documents, or none.

A transport, so live replies and recorded ones pass through the same place. The vendors' clients trust what they read and
fail in ways of their own on what they did not expect; here every error and every body that is no reply ends in `Stopped`,
and the rest reaches them tidied. Reading what a reply means is not done here.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import httpx2

from pitboss.models.chat import reply as bodies
from pitboss.models.chat.stream import events, is_stream
from pitboss.models.native.errors import Stopped

LARGEST = 8 * 1024 * 1024
"""A reply beyond this is no answer to a question of ours."""

Read = Callable[[object], dict[str, Any]]
"""A vendor's body, plain values or the text of a stream → its plain reply as documented. Raises `Stopped`."""
Seen = Callable[[Mapping[str, str], int], None]

_FRAMING = frozenset({"content-length", "content-encoding", "transfer-encoding", "content-type"})


class ReplyGate(httpx2.AsyncBaseTransport):
    """Around the transport that reaches the vendor."""

    def __init__(
        self, inner: httpx2.AsyncBaseTransport, read: Read, hide: Callable[[str], str], seen: Seen | None = None
    ) -> None:
        """`hide` takes the key out of a text: before anything is cut to a line, as half a key is not known as one."""
        self.inner = inner
        self.read = read
        self.hide = hide
        self.seen = seen

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Pass a request on and its reply back."""
        response = await self.inner.handle_async_request(request)
        try:
            if self.seen is not None:
                self.seen(response.headers, response.status_code)
            content = await _whole(response)
        finally:
            await response.aclose()
        body = bodies.parse(self.hide(content.decode("utf-8", "replace")))
        if response.status_code >= 300:
            if isinstance(body, str) and is_stream(body):
                body = next((bodies.parse(data) for _, data in events(body)), body)
            raise Stopped(status=response.status_code, body=body, headers=response.headers)
        try:
            # Half a surrogate pair, which JSON can name and UTF-8 cannot, becomes `?`.
            written = json.dumps(self.read(body), ensure_ascii=False).encode("utf-8", "replace")
        except RecursionError:
            raise Stopped("the reply is nested without end") from None
        headers = {name: value for name, value in response.headers.items() if name.lower() not in _FRAMING}
        return httpx2.Response(200, headers={**headers, "content-type": "application/json"}, content=written)

    async def aclose(self) -> None:
        """Close what is inside."""
        await self.inner.aclose()


async def _whole(response: httpx2.Response) -> bytes:
    """The body, unpacked; a piece at a time, so that one too large is never held."""
    pieces: list[bytes] = []
    size = 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > LARGEST:
            raise Stopped(f"the reply is larger than {LARGEST:,} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def read(body: object, plain: Read, joined: Callable[[str], object]) -> dict[str, Any]:
    """A vendor's plain reply, or its stream by joining the pieces first."""
    if isinstance(body, str):
        if not is_stream(body):
            raise Stopped("the reply is not JSON")
        body = joined(body)
    return plain(body)
