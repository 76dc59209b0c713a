"""One POST to a provider: a response of bounded size, or a `Failure` that says why there is none.

Redirects are not followed, because a key belongs to one origin. What the response means is read elsewhere.
"""

import asyncio
from collections.abc import Mapping

import aiohttp
from aiohttp import hdrs
from yarl import URL

from pitboss.core.noun import noun
from pitboss.models.failures import Failure

LARGEST_BYTES = 8 * 1024 * 1024
"""A larger body is not a reply to a request of ours."""


@noun
class HttpResponse:
    """A response. `content` is None where it was larger than is read."""

    status: int
    headers: Mapping[str, str]
    content: bytes | None


async def post(
    session: aiohttp.ClientSession, url: URL, content: bytes, headers: Mapping[str, str], timeout_s: float, name: str
) -> HttpResponse | Failure:
    """Send a request and read the whole response. `name` begins the message of a failure."""
    try:
        async with (
            asyncio.timeout(timeout_s),
            session.post(url, data=content, headers=headers, allow_redirects=False) as response,
        ):
            return HttpResponse(response.status, response.headers, await _content(response))
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
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > LARGEST_BYTES:
            response.close()
            return None
        pieces.append(piece)
    return b"".join(pieces)
