"""How much may still be asked of a provider: what its reply headers tell, and limits that a person has set.

Pure bookkeeping in milliseconds; who waits, and in which order, is `limited`'s matter. Every provider has its own names
and its own idea of when a quota is full again; all of them end here as a limit, a remainder and an instant. The length of
a window is never assumed: Groq counts requests by the day and tokens by the minute under the same names.
"""

import math
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from pitboss.core.instant import MINUTE_MS, SECOND_MS, Instant
from pitboss.core.noun import noun

LONGEST_MS = 5 * MINUTE_MS
"""A quota that is full again later than this is tried with one call then: most fill up bit by bit, and clocks differ."""
LATE: Instant = 10**15
"""Some instant after all that will be waited for: nobody knows when."""
NEVER = math.inf
"""Only the end of a call under way can help."""

_VENDOR = re.compile(r"(?:x-|anthropic-)?ratelimit-(?:(limit|remaining|reset)(?:-(.+))?|(.+)-(limit|remaining|reset))")
_GO = re.compile(r"(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h|d))+")
_GO_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)")
_GO_MS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6, "d": 8.64e7}
_DRAFT_ITEM = re.compile(r"""\s*(?:"([^"]*)"|([\w-]+))\s*((?:;\s*[\w-]+=[^;,]+)*)""")
_EPOCH_S, _EPOCH_MS = 1e9, 1e11


@noun
class Need:
    """What one call takes from a quota. Tokens are estimates until it is over."""

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 1

    def of(self: "Need | Load", unit: str) -> int:
        """The amount in the unit of a quota."""
        if unit == "requests":
            return self.calls
        if unit == "input-tokens":
            return self.input_tokens
        return self.output_tokens if unit == "output-tokens" else self.input_tokens + self.output_tokens


class Load:
    """The sum of what several calls take."""

    __slots__ = ("calls", "input_tokens", "output_tokens")

    def __init__(self) -> None:
        self.calls = self.input_tokens = self.output_tokens = 0

    def add(self, need: Need, times: int = 1) -> None:
        """One call more; with `times` -1, one less."""
        self.calls += times * need.calls
        self.input_tokens += times * need.input_tokens
        self.output_tokens += times * need.output_tokens

    of = Need.of


@noun
class Reading:
    """One quota as a reply's headers give it."""

    name: str
    unit: str
    remaining: int
    limit: int | None = None
    reset_at: Instant | None = None


def read(headers: Mapping[str, str], now: Instant) -> tuple[Reading, ...]:
    """Every quota in the headers of a reply. What cannot be read is left out."""
    found: dict[str, dict[str, str]] = {}
    readings: list[Reading] = []
    date: str | None = None
    for key, value in headers.items():
        name = key.lower()
        if name == "date":
            date = value
        if "ratelimit" not in name:
            continue
        if name == "ratelimit":
            readings.extend(_draft(value, now))
        elif match := _VENDOR.fullmatch(name):
            found.setdefault(match[2] or match[3] or "requests", {})[match[1] or match[4]] = value
    skew = _skew(date, now) if found else 0
    for name, fields in found.items():
        unit, remaining = _unit(name), _whole(fields.get("remaining"))
        if unit is not None and remaining is not None:
            reset_at = moment(fields.get("reset", ""), now, skew)
            readings.append(Reading(name, unit, remaining, _whole(fields.get("limit")), reset_at))
    return tuple(readings)


def moment(text: str, now: Instant, skew: int = 0) -> Instant | None:
    """When a quota is full again: a Go duration, seconds from now, an epoch in s or ms, or RFC 3339.

    `skew` is how far our clock is ahead of the provider's. Whole seconds are taken as rounded down.
    """
    text = text.strip()
    if _GO.fullmatch(text):
        return _later(now, sum(float(number) * _GO_MS[unit] for number, unit in _GO_PART.findall(text)))
    try:
        number = float(text)
    except ValueError:
        try:
            stamp = datetime.fromisoformat(text)
        except ValueError:
            return None
        if stamp.tzinfo is None:
            stamp = stamp.replace(tzinfo=UTC)
        whole = 0 if stamp.microsecond else SECOND_MS
        return math.ceil(stamp.timestamp() * 1000) + skew + whole
    if not math.isfinite(number) or number < 0:
        return None
    if number >= _EPOCH_MS:
        return math.ceil(min(number, 1e15)) + skew
    if number >= _EPOCH_S:
        return math.ceil(number * 1000) + skew + SECOND_MS
    return _later(now, number * 1000 + (SECOND_MS if "." not in text else 0))


def _later(now: Instant, ms: float) -> Instant:
    return now + math.ceil(min(ms, 1e12))


def _skew(date: str | None, now: Instant) -> int:
    try:
        return now - round(parsedate_to_datetime(date or "").timestamp() * 1000)
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0


def _unit(name: str) -> str | None:
    if "token" in name:
        return "input-tokens" if "input" in name else "output-tokens" if "output" in name else "tokens"
    return "requests" if "request" in name or name in ("minute", "hour", "day") else None


