"""Values the open positions at the closes of consecutive bars: as integers where the digits fit, else in decimals.

Both give the same amounts; `world.py` turns them into pieces of the equity curve (`core.curve`). All functions are
pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise

from pitboss.core.money import ZERO, decimals
from pitboss.venues.perp.state import Position, TradingTerms, in_order
from pitboss.venues.perp.tape import Tape


def even_parts(positions: Iterable[str], tape: Tape, start: int, stop: int) -> Sequence[tuple[int, int]]:
    """Split a range of bars into parts with one base and no gap in time."""
    cuts = {first for first in tape.breaks if start < first < stop} if tape.breaks else set[int]()
    if tape.funding:
        for symbol in positions:
            cuts.update(tape.funded_bars(symbol, start, stop)[0].tolist())
    if not cuts:
        return ((start, stop),)
    return tuple(pairwise(sorted({start, stop, *cuts})))


_MOST = 1 << 62
"""Upper bound of stored integers: one bit less than what JSON readers and columns accept."""


def held_units(
    positions: Mapping[str, Position], terms: TradingTerms, tape: Tape, start: int, stop: int
) -> tuple[int, list[int]] | None:
    """Return the value of the positions at each close as integers with a number of decimal places.

    None if it does not fit in 63 bits.
    """
    total: list[int] | None = None
    places = 0
    for symbol, held in positions.items():
        column, lot_places = tape.scaled_close.get(symbol), terms.assets[symbol].size_decimals
        lots = held.size.scaleb(lot_places)
        count, first_close = int(lots), tape.filled[symbol].item(start)
        if column is None or lots != count or first_close != first_close:  # NaN: its mark is older than this tape
            return None
        if abs(count) * column.largest >= _MOST:
            return None
        own = column.decimals + lot_places
        one = stop - start == 1
        value: list[int] = [column.units.item(start) * count] if one else (column.units[start:stop] * count).tolist()
        if total is None:
            total, places = value, own
            continue
        more = max(places, own)
        ours, theirs = 10 ** (more - places), 10 ** (more - own)
        total = [mine * ours + other * theirs for mine, other in zip(total, value, strict=True)]
        places = more
        if max(max(total), -min(total)) >= _MOST:
            return None
    return None if total is None else (places, total)


def held_values(positions: Mapping[str, Position], tape: Tape, start: int, stop: int) -> list[Decimal]:
    """Return the same values in decimals, for any number of digits."""
    values = [ZERO] * (stop - start)
    for held in in_order(positions):
        closes = decimals(tape.filled[held.symbol][start:stop].tolist())
        values = [value + held.size * close for value, close in zip(values, closes, strict=True)]
    return values
