"""HTTP requests for downloads: bounded in size, within a rate limit, and retried where that helps.

Used by the sources, which know addresses and the form of replies. Clock, sleep and randomness are passed in, so that a
test can let an hour pass at once. No redirects, no cookies, no proxies from the environment.
"""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import orjson

from pitboss.core.backoff import backoff_s
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import Instant

if TYPE_CHECKING:
    import aiohttp

TIMEOUT_S = 30.0
MOST_BYTES = 32 * 2**20
ATTEMPTS, CONNECT_ATTEMPTS = 8, 3
"""Attempts at one request; fewer where no connection is made at all, which is mostly a wrong address."""
FIRST_PAUSE_S, LONGEST_PAUSE_S, LONGEST_RETRY_AFTER_S = 0.5, 30.0, 120.0
MINUTE_S, GRAIN_S = 60.0, 0.001
"""Added to each wait for the rate limit: a clock slightly short of the full window would make the limiter spin."""
AGENT = "pitboss"

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[object]]


class MalformedReply(Exception):
    """A reply that does not fit the request: cut off, garbled, about something else. Another attempt may help."""


class RequestRefused(UserError):
    """The server refused the request. `status` is its code."""

    def __init__(self, message: str, hint: str, status: int) -> None:
        super().__init__(message, hint)
        self.status = status


@dataclass(frozen=True, slots=True)
class Query:
    """A request. `weight` is the most that it can cost of the rate limit; the true cost may be known from the reply."""

    url: str
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Mapping[str, Any] | None = None
    weight: int = 1
    most_bytes: int = MOST_BYTES


@dataclass(frozen=True, slots=True)
class Reply:
    """The content of a reply, and when it was requested.

    `settled_at` is the earlier of the local clock and the server's date: a bar that is not over by both may still change.
    """

    content: bytes
    asked_at: Instant
    settled_at: Instant
    media_type: str = ""

    def json(self) -> Any:
        """The content as JSON."""
        try:
            return orjson.loads(self.content)
        except orjson.JSONDecodeError:
            raise MalformedReply("the reply is not valid JSON") from None


class WeightLimiter:
    """A rate limiter: requests whose weights would exceed `most` within the window wait until earlier ones leave it."""

    def __init__(self, most: int, elapsed: Callable[[], float], sleep: Sleep, window_s: float = MINUTE_S) -> None:
        self.most = most
        self.window_s = window_s
        self._elapsed = elapsed
        self._sleep = sleep
        self._window: deque[list[float]] = deque()

    async def take(self, weight: int) -> list[float]:
        """Wait until the weight fits and record it. The entry may be lowered once the true weight is known."""
        weight = min(weight, self.most)
        while True:
            now = self._elapsed()
            while self._window and now - self._window[0][0] >= self.window_s:
                self._window.popleft()
            over = sum(entry[1] for entry in self._window) + weight - self.most
            if over <= 0:
                entry = [now, float(weight)]
                self._window.append(entry)
                return entry
            for earlier in self._window:
                over -= earlier[1]
                if over <= 0:
                    await self._sleep(max(0.0, earlier[0] + self.window_s - now) + GRAIN_S)
                    break


