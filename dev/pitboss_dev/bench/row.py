"""`BenchRow`: one measured number, its reference and its gate. Values only; nothing is measured here."""

from dataclasses import dataclass
from typing import Any, Literal

Sense = Literal["at least", "at most"]

LIMIT = "limit"
"""The reference of a value that is compared with a fixed number instead of a measured one."""


@dataclass(frozen=True, slots=True)
class RatioGate:
    """A bound on the ratio of a row."""

    sense: Sense
    limit: float

    def holds(self, ratio: float) -> bool:
        """Whether a ratio is within the bound, the limit included."""
        return ratio >= self.limit if self.sense == "at least" else ratio <= self.limit


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One number. `value` is None where it could not be measured; the note then gives the reason."""

    name: str
    value: float | None
    unit: str
    reference: str | None = None
    reference_value: float | None = None
    gate: RatioGate | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Value divided by reference: a speed-up for speeds, a multiple for times."""
        if self.value is None or not self.reference_value:
            return None
        return self.value / self.reference_value

    @property
    def holds(self) -> bool | None:
        """Whether the gate holds; None without a gate or without a ratio."""
        ratio = self.ratio
        return None if self.gate is None or ratio is None else self.gate.holds(ratio)

    def plain(self) -> dict[str, Any]:
        """The row as `--json` prints it."""
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


def failed(rows: list[BenchRow]) -> list[BenchRow]:
    """The rows whose gate does not hold. A row that could not be measured has not failed."""
    return [row for row in rows if row.holds is False]
