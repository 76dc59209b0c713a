"""The axes of a study: a field and its values, such as `risk.max_leverage=1,2,5` or `context.bars_lookback=50..200:25`.

A value remains text: the field that receives it defines its meaning, as with `--set`. This module does not know which fields
exist.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from pitboss.core.errors import UserError
from pitboss.core.money import text

Point = Mapping[str, str]
"""One point of a study: the value of each axis."""

MAX_VALUES = 10_000
FRACTION_STEPS = 10_000
"""Distinct values in a range of fractions without a step."""
HOW = "for example --vary risk.max_leverage=1,2,5 or --vary context.bars_lookback=50..200:25"
_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_SPAN = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?::({_NUMBER}))?")


@dataclass(frozen=True, slots=True)
class NumberRange:
    """All numbers from `low` to `high`, both included; with a step, those at multiples of it."""

    low: Decimal
    high: Decimal
    step: Decimal | None = None

    @property
    def is_integer(self) -> bool:
        """Whether the range consists of integers: all of its parts are."""
        return all(number is None or number == int(number) for number in (self.low, self.high, self.step))

    @property
    def resolution(self) -> Decimal:
        """The distance between neighbouring values."""
        if self.step is not None:
            return self.step
        return Decimal(1) if self.is_integer else (self.high - self.low) / FRACTION_STEPS

    @property
    def count(self) -> int:
        """The number of values."""
        return int((self.high - self.low) / self.resolution) + 1

    def at(self, index: int) -> str:
        """The value at an index, counted from the lowest."""
        return text(self.low + index * self.resolution)


@dataclass(frozen=True, slots=True)
class Axis:
    """A varied field with its values and ranges."""

    name: str
    parts: tuple[str | NumberRange, ...]

    def grid_values(self) -> tuple[str, ...]:
        """All values for a grid, in the order of the specification."""
        values: dict[str, None] = {}
        for part in self.parts:
            if isinstance(part, str):
                values[part] = None
                continue
            if part.step is None and not (part.is_integer and self.name == "seed"):
                low, high = text(part.low), text(part.high)
                raise UserError(
                    f"--vary {self.name}={low}..{high}: a grid needs a step",
                    f"for example {self.name}={low}..{high}:{text((part.high - part.low) / 4)}, or draw with --random 20",
                )
            if part.count > MAX_VALUES:
                raise UserError(f"--vary {self.name}: {part.count} values", f"at most {MAX_VALUES}; take a larger step")
            values.update(dict.fromkeys(part.at(index) for index in range(part.count)))
        return tuple(values)

    def draw(self, uniform: float) -> str:
        """The value for a uniform number in [0, 1): every part has the same probability, and so has every value of a part."""
        share = min(max(uniform, 0.0), 1.0) * len(self.parts)
        index = min(int(share), len(self.parts) - 1)
        part = self.parts[index]
        if isinstance(part, str):
            return part
        return part.at(min(int((share - index) * part.count), part.count - 1))

    @property
    def spec(self) -> str:
        """The axis in the syntax of the command line."""
        return f"{self.name}={','.join(_spec(part) for part in self.parts)}"


def parse_axis(spec: str) -> Axis:
    """Parse `name=values` from a command line. Raises `UserError`."""
    name, equals, values = spec.partition("=")
    name = name.strip()
    if not equals or not name:
        raise UserError(f"--vary {spec}: the field or its values are missing", HOW)
    parts = [part.strip() for part in _split(values)]
    if not parts or not all(parts):
        raise UserError(f"--vary {spec}: a value is empty", HOW)
    if len(parts) > MAX_VALUES:
        raise UserError(f"--vary {name}: {len(parts)} values", f"at most {MAX_VALUES}")
    return Axis(name, tuple(dict.fromkeys(_part(name, part) for part in parts)))


def parse_axes(specs: Iterable[str]) -> tuple[Axis, ...]:
    """Parse several axes. A field may occur once."""
    axes = tuple(parse_axis(spec) for spec in specs)
    names = sorted(axis.name for axis in axes)
    repeated = next((name for name, following in pairwise(names) if name == following), None)
    if repeated is not None:
        raise UserError(
            f"--vary {repeated}: given twice", "write all values of a field in one --vary, separated by commas"
        )
    return axes


def describe_point(point: Point) -> str:
    """A point in one line."""
    return ", ".join(f"{name.rpartition('.')[2]}={value}" for name, value in point.items()) or "unchanged"


def _part(name: str, spec: str) -> str | NumberRange:
    match = _SPAN.fullmatch(spec)
    if match is None:
        return spec
    low, high = Decimal(match[1]), Decimal(match[2])
    step = None if match[3] is None else Decimal(match[3])
    if high < low:
        raise UserError(f"--vary {name}={spec}: the range ends before it begins", f"write {match[2]}..{match[1]}")
    if step is not None and step <= 0:
        raise UserError(f"--vary {name}={spec}: a step must be above zero", "for example 50..200:25")
    return text(low) if low == high else NumberRange(low, high, step)


def _split(spec: str) -> list[str]:
    """Split at commas that are not inside brackets: `[BTC,ETH],[SOL]` are two values."""
    parts, depth, start = list[str](), 0, 0
    for index, character in enumerate(spec):
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth == 0:
            parts.append(spec[start:index])
            start = index + 1
    return [*parts, spec[start:]]


def _spec(part: str | NumberRange) -> str:
    if isinstance(part, str):
        return part
    return f"{text(part.low)}..{text(part.high)}" + ("" if part.step is None else f":{text(part.step)}")
