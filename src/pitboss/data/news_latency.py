"""The arrival of news: publication plus a latency, which may differ between sources and items.

A latency is written `2m`, or `30s..5m` for one drawn uniformly between the two, and `name=latency` for single sources,
separated by commas: `1m,coindesk=30s..5m`. The draw depends only on the item (its digest), so an item has the same latency
in every run, whatever else is imported and whatever the seed.
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
    """A range of delays after publication, both ends included."""

    low_ms: int = 0
    high_ms: int = 0


@dataclass(frozen=True, slots=True)
class Latency:
    """The usual delay of news, and the delays of single sources (by name, regardless of case)."""

    usual: Delay = Delay()
    sources: Mapping[str, Delay] = field(default_factory=dict[str, Delay])

    def of(self, item: NewsItem) -> int:
        """Milliseconds from an item's publication to its arrival."""
        delay = self.sources.get(_folded(item.source), self.usual) if self.sources else self.usual
        span = delay.high_ms - delay.low_ms
        return delay.low_ms + (_draw(item) * (span + 1) >> 64) if span else delay.low_ms


def parse_latency(text: str) -> Latency:
    """Parse a latency such as `1m,coindesk=30s..5m`."""
    usual: Delay | None = None
    sources: dict[str, Delay] = {}
    for part in text.split(","):
        name, equals, length = part.rpartition("=")
        delay = _delay(length.strip())
        if not equals:
            if usual is not None:
                raise UserError(f"{text[:80]!r} gives the usual latency twice", _HOW)
            usual = delay
        elif not _folded(name) or _folded(name) in sources:
            raise UserError(f"{part.strip()[:80]!r} names no source, or repeats one", _HOW)
        else:
            sources[_folded(name)] = delay
    if len(sources) > MOST_SOURCES:
        raise UserError(f"{len(sources)} sources with a latency of their own; at most {MOST_SOURCES} are allowed")
    return Latency(usual or Delay(), sources)


def arrivals(items: Iterable[NewsItem], latency: Latency, until: Instant) -> list[NewsItem]:
    """The items that have arrived by an instant, in the order of arrival.

    An item that was first seen later does not arrive earlier. An item with a date and no time arrives at the next
    midnight, without added latency.
    """
    items_by_then: list[NewsItem] = []
    for item in items:
        available_at = item.available_at
        if item.published_at % DAY_MS:
            available_at = max(available_at, item.published_at + latency.of(item))
        if available_at <= until:
            items_by_then.append(
                item if available_at == item.available_at else replace(item, available_at=available_at)
            )
    return sorted(
        items_by_then, key=lambda item: (item.available_at, item.published_at, item.source, item.text, item.symbols)
    )


def _delay(text: str) -> Delay:
    low, dots, high = text.partition("..")
    try:
        first = parse_duration(low)
        last = parse_duration(high) if dots else first
    except UserError:
        raise UserError(f"cannot read {text[:80]!r} as a latency", _HOW) from None
    if not 0 <= first <= last <= MOST_MS:
        raise UserError(f"the latency {text[:80]!r} ends before it begins, or is longer than ten years", _HOW)
    return Delay(first, last)


def _folded(source: str) -> str:
    return source.strip().casefold()


def _draw(item: NewsItem) -> int:
    """64 bits of the item's digest."""
    content = codec.dumps([item.published_at, item.source, item.text])
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big")
