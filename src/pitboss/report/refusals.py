"""The table of refusals: each rule with its count, its meaning and one example."""

from collections.abc import Mapping

from pitboss.report import figures
from pitboss.report.funnel import Funnel
from pitboss.report.markup import Html, join, tag
from pitboss.report.source import Plain, RunReport, instant, number
from pitboss.report.table import LEFT, RIGHT, table

ACTIONS = {
    "open_long": "Open long",
    "open_short": "Open short",
    "close": "Close",
    "reduce": "Reduce",
    "cancel": "Cancel",
    "no_op": "Hold",
}


def describe_action(row: Plain) -> str:
    """`Open long BTC` for a decision."""
    name = row.get("action")
    verb = ACTIONS.get(str(name), str(name)) if name else "Hold"
    return f"{verb} {row.get('symbol')}" if row.get("symbol") and verb != "Hold" else verb


def refusal_section(report: RunReport, funnel: Funnel, anchors: Mapping[tuple[int, str], str]) -> Html:
    """The table, or a sentence if nothing was refused."""
    if not funnel.refused:
        return tag("p", "The engine refused nothing in this run.", class_="note")
    examples = _examples(report)
    rows = [
        (
            tag("span", tag("code", code), tag("small", report.rule(code).name), class_="stack"),
            figures.count(value),
            report.rule(code).meaning,
            _example(examples.get(code), code, anchors),
        )
        for code, value in funnel.refused.items()
    ]
    columns = (("Rule", LEFT), ("Times", RIGHT), ("Meaning", LEFT), ("Example", LEFT))
    return table("Refusals by rule", columns, rows, style="refusals")


def _examples(report: RunReport) -> dict[str, Plain]:
    """For each rule the refusal furthest beyond its limit, as the clearest example."""
    examples: dict[str, Plain] = {}
    depth: dict[str, float] = {}
    for row in report.decisions:
        if row.get("outcome") != "refused" or not row.get("code"):
            continue
        code = str(row["code"])
        beyond = -(number((margin_of(row, code) or {}).get("left")) or 0.0)
        if code not in examples or beyond > depth[code]:
            examples[code], depth[code] = row, beyond
    return examples


def margin_of(row: Plain, code: str) -> Plain | None:
    """The margin of one rule in a decision."""
    return next((margin for margin in row.get("margins") or () if margin.get("code") == code), None)


def _example(row: Plain | None, code: str, anchors: Mapping[tuple[int, str], str]) -> Html:
    if row is None:
        return tag("span", "not among the decisions of this page", class_="muted")
    size = number(row.get("size_usd"))
    request = describe_action(row) + (f" for {figures.usd(size)}" if size is not None else "")
    leverage = number(row.get("leverage"))
    if leverage is not None and leverage != 1:
        request += f" at {figures.with_unit(leverage, 'x')}"
    at = instant(row.get("tick_at"))
    anchor = anchors.get((at, str(row.get("symbol")))) if at is not None else None
    when = tag("a", figures.clock(at), href=f"#{anchor}") if anchor else figures.clock(at)
    return join([tag("p", when, " ", request), _margin(margin_of(row, code)), _detail(row)])


def _detail(row: Plain) -> Html:
    detail = str(row.get("detail") or "")
    return tag("p", truncate(detail, 240), class_="muted") if detail else Html()


def _margin(margin: Plain | None) -> Html:
    """Limit, requested value and excess, with a bar where both are numbers."""
    if margin is None or number(margin.get("left")) is None:
        return Html()
    unit = str(margin.get("unit") or "")
    limit, used, left = number(margin.get("limit")), number(margin.get("used")), number(margin.get("left"))
    text = (
        f"limit {figures.with_unit(margin.get('limit'), unit)}, requested {figures.with_unit(margin.get('used'), unit)}"
    )
    if left is not None and left < 0:
        below = limit is not None and used is not None and used < limit and unit.lower() == "usd"
        text += f": {figures.with_unit(-left, unit)} {'short' if below else 'beyond'}"
    bar = None
    if limit is not None and used is not None and used > limit > 0 and unit != "price":
        edge = 100 * limit / used
        bar = tag(
            "svg",
            tag("rect", class_="within", x=0, y=2, width=f"{edge:.1f}", height=6),
            tag("rect", class_="beyond", x=f"{edge:.1f}", y=2, width=f"{100 - edge:.1f}", height=6),
            tag("line", class_="edge", x1=f"{edge:.1f}", x2=f"{edge:.1f}", y1=0, y2=10),
            viewBox="0 0 100 10",
            preserveAspectRatio="none",
            class_="overstep",
            aria_hidden="true",
        )
    return tag("div", tag("p", tag("strong", text)), bar, class_="worked")


def truncate(text: str, most: int) -> str:
    """Long text shortened, with a note of how much is missing."""
    return text if len(text) <= most else f"{text[:most].rstrip()} … ({len(text) - most:,} more characters)"
