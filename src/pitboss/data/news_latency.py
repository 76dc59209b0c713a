"""When news could be known: publication plus a latency, which may differ by source and from item to item.

A latency is written `2m`, or `30s..5m` for one drawn evenly between the two, and for single sources `name=latency`, with
commas between: `1m,coindesk=30s..5m`. What is drawn for an item hangs on the item alone (its own digest), so the same item
is equally late in every run, whatever else was imported and whatever a run's seed is.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, Instant, parse_duration
from pitboss.core.market import NewsItem

MOST_MS = 3_650 * DAY_MS
MOST_SOURCES = 200
_HOW = "for example 2m, or 30s..5m, or 1m,coindesk=30s..5m"


@dataclass(frozen=True, slots=True)
class Delay:
    """How long after publication: between the two, both included."""

    low_ms: int = 0
    high_ms: int = 0


@dataclass(frozen=True, slots=True)
class Latency:
    """The delay of news, and of the sources that have one of their own (by name, in any case)."""

    usual: Delay = Delay()
    sources: Mapping[str, Delay] = field(default_factory=dict[str, Delay])

    def of(self, item: NewsItem) -> int:
        """Milliseconds from an item's publication to its arrival."""
        delay = self.sources.get(_named(item.source), self.usual) if self.sources else self.usual
        span = delay.high_ms - delay.low_ms
        return delay.low_ms + (_draw(item) * (span + 1) >> 64) if span else delay.low_ms


def parse_latency(text: str) -> Latency:
    """`1m,coindesk=30s..5m` → the latency it says."""
    usual: Delay | None = None
    sources: dict[str, Delay] = {}
    for part in text.split(","):
        name, equals, length = part.rpartition("=")
        delay = _delay(length.strip())
        if not equals:
            if usual is not None:
                raise UserError(f"{text[:80]!r} gives the usual latency twice", _HOW)
            usual = delay
        elif not _named(name) or _named(name) in sources:
            raise UserError(f"{part.strip()[:80]!r} names no source, or one that was named before", _HOW)
        else:
            sources[_named(name)] = delay
    if len(sources) > MOST_SOURCES:
        raise UserError(f"{len(sources)} sources with a latency of their own; at most {MOST_SOURCES} may have one")
    return Latency(usual or Delay(), sources)


def arrivals(items: Iterable[NewsItem], latency: Latency, until: Instant) -> list[NewsItem]:
    """The items that have arrived by an instant, in the order of arrival.

    What an item says of its own arrival (it was first seen later) is never made earlier. An item with a date and no time
    came out some time that day: it counts from the next midnight, and no latency is added to that.
    """
    found: list[NewsItem] = []
    for item in items:
        available_at = item.available_at
        if item.published_at % DAY_MS:
            available_at = max(available_at, item.published_at + latency.of(item))
        if available_at <= until:
            found.append(item if available_at == item.available_at else replace(item, available_at=available_at))
    return sorted(found, key=lambda item: (item.available_at, item.published_at, item.source, item.text, item.symbols))


def _delay(text: str) -> Delay:
    low, dots, high = text.partition("..")
    try:
        first = parse_duration(low)
        last = parse_duration(high) if dots else first
    except (UserError, OverflowError):
        raise UserError(f"cannot read {text[:80]!r} as a latency", _HOW) from None
    if not 0 <= first <= last <= MOST_MS:
        raise UserError(f"the latency {text[:80]!r} ends before it begins, or is longer than ten years", _HOW)
    return Delay(first, last)


def _named(source: str) -> str:
    return source.strip().casefold()


def _draw(item: NewsItem) -> int:
    """64 bits of the item's own digest."""
    told = codec.dumps([item.published_at, item.source, item.text])
    return int.from_bytes(hashlib.sha256(told).digest()[:8], "big")
