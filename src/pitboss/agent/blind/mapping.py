"""The mapping of a blind run: the alias and the scale factors of every symbol, and the shift of dates in weeks.

It is drawn from a seed and depends on nothing else but the symbols and the price levels known at the start, so it is
the same on every machine. Each venue applies it to what its agents see.
"""

import hashlib
from collections.abc import Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from itertools import count
from math import log2
from typing import Any

from pitboss.core.noun import noun

FEWEST_WEEKS, MOST_WEEKS = 1_250, 2_600
"""Shift of 24 to 50 years: no model was trained on that time, and no year of the range remains."""

SEASON_DAYS = 60
"""Least shift within the year, so that the season does not reveal the date."""

LETTERS = "KMNPQRTUVWXYZFGHJ"
"""Letters for aliases: no initial of a well-known coin, and no article, which would make two headlines look alike."""

LEAST_POWER = 6
"""Prices are scaled by a factor of at least 64, so that no scaled bar looks like the true price of another symbol."""

LOWEST, HIGHEST = -1.0, 12.0
"""Range of scaled prices as powers of two, if their level is known: large enough for sizes, small enough for digits."""

APART = 2.0
"""Least distance in powers of two between a scaled price and any true price of the run."""

FEWEST = 3
"""Least number of candidate powers; if there are fewer, the range is extended."""

TURNOVER = (3, 10)
"""Least and greatest power of two by which volumes in money are scaled."""


@noun
class Alias:
    """The alias of one symbol. Prices are multiplied by 2^price_power, volumes by 2^volume_power."""

    symbol: str
    name: str
    price_power: int
    volume_power: int

    @property
    def price(self) -> Decimal:
        """The factor for prices."""
        return power(self.price_power)

    @property
    def size(self) -> Decimal:
        """The factor for sizes."""
        return power(-self.price_power)

    @property
    def volume(self) -> Decimal:
        """The factor for volumes and open interest."""
        return power(self.volume_power)


def draw_mapping(symbols: Sequence[str], seed: int, levels: Mapping[str, float]) -> tuple[tuple[Alias, ...], int]:
    """Draw the aliases of the symbols, sorted by alias, and the shift in weeks."""
    ordered = sorted(set(symbols))
    random = _SeededRandom(f"{seed}\n{chr(10).join(ordered)}")
    stem = next(
        stem
        for stem in ("ASSET-", "MARKET-", "THING-", "ITEM-")
        if not any(symbol.upper().startswith(stem) for symbol in ordered)
    )
    names = random.shuffled([stem + _letters(index) for index in range(len(ordered))])
    aliases: list[Alias] = []
    for symbol, name in zip(ordered, names, strict=True):
        price_power = random.choice(_price_powers(symbol, levels))
        turnovers = [sign * size for sign in (-1, 1) for size in range(TURNOVER[0], TURNOVER[1] + 1)]
        powers = [turnover - price_power for turnover in turnovers if abs(turnover - price_power) >= TURNOVER[0]]
        near = [power for power in powers if abs(power) <= TURNOVER[1]]
        aliases.append(Alias(symbol, name, price_power, random.choice(near or powers)))
    weeks = [weeks for weeks in range(FEWEST_WEEKS, MOST_WEEKS) if _other_season(weeks)]
    return tuple(sorted(aliases, key=lambda alias: alias.name)), random.choice(weeks)


def power(exponent: int) -> Decimal:
    """2^exponent, exactly."""
    return Decimal(2**exponent) if exponent >= 0 else Decimal(5**-exponent).scaleb(exponent)


def scale(value: Any, exponent: int) -> Any:
    """A number times 2^exponent without losing a digit; other values are returned unchanged."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return value
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        return value
    factor = power(exponent)
    digits = len(number.as_tuple().digits) + len(factor.as_tuple().digits)
    wide = Context(prec=digits, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN)
    return _short(wide.multiply(number, factor))


def _short(number: Decimal) -> Decimal:
    """Remove the trailing zeros that scaling adds, so that scaling back restores the original notation."""
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or exponent >= 0 or digits[-1]:
        return number
    length = len(digits)
    while length > 1 and not digits[length - 1] and exponent < 0:
        length, exponent = length - 1, exponent + 1
    return Decimal((sign, digits[:length], exponent))


def _price_powers(symbol: str, levels: Mapping[str, float]) -> Sequence[int]:
    """The powers of two that hide a symbol's price level."""
    far = [power for power in range(-40, 41) if abs(power) >= LEAST_POWER]
    log_levels = {each: log2(level) for each, level in levels.items() if 0 < level < float("inf")}
    if symbol not in log_levels:
        return [power for power in far if abs(power) <= LEAST_POWER + FEWEST]
    for wider in range(40):
        low, high = LOWEST - log_levels[symbol] - wider, HIGHEST - log_levels[symbol] + wider
        fitting = [
            power
            for power in far
            if low <= power <= high
            and all(abs(log_levels[symbol] + power - other) >= APART for other in log_levels.values())
        ]
        if len(fitting) >= FEWEST:
            return fitting
    return far


def _other_season(weeks: int) -> bool:
    within = (weeks * 7) % 365.2425
    return SEASON_DAYS <= within <= 365.2425 - SEASON_DAYS


def _letters(index: int) -> str:
    prefix, letter = divmod(index, len(LETTERS))
    return (_letters(prefix - 1) if prefix else "") + LETTERS[letter]


class _SeededRandom:
    """A deterministic random generator seeded by a text, the same on every machine."""

    def __init__(self, seed: str) -> None:
        self._numbers = (
            int.from_bytes(hashlib.sha256(b"disguise %d " % index + seed.encode()).digest()[:8], "big")
            for index in count()
        )

    def choice(self, options: Sequence[Any]) -> Any:
        return options[next(self._numbers) % len(options)]

    def shuffled(self, values: Sequence[Any]) -> list[Any]:
        remaining = list(values)
        return [remaining.pop(next(self._numbers) % len(remaining)) for _ in values]
