"""What a study varies, and over which values: `risk.max_leverage=1,2,5` or `context.bars_lookback=50..200:25`.

A value stays the text that was written: what it means is said by the field it is put into, as with `--set`. Which fields
there are is not known here.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from pitboss.core.errors import UserError
from pitboss.core.money import text

Point = Mapping[str, str]
"""One place in a study: what each axis is set to."""

MOST_VALUES = 10_000
NOTCHES = 10_000
"""Places on a span of fractions: finer differences than these are never meant."""
HOW = "for example --vary risk.max_leverage=1,2,5 or --vary context.bars_lookback=50..200:25"
_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_SPAN = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?::({_NUMBER}))?")


@dataclass(frozen=True, slots=True)
class NumberRange:
    """All numbers from one to another, both included; with a step, those that it reaches."""

    low: Decimal
    high: Decimal
    step: Decimal | None = None

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are meant: that is how all of it was written."""
        return all(number is None or number == int(number) for number in (self.low, self.high, self.step))

    @property
    def notch(self) -> Decimal:
        """The distance between neighbours that a draw can tell apart."""
        if self.step is not None:
            return self.step
        return Decimal(1) if self.whole else (self.high - self.low) / NOTCHES

    @property
    def count(self) -> int:
        """How many values there are, a notch apart."""
        return int((self.high - self.low) / self.notch) + 1

    def at(self, place: int) -> str:
        """The value that is so many notches above the lowest."""
        return text(self.low + place * self.notch)


@dataclass(frozen=True, slots=True)
class Axis:
    """One thing that is varied: a field, and the values and spans it takes."""

    name: str
    parts: tuple[str | NumberRange, ...]

    def every(self) -> tuple[str, ...]:
        """All values in the order in which they were written, for a grid."""
        found: dict[str, None] = {}
        for part in self.parts:
            if isinstance(part, str):
                found[part] = None
                continue
            if part.step is None and not (part.whole and self.name == "seed"):
                low, high = text(part.low), text(part.high)
                raise UserError(
                    f"--vary {self.name}={low}..{high}: a grid needs a step",
                    f"for example {self.name}={low}..{high}:{text((part.high - part.low) / 4)}, or draw with --random 20",
                )
            if part.count > MOST_VALUES:
                raise UserError(
                    f"--vary {self.name}: {part.count} values", f"at most {MOST_VALUES}; take a larger step"
                )
            found.update(dict.fromkeys(part.at(place) for place in range(part.count)))
        return tuple(found)

    def draw(self, uniform: float) -> str:
        """The value at a share of the way through, 0 to just below 1: every part counts the same, and so does every
        value of a part."""
        share = min(max(uniform, 0.0), 1.0) * len(self.parts)
        place = min(int(share), len(self.parts) - 1)
        part = self.parts[place]
        if isinstance(part, str):
            return part
        return part.at(min(int((share - place) * part.count), part.count - 1))

    @property
    def written(self) -> str:
        """The axis as a person writes it."""
        return f"{self.name}={','.join(_written(part) for part in self.parts)}"


def parse_axis(words: str) -> Axis:
    """`name=values` as it is written on a command line. Raises `UserError`."""
    name, equals, values = words.partition("=")
    name = name.strip()
    if not equals or not name:
        raise UserError(f"--vary {words}: no field and values", HOW)
    parts = [part.strip() for part in _split(values)]
    if not parts or not all(parts):
        raise UserError(f"--vary {words}: a value is empty", HOW)
    if len(parts) > MOST_VALUES:
        raise UserError(f"--vary {name}: {len(parts)} values", f"at most {MOST_VALUES}")
    return Axis(name, tuple(dict.fromkeys(_part(name, part) for part in parts)))


def parse_axes(words: Iterable[str]) -> tuple[Axis, ...]:
    """Several axes; a field may be varied once."""
    axes = tuple(parse_axis(one) for one in words)
    names = sorted(axis.name for axis in axes)
    twice = next((one for one, other in pairwise(names) if one == other), None)
    if twice is not None:
        raise UserError(f"--vary {twice}: given twice", "put all its values into one, with commas between")
    return axes


def words_of(point: Point) -> str:
    """A point in a line."""
    return ", ".join(f"{name.rpartition('.')[2]}={value}" for name, value in point.items()) or "as it is"


def _part(name: str, words: str) -> str | NumberRange:
    found = _SPAN.fullmatch(words)
    if found is None:
        return words
    low, high = Decimal(found[1]), Decimal(found[2])
    step = None if found[3] is None else Decimal(found[3])
    if high < low:
        raise UserError(f"--vary {name}={words}: ends before it begins", f"write {found[2]}..{found[1]}")
    if step is not None and step <= 0:
        raise UserError(f"--vary {name}={words}: a step must be above zero", "for example 50..200:25")
    return text(low) if low == high else NumberRange(low, high, step)


def _split(words: str) -> list[str]:
    """At commas, but not inside brackets: `[BTC,ETH],[SOL]` are two values."""
    parts, depth, start = list[str](), 0, 0
    for place, letter in enumerate(words):
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0:
            parts.append(words[start:place])
            start = place + 1
    return [*parts, words[start:]]


def _written(part: str | NumberRange) -> str:
    if isinstance(part, str):
        return part
    return f"{text(part.low)}..{text(part.high)}" + ("" if part.step is None else f":{text(part.step)}")
