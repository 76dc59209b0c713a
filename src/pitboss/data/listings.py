"""When the symbols of a run are listed, and which base interval it can use where some are listed for a part of it.

Imported listings come first. Without them the bars decide: a symbol whose bars begin inside the range was not listed before
its first bar had closed; one whose bars end inside it is no longer listed once more bars are missing than a gap may have.
Both are known at the instant from which they count, because no gap of an accepted run is that long. To
distinguish a series that was merely not downloaded, another symbol must cover the whole range, and no other interval of the
same symbol may contradict.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pitboss.core.instant import INTERVALS, Instant, iso
from pitboss.core.market import Bars, Listing
from pitboss.data.lake import Lake


def late_base_interval(
    lake: Lake, venue: str, symbols: Iterable[str], tick_ms: int, from_at: Instant, to_at: Instant, max_gap: int
) -> str | None:
    """The finest base interval for a run whose symbols may be listed for a part of the range only."""
    names, imported = list(symbols), lake.listings(venue)
    for interval, length in INTERVALS.items():
        if tick_ms % length:
            continue
        extents = {symbol: lake.extent(venue, symbol, interval) for symbol in names}
        spans = any(
            extent is not None and extent[0] <= from_at and extent[1] + length >= to_at for extent in extents.values()
        )
        if all(
            _explained(lake, venue, symbol, interval, extent, imported.get(symbol), from_at, to_at, max_gap, spans)
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
    imported: Listing | None,
    from_at: Instant,
    to_at: Instant,
    max_gap: int,
    spans: bool,
) -> bool:
    """Whether the bars of a symbol cover the range, except for the part in which it was not listed."""
    length = INTERVALS[interval]
    if extent is None:
        return False
    first, last = extent[0], extent[1] + length
    slack = max_gap * length
    if (first >= to_at or last <= from_at) and to_at - from_at > slack and imported is None:
        return False  # no bar in the range: more likely missing data than a symbol that is not listed
    listed_at, delisted_at = (None, None) if imported is None else (imported.listed_at, imported.delisted_at)
    extents = {name: lake.extent(venue, symbol, name) for name in lake.intervals(venue, symbol)}
    other_extents = {name: extent for name, extent in extents.items() if extent is not None}
    if first <= from_at:
        begins = True
    elif listed_at is not None:
        begins = first <= max(from_at, listed_at) + slack
    else:  # no bar of another length may be over before the first one here begins
        begins = spans and all(start + INTERVALS[name] > first for name, (start, _) in other_extents.items())
    if last >= to_at:
        return begins
    if delisted_at is not None:
        return begins and last >= min(to_at, delisted_at) - slack
    return begins and spans and all(end <= last + slack for _, end in other_extents.values())


def run_listings(
    imported: Mapping[str, Listing], bars: Mapping[str, Bars], from_at: Instant, to_at: Instant, max_gap: int
) -> dict[str, Listing]:
    """The listings of the symbols that are not listed during the whole range."""
    listings: dict[str, Listing] = {}
    for symbol, column in sorted(bars.items()):
        original = imported.get(symbol, Listing(symbol))
        if not len(column):  # its first bar comes after the range
            listings[symbol] = Listing(symbol, max(to_at, original.listed_at or 0))
            continue
        step = column.interval_ms
        first, last = int(column.open_at[0]), int(column.open_at[-1]) + step
        listing = original
        if first > from_at:
            listing = replace(listing, listed_at=max(first + step, original.listed_at or 0))
        silent_at = last + max_gap * step
        if last < to_at and silent_at < to_at and (original.delisted_at is None or silent_at < original.delisted_at):
            listing = replace(listing, delisted_at=silent_at)  # the time of an announcement does not change
        begins = listing.listed_at is not None and listing.listed_at > from_at
        ends = listing.delisted_at is not None and listing.delisted_at < to_at
        announced = listing.known_at is not None and listing.known_at < to_at
        if begins or ends or announced:
            listings[symbol] = listing
    return listings


def required_span(listing: Listing | None, step: int, from_at: Instant, to_at: Instant) -> tuple[Instant, Instant]:
    """The part of a range in which a symbol must have bars."""
    if listing is None:
        return from_at, to_at
    # the bar that closes when the listing begins has opened one step before
    begins = from_at if listing.listed_at is None else max(from_at, min(to_at, listing.listed_at - step))
    ends = to_at if listing.delisted_at is None else max(begins, min(to_at, listing.delisted_at))
    return begins, ends


def listing_notes(listings: Mapping[str, Listing], from_at: Instant, to_at: Instant) -> list[str]:
    """Notes for the user about symbols that are not listed during the whole range."""
    notes: list[str] = []
    for symbol, listing in sorted(listings.items()):
        begins, ends = listing.listed_at, listing.delisted_at
        if begins is not None and begins > from_at:
            notes.append(
                f"{symbol} is not offered before {iso(begins)}: it was not listed, or has no bars from before."
            )
        if ends is not None and ends < to_at:
            notes.append(
                f"{symbol} is no longer offered from {iso(ends)} on: it was delisted, or its bars end. What was held of"
                " it then stays in the account at its last price."
            )
    return notes
