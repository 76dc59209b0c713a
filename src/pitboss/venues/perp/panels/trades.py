"""The table of round trips: entry and exit, size, result after costs, excursions, and a link into the price chart."""

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.source import Plain, RunReport, instant, number
from pitboss.report.table import LEFT, gain_or_loss, table
from pitboss.venues.perp.panels.price import figure_id

MOST_ROWS = 1_000
COLUMNS = tuple(
    (name, LEFT)  # numbers are aligned by the style of the table, to keep a long one small
    for name in (
        "Opened (UTC)", "Closed (UTC)", "Symbol", "Side", "Size", "Entry", "Exit", "Result", "%", "Best", "Worst", "Fees", "Funding",
        "Exit by",
    )
)  # fmt: skip
EXPLAINED = (
    "% is the result after costs, of the largest size at the entry price. Best and worst are how far the price went for and against "
    "the position while it was open. A time leads to the trade in its chart."
)


def trade_section(report: RunReport) -> Html:
    """The table; if there are too many, only the largest results."""
    if not report.trades:
        reason = "A position may still be open at the end." if report.fills else "Nothing was traded."
        return tag("p", f"No round trip was completed. {reason}", class_="note")
    rows, note = list(report.trades), EXPLAINED
    if len(rows) > MOST_ROWS:
        order = sorted(range(len(rows)), key=lambda index: -abs(number(rows[index].get("pnl_usd")) or 0.0))
        rows = [rows[index] for index in sorted(order[:MOST_ROWS])]
        limit, total = figures.count(MOST_ROWS), figures.count(len(report.trades))
        note = f"Shown are the {limit} largest results of {total} round trips. {EXPLAINED}"
    end = report.equity[-1][0] if len(report.equity) else None
    cells = [_row(row, row.get("symbol") in report.prices, end) for row in rows]
    return join(
        [
            tag("p", note, class_="note"),
            table("Round trips", COLUMNS, cells, style="round-trips", tall=len(rows) > 30),
        ]
    )


def _row(row: Plain, has_chart: bool, end: float | None) -> tuple[object, ...]:
    opened, closed = instant(row.get("opened_at")), instant(row.get("closed_at"))
    result, entry, size = (number(row.get(name)) for name in ("pnl_usd", "entry_price", "max_size"))
    percent = None if result is None or not entry or not size else 100.0 * result / (entry * abs(size))
    reason = row.get("exit_reason") or row.get("exit") or figures.NONE
    until = closed if closed is not None else end
    when: object = figures.clock(opened)
    if has_chart and opened is not None and until is not None:
        when = tag("a", when, href=f"#{figure_id(str(row['symbol']))}", data_range=f"{opened} {int(until)}")
    return (
        when,
        figures.clock(closed) if closed is not None else "still open",
        row.get("symbol") or figures.NONE,
        row.get("side") or figures.NONE,
        figures.amount(size),
        figures.price(entry),
        figures.price(row.get("exit_price")),
        gain_or_loss(figures.usd(result, signed=True), figures.tone(result)),
        figures.percent(percent, signed=True),
        figures.percent(row.get("best_pct"), signed=True),
        figures.percent(row.get("worst_pct"), signed=True),
        figures.usd(row.get("fees_usd")),
        figures.usd(row.get("funding_usd")),
        str(reason).replace("_", " "),
    )