class Fetcher:
    """Sends requests, with retries, until a reply can be read, the server refuses, or no attempt is left."""

    def __init__(
        self,
        *,
        now: Callable[[], Instant],
        elapsed: Callable[[], float],
        random: Callable[[], float],
        sleep: Sleep = asyncio.sleep,
        timeout_s: float = TIMEOUT_S,
        attempts: int = ATTEMPTS,
    ) -> None:
        """`random` gives numbers from 0 to 1 for the jitter; `elapsed` is a monotonic clock in seconds."""
        self.now = now
        self._elapsed = elapsed
        self._random = random
        self._sleep = sleep
        self._timeout_s = timeout_s
        self._attempts = attempts
        self._session: aiohttp.ClientSession | None = None

    def budget(self, most: int, window_s: float = MINUTE_S) -> WeightLimiter:
        """A rate limiter on the same clock."""
        return WeightLimiter(most, self._elapsed, self._sleep, window_s)

    async def ask(
        self,
        query: Query,
        parse: Callable[[Reply], T],
        budget: WeightLimiter | None = None,
        weigh: Callable[[T], int] | None = None,
    ) -> T:
        """Send one request. `parse` parses the reply or raises `MalformedReply`; `weigh` gives its true weight."""
        host = host_of(query.url)
        attempts = connect_failures = 0
        while True:
            entry = await budget.take(query.weight) if budget else None
            retry_after_s: float | None = None
            try:
                result = parse(await self._once(query, host))
                if entry is not None and weigh is not None:
                    entry[1] = min(entry[1], float(weigh(result)))
                return result
            except MalformedReply as error:
                problem = f"{host}: {error}"
            except _Busy as busy:
                problem, retry_after_s = f"{host} {busy}", busy.retry_after_s
                connect_failures += busy.is_unreached
            attempts += 1
            if attempts >= self._attempts or connect_failures >= CONNECT_ATTEMPTS:
                raise TransientError(f"{problem} (tried {attempts} times)")
            await self._sleep(backoff_s(attempts, self._random(), FIRST_PAUSE_S, LONGEST_PAUSE_S, retry_after_s))

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _once(self, query: Query, host: str) -> Reply:
        import aiohttp

        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=self._timeout_s)
            self._session = aiohttp.ClientSession(timeout=timeout, headers={"User-Agent": AGENT}, trust_env=False)
        method, content = ("GET", None) if query.body is None else ("POST", orjson.dumps(query.body))
        headers = {} if content is None else {"Content-Type": "application/json"}
        asked_at = self.now()
        try:
            async with self._session.request(
                method, query.url, params=dict(query.params), data=content, headers=headers, allow_redirects=False
            ) as response:
                if response.status == 429 or response.status >= 500 or response.status == 418:
                    raise _Busy(f"answers {response.status}", _retry_after_s(response.headers.get("Retry-After")))
                if response.status != 200:
                    raise _refused(host, response.status)
                data = bytearray()
                async for part in response.content.iter_chunked(2**16):
                    data += part
                    if len(data) > query.most_bytes:
                        raise UserError(f"{host} sent more than {query.most_bytes:,} bytes; nothing of it was read")
                served_at = _date(response.headers.get("Date"))
                return Reply(bytes(data), asked_at, min(asked_at, served_at or asked_at), response.content_type or "")
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
            raise UserError(f"{query.url!r} is not an address", "for example https://api.example.com") from None
        except aiohttp.ClientConnectorError as error:
            raise _Busy(f"cannot be reached ({type(error).__name__})", is_unreached=True) from None
        except TimeoutError:
            raise MalformedReply(f"no complete reply in {self._timeout_s:g} s") from None
        except aiohttp.ClientError as error:
            raise MalformedReply(f"the connection broke ({type(error).__name__})") from None


class _Busy(Exception):
    """The server is overloaded or cannot be reached; the message completes "the host …"."""

    def __init__(self, message: str, retry_after_s: float | None = None, is_unreached: bool = False) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.is_unreached = is_unreached


def host_of(url: str) -> str:
    """The host as it may be shown: without path, query and password, each of which may hold a key."""
    return urlsplit(url).netloc.rpartition("@")[2] or url.partition("?")[0][:60]


def address(text: str) -> str:
    """A checked base address, without a slash at its end."""
    try:
        parts = urlsplit(text.strip())
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise UserError(f"{text!r} is not an address", "write it with http:// or https://")
    return text.strip().rstrip("/")


def _refused(host: str, status: int) -> RequestRefused:
    if status in (401, 403):
        return RequestRefused(
            f"{host} denies access ({status})", "check the key, and whether your country is served", status
        )
    if 300 <= status < 400:
        return RequestRefused(
            f"{host} redirects to another address ({status})", "give the final address with --base-url or --url", status
        )
    hint = "check the symbol and the address" if status in (400, 404, 422) else "try again later"
    return RequestRefused(f"{host} rejects the request ({status})", hint, status)


def _retry_after_s(text: str | None) -> float | None:
    """The seconds of a `Retry-After` header, at most `LONGEST_RETRY_AFTER_S`; None without a number of seconds."""
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return min(seconds, LONGEST_RETRY_AFTER_S) if math.isfinite(seconds) and seconds >= 0 else None


def _date(text: str | None) -> Instant | None:
    try:
        return round(parsedate_to_datetime(text or "").timestamp() * 1000)
    except (TypeError, ValueError, OverflowError):
        return None
