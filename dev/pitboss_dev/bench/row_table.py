"""Rows as cells of a table for a terminal."""

from pitboss_dev.bench.row import BenchRow

HEADINGS = ("measurement", "value", "", "against", "", "ratio", "gate", "")
NUMBERS = (1, 4, 5)


def cells(row: BenchRow) -> tuple[str, ...]:
    """One line of the table."""
    ratio = row.ratio
    return (
        row.name,
        number(row.value),
        row.unit,
        row.reference or "",
        number(row.reference_value) if row.reference else "",
        "" if ratio is None else f"{ratio:.2f}×",
        gate(row),
        row.note,
    )


def number(value: float | None) -> str:
    """Three significant figures; from a thousand on a whole number with separators."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def gate(row: BenchRow) -> str:
    """The gate of a row, and whether it holds."""
    if row.gate is None:
        return ""
    condition = f"{'≥' if row.gate.sense == 'at least' else '≤'} {row.gate.limit:g}×"
    result = {True: "holds", False: "FAILS", None: "not measured"}[row.holds]
    return f"{condition} {result}"
