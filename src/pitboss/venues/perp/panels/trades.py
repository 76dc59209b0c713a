"""The table of round trips: position, duration and result after costs."""

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.source import Plain, RunReport, instant, number
from pitboss.report.table import LEFT, RIGHT, gain_or_loss, table

MOST_ROWS = 1_000
COLUMNS = (
    ("Opened (UTC)", LEFT),
    ("Symbol", LEFT),
    ("Side", LEFT),
    ("Closed (UTC)", LEFT),
    ("Held", RIGHT),
    ("Result", RIGHT),
    ("Fees", RIGHT),
    ("Funding", RIGHT),
    ("Exit", LEFT),
)


def trade_section(report: RunReport) -> Html:
    """The table; if there are too many, only the largest results."""
    if not report.trades:
        reason = "A position may still be open at the end." if report.fills else "Nothing was traded."
        return tag("p", f"No round trip was completed. {reason}", class_="note")
    rows = list(report.trades)
    note = Html()
    if len(rows) > MOST_ROWS:
        order = sorted(range(len(rows)), key=lambda index: -abs(number(rows[index].get("pnl_usd")) or 0.0))
        rows = [rows[index] for index in sorted(order[:MOST_ROWS])]
        limit, total = figures.count(MOST_ROWS), figures.count(len(report.trades))
        note = tag("p", f"Shown are the {limit} largest results of {total} round trips.", class_="note")
    return join([note, table("Round trips", COLUMNS, [_row(row) for row in rows], style="trades", tall=len(rows) > 30)])


def _row(row: Plain) -> tuple[object, ...]:
    opened, closed = instant(row.get("opened_at")), instant(row.get("closed_at"))
    result = number(row.get("pnl_usd"))
    reason = row.get("exit_reason") or row.get("exit") or figures.NONE
    return (
        figures.clock(opened),
        row.get("symbol") or figures.NONE,
        row.get("side") or figures.NONE,
        figures.clock(closed) if closed is not None else "still open",
        figures.span(closed - opened) if opened is not None and closed is not None else figures.NONE,
        gain_or_loss(figures.usd(result, signed=True), figures.tone(result)),
        figures.usd(row.get("fees_usd")),
        figures.usd(row.get("funding_usd")),
        str(reason).replace("_", " "),
    )
