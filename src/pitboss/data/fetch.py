"""One bounded question over HTTP at a time: in our own budget of weights, tried again where that helps.

Beneath the sources, which say what to ask and how to read it. Clock, pause and chance are handed in, so that a test can
let an hour pass at once. Not a browser: no redirects, no cookies, no proxies from the environment.
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

from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import Instant

if TYPE_CHECKING:
    import aiohttp

TIMEOUT_S = 30.0
MOST_BYTES = 32 * 2**20
ATTEMPTS, UNREACHED = 8, 3
"""Tries at one question; fewer where nobody answers at all, for that is mostly a wrong address."""
FIRST_PAUSE_S, LONGEST_PAUSE_S, LONGEST_WISH_S = 0.5, 30.0, 120.0
MINUTE_S, GRAIN_S = 60.0, 0.001
"""A pause is a little longer than it need be: a clock that is a hair short of the minute would make us spin."""
AGENT = "pitboss"

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[object]]


class MalformedReply(Exception):
    """A reply that cannot be what was asked for: cut off, garbled, of something else. Asking again may help."""


class RequestRefused(UserError):
    """The server understood and said no. `status` is its code."""

    def __init__(self, message: str, hint: str, status: int) -> None:
        super().__init__(message, hint)
        self.status = status


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked. `weight` is the most it can cost; what it did cost is told by the reader of the reply."""

    url: str
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Mapping[str, Any] | None = None
    weight: int = 1
    most_bytes: int = MOST_BYTES


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, and when it was asked for.

    `settled_at` is the earlier of our clock and the server's own date: what is not over by either of them is not over.
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
            raise MalformedReply("the reply is not whole JSON") from None


class WeightLimiter:
    """Weights of the last minute, or of another window. Whoever would pass the limit waits until enough are that old."""

    def __init__(self, most: int, elapsed: Callable[[], float], sleep: Sleep, window_s: float = MINUTE_S) -> None:
        self.most = most
        self.window_s = window_s
        self._elapsed = elapsed
        self._sleep = sleep
        self._spent: deque[list[float]] = deque()

    async def take(self, weight: int) -> list[float]:
        """Wait for room and take it. The entry may be corrected downwards once the true weight is known."""
        weight = min(weight, self.most)
        while True:
            now = self._elapsed()
            while self._spent and now - self._spent[0][0] >= self.window_s:
                self._spent.popleft()
            over = sum(entry[1] for entry in self._spent) + weight - self.most
            if over <= 0:
                entry = [now, float(weight)]
                self._spent.append(entry)
                return entry
            for earlier in self._spent:
                over -= earlier[1]
                if over <= 0:
                    await self._sleep(max(0.0, earlier[0] + self.window_s - now) + GRAIN_S)
                    break


class Fetcher:
    """Asks until there is an answer that can be read, no point in asking, or no try left."""

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
        """`random` gives numbers from 0 to 1 for the jitter; `elapsed` seconds that only go forward."""
        self.now = now
        self.requests = 0
        self.tried_again = 0
        self._elapsed = elapsed
        self._random = random
        self._sleep = sleep
        self._timeout_s = timeout_s
        self._attempts = attempts
        self._session: aiohttp.ClientSession | None = None

    def budget(self, most: int, window_s: float = MINUTE_S) -> WeightLimiter:
        """A budget on the same clock: so much in a minute, or in another window."""
        return WeightLimiter(most, self._elapsed, self._sleep, window_s)

    async def ask(
        self,
        query: Query,
        read: Callable[[Reply], T],
        budget: WeightLimiter | None = None,
        weigh: Callable[[T], int] | None = None,
    ) -> T:
        """One question. `read` makes sense of the reply or raises `MalformedReply`; `weigh` says what it cost in the end."""
        host = host_of(query.url)
        tried = unreached = 0
        while True:
            entry = await budget.take(query.weight) if budget else None
            wish_s: float | None = None
            try:
                self.requests += 1
                found = read(await self._once(query, host))
                if entry is not None and weigh is not None:
                    entry[1] = min(entry[1], float(weigh(found)))
                return found
            except MalformedReply as error:
                problem = f"{host}: {error}"
            except _Busy as busy:
                problem, wish_s = f"{host} answers {busy.status}", busy.wait_s
                unreached += busy.status == 0
                if busy.status == 0:
                    problem = f"{host} {busy.reason}"
            tried += 1
            if tried >= self._attempts or unreached >= UNREACHED:
                raise TransientError(f"{problem} (tried {tried} times)")
            self.tried_again += 1
            await self._sleep(self._pause(tried, wish_s))

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
                    raise _Busy(response.status, _seconds(response.headers.get("Retry-After")))
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
            raise _Busy(0, reason=f"cannot be reached ({type(error).__name__})") from None
        except TimeoutError:
            raise MalformedReply(f"no whole answer in {self._timeout_s:g} s") from None
        except aiohttp.ClientError as error:
            raise MalformedReply(f"the connection broke ({type(error).__name__})") from None

    def _pause(self, tried: int, wish_s: float | None) -> float:
        """Full jitter; where the server says how long, that long and a little more, so that not all come at once."""
        most = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(tried - 1, 16))
        if wish_s is None:
            return self._random() * most
        return min(wish_s, LONGEST_WISH_S) + self._random() * min(1.0, most)


class _Busy(Exception):
    def __init__(self, status: int, wait_s: float | None = None, reason: str = "") -> None:
        super().__init__(reason or str(status))
        self.status = status
        self.wait_s = wait_s
        self.reason = reason


def host_of(url: str) -> str:
    """Who is asked, as it may be shown: without a path, a question or a password, for any of them may hold a key."""
    return urlsplit(url).netloc.rpartition("@")[2] or url.partition("?")[0][:60]


def address(text: str) -> str:
    """A base address as given, without a slash at its end."""
    parts = urlsplit(text.strip())
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise UserError(f"{text!r} is not an address", "write it with http:// or https://")
    return text.strip().rstrip("/")


def _refused(host: str, status: int) -> RequestRefused:
    if status in (401, 403):
        return RequestRefused(
            f"{host} does not let us in ({status})", "check the key, and whether your country is served", status
        )
    if 300 <= status < 400:
        return RequestRefused(
            f"{host} sends us elsewhere ({status})", "give the final address with --base-url or --url", status
        )
    hint = "check the symbol and the address" if status in (400, 404, 422) else "try again later"
    return RequestRefused(f"{host} did not accept the question ({status})", hint, status)


def _seconds(text: str | None) -> float | None:
    try:
        found = float(text or "")
    except ValueError:
        return None
    return found if math.isfinite(found) and found >= 0 else None


def _date(text: str | None) -> Instant | None:
    try:
        return round(parsedate_to_datetime(text or "").timestamp() * 1000)
    except (TypeError, ValueError, OverflowError):
        return None