def _whole(text: str | None) -> int | None:
    try:
        number = float((text or "").split(",")[0].split(";")[0])
    except ValueError:
        return None
    return int(number) if math.isfinite(number) and 0 <= number < 1e15 else None


def _draft(value: str, now: Instant) -> Iterator[Reading]:
    """`"name";r=9;t=30, …` of the IETF draft, and its older form `limit=10, remaining=9, reset=30`."""
    plain = dict(part.strip().split("=", 1) for part in value.split(",") if re.fullmatch(r"\s*\w+=[\d.]+\s*", part))
    if (remaining := _whole(plain.get("remaining"))) is not None:
        reset_at = moment(plain.get("reset", ""), now)
        yield Reading("draft", "requests", remaining, _whole(plain.get("limit")), reset_at)
        return
    for item in _DRAFT_ITEM.finditer(value):
        given = dict(part.strip().split("=", 1) for part in item[3].split(";") if "=" in part)
        remaining = _whole(given.get("r"))
        if remaining is not None:
            unit = _unit(given.get("qu", "requests").strip('"')) or "requests"
            yield Reading(f"draft {item[1] or item[2]}", unit, remaining, None, moment(given.get("t", ""), now))


class Told:
    """A quota that the provider tells of with every reply.

    Each reading bounds what may be let through until the instant it names. All that are still running count, because
    replies overtake each other, and calls under way come on top, as none of them need be in any reading. So no more is
    let through than the provider has left, whether it counts in windows or fills up bit by bit.
    """

    __slots__ = ("_bounds", "_span_ms", "_trying", "limit", "unit")

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self.limit: int | None = None
        self._bounds: list[tuple[Instant, int, Instant]] = []
        """(counts until, remaining, full again at): both of the first two ascending, as a lower and longer one hides others."""
        self._trying = False
        self._span_ms = MINUTE_MS
        """The longest time it was ever told to take until it is full, and no less than most take."""

    def learn(self, reading: Reading, now: Instant) -> None:
        """Take what a reply says."""
        self._forget(now)
        self._trying = False
        self.limit = self.limit if reading.limit is None else reading.limit
        full_at = now + MINUTE_MS if reading.reset_at is None else reading.reset_at
        self._span_ms = max(self._span_ms, min(full_at - now, LONGEST_MS))
        self._bind(reading.remaining, full_at, now)

    def unheard(self, amount: int, now: Instant) -> None:
        """A call ended without a word about the quota: it may have been counted, and put off when it is full again."""
        self._forget(now)
        if self._bounds:
            self._bounds = [(until, max(left - amount, 0), LATE) for until, left, _ in self._bounds]
        elif self.limit is not None:
            left = 0 if self._trying else max(self.limit - amount, 0)
            self._bind(left, LATE, now, self._span_ms + SECOND_MS)

    def wait_ms(self, need: int, under_way: int, now: Instant) -> float:
        """How long until a call of this size may go; 0 is now."""
        self._forget(now)
        if self.limit is not None:
            need = min(need, max(self.limit, 1))  # larger than the whole quota: alone, and the provider decides
        if self._bounds:
            return max((until - now for until, left, _ in self._bounds if need + under_way > left), default=0)
        if not under_way:
            return 0
        free = not self._trying and (self.limit is None or need + under_way <= self.limit)
        return 0 if free else NEVER

    def _bind(self, left: int, full_at: Instant, now: Instant, most_ms: int = LONGEST_MS) -> None:
        until = max(min(full_at, now + most_ms), now + 1)
        if any(other >= until and less <= left for other, less, _ in self._bounds):
            return
        kept = [bound for bound in self._bounds if not (bound[0] <= until and bound[1] >= left)]
        self._bounds = sorted([*kept, (until, left, full_at)])

    def _forget(self, now: Instant) -> None:
        while self._bounds and self._bounds[0][0] <= now:
            self._trying = self._bounds.pop(0)[2] > now  # not full yet: one at a time, each tells more


class FixedQuota:
    """A limit that a person has set: never more than `limit` in any window of `window_ms`, wherever it begins.

    A call counts from its start to one window after its end, because when in between the provider counts it is unknown.
    """

    __slots__ = ("_over", "_sum", "limit", "unit", "window_ms")

    def __init__(self, unit: str, limit: int, window_ms: int = MINUTE_MS) -> None:
        self.unit = unit
        self.limit = limit
        self.window_ms = window_ms
        self._over: deque[tuple[Instant, int]] = deque()
        self._sum = 0

    def ended(self, amount: int, now: Instant) -> None:
        """A call is over and took this much."""
        self._over.append((now + self.window_ms, amount))
        self._sum += amount

    def wait_ms(self, need: int, under_way: int, now: Instant) -> float:
        """How long until a call of this size may go; 0 is now."""
        while self._over and self._over[0][0] <= now:
            self._sum -= self._over.popleft()[1]
        over = self._sum + under_way + min(need, self.limit) - self.limit
        if over <= 0:
            return 0
        return next((at - now for at, freed in _freed(self._over) if freed >= over), NEVER)


def _freed(over: Iterable[tuple[Instant, int]]) -> Iterator[tuple[Instant, int]]:
    total = 0
    for at, amount in over:
        total += amount
        yield at, total
