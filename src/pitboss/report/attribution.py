"""The section about simulation against live: the difference of the two results, its parts, and a table of the trades.

Its input is the document of `pitboss attribution --json`, so the page of a run, the web app and a file of its own show the same.
"""

from pitboss.report import figures
from pitboss.report.headline import header
from pitboss.report.markup import Html, join, tag
from pitboss.report.shell import ReportPage
from pitboss.report.source import Plain, instant, mapping, number
from pitboss.report.table import LEFT, RIGHT, facts, gain_or_loss, table

MOST_ROWS = 1_000
PART_NAMES = {
    "latency_usd": "Latency",
    "slippage_usd": "Slippage",
    "fees_usd": "Fees",
    "funding_usd": "Funding",
    "missed_usd": "Missed fills",
    "rest_usd": "Rest",
}
PART_MEANINGS = {
    "latency_usd": "the market's move between a decision and its fill",
    "slippage_usd": "the price of a fill against the market at that time",
    "fees_usd": "fees",
    "funding_usd": "funding",
    "missed_usd": "size, or an exit, that only one of the two had",
    "rest_usd": "everything else: other marks of open positions, penalties, deposits and withdrawals",
}
COLUMNS = (
    ("Opened (UTC)", LEFT),
    ("Symbol", LEFT),
    ("Side", LEFT),
    ("Live", RIGHT),
    ("Paper", RIGHT),
    ("Difference", RIGHT),
    *((name, RIGHT) for name in PART_NAMES.values()),
)
EXPLANATION = (
    "The recorded decisions were replayed in the paper world, from the same account. A part is what it added to the result of the "
    "deployment: a negative amount is a loss against the simulation."
)


def attribution_section(document: Plain | None, note: str = "") -> Html:
    """The content of the section; `note` says why there is no document."""
    if document is None:
        return tag("p", note or "The decisions of this deployment were not replayed on paper.", class_="note")
    rows = list(document.get("trades") or ())
    shown = rows[:MOST_ROWS]
    parts: list[Html] = [tag("p", _sentence(document)), tag("p", EXPLANATION, class_="note"), _parts(document)]
    if len(rows) > len(shown):
        limit, total = figures.count(MOST_ROWS), figures.count(len(rows))
        parts.append(tag("p", f"Shown are the first {limit} of {total} trades.", class_="note"))
    if shown:
        parts.append(
            table("Simulation against live, by trade", COLUMNS, [_row(row) for row in shown], tall=len(shown) > 30)
        )
    parts += [tag("p", str(text), class_="note") for text in document.get("notes") or ()]
    return join(parts)


def attribution_page(document: Plain, name: str) -> ReportPage:
    """A page of its own for a span."""
    rows = [
        ("Period", f"{figures.clock(instant(document.get('from')))} to {figures.clock(_until(document))} UTC"),
        ("Mode", document.get("mode")),
        ("Deployment", document.get("deployment_id")),
    ]
    top = [header("Simulation against live", str(document.get("mode")), True, name, rows)]
    section = ("attribution", "Trades", "Simulation against live", attribution_section(document))
    return ReportPage(name, top, [_sentence(document)], [section])


def _until(document: Plain) -> int | None:
    return instant(document.get("compared_until"))


def _sentence(document: Plain) -> str:
    live, paper = mapping(document.get("live")), mapping(document.get("paper"))
    difference = number(document.get("difference_usd")) or 0.0
    text = (
        f"Until {figures.clock(_until(document))} the deployment made {figures.usd(live.get('result_usd'), signed=True)}; on paper "
        f"the same decisions made {figures.usd(paper.get('result_usd'), signed=True)}"
    )
    return (
        f"{text}: the same." if not difference else f"{text}, a difference of {figures.usd(difference, signed=True)}."
    )


def _parts(document: Plain) -> Html:
    parts = mapping(document.get("parts"))
    pairs = [
        (f"{name}: {PART_MEANINGS[key]}", _money(parts.get(key))) for key, name in PART_NAMES.items() if key in parts
    ]
    return facts(pairs)


def _row(row: Plain) -> tuple[object, ...]:
    return (
        figures.clock(instant(row.get("opened_at"))),
        row.get("symbol") or figures.NONE,
        row.get("side") or figures.NONE,
        _money(row.get("live_usd")),
        _money(row.get("paper_usd")),
        _money(row.get("difference_usd")),
        *(_money(row.get(key)) for key in PART_NAMES),
    )


def _money(value: object) -> Html:
    return gain_or_loss(figures.usd(value, signed=True), figures.tone(number(value)))
