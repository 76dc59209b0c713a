"""Which symbols of a run are listed when, and which bars it can stand on although some come late or go early.

Imported listings say it best. Without them the bars do: a symbol whose bars begin inside the range was not listed before
its first bar had closed, one whose bars end inside it is no longer listed once more bars are missing than a hole may
have. Both are known at the instant from which they count: no hole of an accepted run is that long, so that whoever
stands there sees the same without knowing what comes. That a series is merely not downloaded is told apart as far as
the lake allows: another symbol must cover the whole range, and no other interval of the same symbol may say otherwise.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pitboss.core.instant import INTERVALS, Instant, iso
from pitboss.core.market import Bars, Listing
from pitboss.data.lake import Lake


def late_base_interval(
    lake: Lake, venue: str, symbols: Iterable[str], tick_ms: int, from_at: Instant, to_at: Instant, max_gap: int
) -> str | None:
    """The finest interval on which a run can stand where some symbols are listed for a part of the range only."""
    names, told = list(symbols), lake.listings(venue)
    for interval, length in INTERVALS.items():
        if tick_ms % length:
            continue
        extents = {symbol: lake.extent(venue, symbol, interval) for symbol in names}
        spans = any(
            extent is not None and extent[0] <= from_at and extent[1] + length >= to_at for extent in extents.values()
        )
        if all(
            _explained(lake, venue, symbol, interval, extent, told.get(symbol), from_at, to_at, max_gap, spans)
            for symbol, extent in extents.items()
        ):
            return interval
    return None


def _explained(
    lake: Lake,
    venue: str,
    symbol: str,
    interval: str,
    extent: tuple[Instant, Instant] | None,
    told: Listing | None,
    from_at: Instant,
    to_at: Instant,
    max_gap: int,
    spans: bool,
) -> bool:
    """Whether the bars of a symbol cover the range, or it was not listed where they do not."""
    length = INTERVALS[interval]
    if extent is None:
        return False
    first, last = extent[0], extent[1] + length
    slack = max_gap * length
    if (first >= to_at or last <= from_at) and to_at - from_at > slack and told is None:
        return False  # not one bar in the range: more likely data that is missing than a symbol that is
    listed_at, delisted_at = (told.listed_at, told.delisted_at) if told is not None else (None, None)
    others = {
        name: other for name in lake.intervals(venue, symbol) if (other := lake.extent(venue, symbol, name)) is not None
    }
    if first <= from_at:
        begins = True
    elif listed_at is not None:
        begins = first <= max(from_at, listed_at) + slack
    else:  # no bar of another length may be over before the first one here begins
        begins = spans and all(other[0] + INTERVALS[name] > first for name, other in others.items())
    if last >= to_at:
        return begins
    if delisted_at is not None:
        return begins and last >= min(to_at, delisted_at) - slack
    return begins and spans and all(other[1] <= last + slack for other in others.values())


def run_listings(
    told: Mapping[str, Listing], bars: Mapping[str, Bars], from_at: Instant, to_at: Instant, max_gap: int
) -> dict[str, Listing]:
    """The listings of a run over its base bars: of the symbols that are not listed all the way, and of no others."""
    found: dict[str, Listing] = {}
    for symbol, column in sorted(bars.items()):
        said = told.get(symbol, Listing(symbol))
        if not len(column):  # its first bar comes after the range, whenever that is
            found[symbol] = Listing(symbol, max(to_at, said.listed_at or 0))
            continue
        step = column.interval_ms
        first, last = int(column.open_at[0]), int(column.open_at[-1]) + step
        one = said
        if first > from_at:
            one = replace(one, listed_at=max(first + step, said.listed_at or 0))
        silent_at = last + max_gap * step
        if last < to_at and silent_at < to_at and (said.delisted_at is None or silent_at < said.delisted_at):
            one = replace(one, delisted_at=silent_at)  # an announcement, where there was one, stays when it was
        begins = one.listed_at is not None and one.listed_at > from_at
        ends = one.delisted_at is not None and one.delisted_at < to_at
        announced = one.known_at is not None and one.known_at < to_at
        if begins or ends or announced:
            found[symbol] = one
    return found


def required_span(listing: Listing | None, step: int, from_at: Instant, to_at: Instant) -> tuple[Instant, Instant]:
    """The part of a range in which a symbol must have bars."""
    if listing is None:
        return from_at, to_at
    # a bar that is there when the listing begins has opened one step before
    begins = from_at if listing.listed_at is None else max(from_at, min(to_at, listing.listed_at - step))
    ends = to_at if listing.delisted_at is None else max(begins, min(to_at, listing.delisted_at))
    return begins, ends


def listing_notes(listings: Mapping[str, Listing], from_at: Instant, to_at: Instant) -> list[str]:
    """What a person should know about the universe of a run."""
    said: list[str] = []
    for symbol, listing in sorted(listings.items()):
        begins, ends = listing.listed_at, listing.delisted_at
        if begins is not None and begins > from_at:
            said.append(f"{symbol} is not offered before {iso(begins)}: it was not listed, or has no bars from before.")
        if ends is not None and ends < to_at:
            said.append(
                f"{symbol} is no longer offered from {iso(ends)} on: it was delisted, or its bars end. What was held of"
                " it then stays in the account at its last price."
            )
    return said
