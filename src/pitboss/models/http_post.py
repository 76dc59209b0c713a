"""One POST to a provider: a response of bounded size, or a `Failure` that says why there is none.

Redirects are not followed, because a key belongs to one origin. What the response means is read elsewhere.
"""

import asyncio
from collections.abc import Callable, Mapping

import aiohttp
from aiohttp import hdrs
from yarl import URL

from pitboss.core.noun import noun
from pitboss.models.failures import Failure

LARGEST_BYTES = 8 * 1024 * 1024
"""A larger body is not a reply to a request of ours."""
EVENT_STREAM = "text/event-stream"
MOST_WAITS = 20
"""How many times its time limit a stream may take that never falls silent."""


@noun
class HttpResponse:
    """A response. `content` is None where it was larger than is read."""

    status: int
    headers: Mapping[str, str]
    content: bytes | None


async def post(
    session: aiohttp.ClientSession,
    url: URL,
    content: bytes,
    headers: Mapping[str, str],
    timeout_s: float,
    name: str,
    on_piece: Callable[[bytes], None] | None = None,
) -> HttpResponse | Failure:
    """Send a request and read the whole response. `name` begins the message of a failure.

    `on_piece` is given each piece of a stream of events as it arrives. A stream of events may take longer than `timeout_s`: each piece of it starts that time anew, up to `MOST_WAITS` times.
    """
    try:
        async with (
            asyncio.timeout(timeout_s) as limit,
            session.post(url, data=content, headers=headers, allow_redirects=False) as response,
        ):
            if response.content_type != EVENT_STREAM:
                return HttpResponse(response.status, response.headers, await _content(response))
            return HttpResponse(response.status, response.headers, await _stream(response, limit, timeout_s, on_piece))
    except TimeoutError:
        return Failure("retry", "timeout", f"{name}: no answer within {timeout_s:.3g} s")
    except aiohttp.InvalidURL:
        return Failure("user", "bad_address", f"{name}: the base URL cannot be asked", "check the base URL")
    except aiohttp.ClientConnectorCertificateError:
        return Failure("give_up", "certificate", f"{name}: the certificate of {url.authority} is not valid")
    except aiohttp.ClientConnectorError as error:
        reason = (error.os_error.strerror if isinstance(error.os_error, OSError) else "") or "no connection"
        return Failure("retry", "unreachable", f"{name}: cannot reach {url.authority} ({reason})")
    except (aiohttp.ClientError, OSError, ValueError) as error:
        # The text of these errors may hold anything that the server sent; their type says enough.
        return Failure("retry", "connection", f"{name}: the connection broke ({type(error).__name__})")


async def _content(response: aiohttp.ClientResponse) -> bytes | None:
    length = response.content_length
    if length is not None and length <= LARGEST_BYTES and hdrs.CONTENT_ENCODING not in response.headers:
        return await response.read()
    return await _stream(response)


async def _stream(
    response: aiohttp.ClientResponse,
    limit: asyncio.Timeout | None = None,
    silence_s: float = 0.0,
    on_piece: Callable[[bytes], None] | None = None,
) -> bytes | None:
    """Everything that a response sends; `limit` then counts the silence between two pieces."""
    time = asyncio.get_running_loop().time
    last_s = time() + MOST_WAITS * silence_s
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        if limit is not None:
            limit.reschedule(min(time() + silence_s, last_s))
        size += len(piece)
        if size > LARGEST_BYTES:
            response.close()
            return None
        pieces.append(piece)
        if on_piece is not None and response.status < 300:
            on_piece(piece)
    return b"".join(pieces)
