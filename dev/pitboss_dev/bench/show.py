"""Rows as cells of a table for people. The numbers themselves are in the rows."""

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
    """Three significant figures, or whole with separators from a thousand on."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def gate(row: BenchRow) -> str:
    """What must hold, and whether it does."""
    if row.gate is None:
        return ""
    wanted = f"{'≥' if row.gate.sense == 'at least' else '≤'} {row.gate.limit:g}×"
    word = {True: "holds", False: "FAILS", None: "not measured"}[row.holds]
    return f"{wanted} {word}"
