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


def constant_base_parts(positions: Iterable[str], tape: Tape, start: int, stop: int) -> Sequence[tuple[int, int]]:
    """Split a range of bars into parts with one base and no gap in time."""
    if not tape.breaks and not tape.funding:
        return ((start, stop),)
    boundaries = {first for first in tape.breaks if start < first < stop}
    if tape.funding:
        for symbol in positions:
            boundaries.update(tape.funded_bars(symbol, start, stop)[0].tolist())
    if not boundaries:
        return ((start, stop),)
    return tuple(pairwise(sorted({start, stop, *boundaries})))


_MAX_UNITS = 1 << 62
"""Upper bound of stored integers: one bit less than what JSON readers and columns accept."""


def scaled_position_values(
    positions: Mapping[str, Position], terms: TradingTerms, tape: Tape, start: int, stop: int
) -> tuple[int, list[int]] | None:
    """Return the value of the positions at each close as integers with a number of decimal places.

    None if it does not fit in 63 bits.
    """
    total: list[int] | None = None
    decimal_places = 0
    for symbol, position in positions.items():
        column, lot_places = tape.scaled_close.get(symbol), terms.assets[symbol].size_decimals
        lots = position.size.scaleb(lot_places)
        count, first_close = int(lots), tape.filled_close[symbol].item(start)
        if column is None or lots != count or first_close != first_close:  # NaN: its mark is older than this tape
            return None
        if abs(count) * column.largest >= _MAX_UNITS:
            return None
        symbol_places = column.decimals + lot_places
        single_bar = stop - start == 1
        values: list[int] = (
            [column.units.item(start) * count] if single_bar else (column.units[start:stop] * count).tolist()
        )
        if total is None:
            total, decimal_places = values, symbol_places
            continue
        wider_places = max(decimal_places, symbol_places)
        total_factor, value_factor = 10 ** (wider_places - decimal_places), 10 ** (wider_places - symbol_places)
        total = [amount * total_factor + added * value_factor for amount, added in zip(total, values, strict=True)]
        decimal_places = wider_places
        if max(max(total), -min(total)) >= _MAX_UNITS:
            return None
    return None if total is None else (decimal_places, total)


def position_values(positions: Mapping[str, Position], tape: Tape, start: int, stop: int) -> list[Decimal]:
    """Return the same values in decimals, for any number of digits."""
    values = [ZERO] * (stop - start)
    for position in in_order(positions):
        closes = decimals(tape.filled_close[position.symbol][start:stop].tolist())
        values = [value + position.size * close for value, close in zip(values, closes, strict=True)]
    return values
