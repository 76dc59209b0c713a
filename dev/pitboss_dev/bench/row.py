"""`BenchRow`: one measured number, what it is compared with, and the gate it has to hold. Values only; nothing measures here."""

from dataclasses import dataclass
from typing import Any, Literal

Sense = Literal["at least", "at most"]

LIMIT = "limit"
"""The reference of a value that is held against a fixed number and not against something measured."""


@dataclass(frozen=True, slots=True)
class RatioGate:
    """What the ratio of a row must be."""

    sense: Sense
    limit: float

    def holds(self, ratio: float) -> bool:
        """Whether a ratio is on the right side; the limit itself is."""
        return ratio >= self.limit if self.sense == "at least" else ratio <= self.limit


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One number. `value` is None where it could not be measured; the note then says why."""

    name: str
    value: float | None
    unit: str
    reference: str | None = None
    reference_value: float | None = None
    gate: RatioGate | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Value over reference, whatever the unit: a speed-up for speeds, a multiple for times."""
        if self.value is None or not self.reference_value:
            return None
        return self.value / self.reference_value

    @property
    def holds(self) -> bool | None:
        """Whether the gate holds; None without a gate or without a ratio to judge."""
        ratio = self.ratio
        return None if self.gate is None or ratio is None else self.gate.holds(ratio)

    def plain(self) -> dict[str, Any]:
        """The row as it is printed with `--json`."""
        gate = None
        if self.gate is not None:
            gate = {"sense": self.gate.sense, "ratio": self.gate.limit, "holds": self.holds}
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "reference": self.reference,
            "reference_value": self.reference_value,
            "ratio": self.ratio,
            "gate": gate,
            "note": self.note,
        }


def skipped(name: str, unit: str, reason: str, reference: str | None = None, gate: RatioGate | None = None) -> BenchRow:
    """A row that could not be measured here."""
    return BenchRow(name, None, unit, reference, None, gate, f"skipped: {reason}")


def failed(rows: "list[BenchRow]") -> "list[BenchRow]":
    """Rows whose gate was measured and does not hold. What could not be measured has not failed."""
    return [row for row in rows if row.holds is False]
