"""The page: sections in order, style and script inside it, and a policy that lets nothing else in."""

import base64
import hashlib
from functools import cache
from importlib.resources import files

from pitboss.sim.report import position
from pitboss.sim.report.decisions import anchors, chosen, decision_section
from pitboss.sim.report.equity import equity_chart
from pitboss.sim.report.funnel import Funnel, funnel_section
from pitboss.sim.report.headline import labels, tiles, title
from pitboss.sim.report.markup import Html, join, tag
from pitboss.sim.report.measures import cost_section, metric_section
from pitboss.sim.report.price import legend, price_chart, shapes
from pitboss.sim.report.proof import assumption_section, skill_section, verify_section
from pitboss.sim.report.refusals import refusal_section
from pitboss.sim.report.source import Report
from pitboss.sim.report.summary import paragraphs
from pitboss.sim.report.trades import trade_section

OPEN_CHARTS = 4
"""Price charts shown unfolded; the others open with a click."""


def render(report: Report) -> str:
    """The whole report as one HTML document."""
    script = _part("report.js")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{report.skill_name or 'Backtest'} – pitboss report"),
        tag("link", rel="icon", href="data:,"),
        tag("style", Html(_part("report.css"))),
    )
    page = tag("html", head, tag("body", _body(report), tag("script", Html(script))), lang="en")
    return f"<!doctype html>\n{page}\n"


def _body(report: Report) -> Html:
    funnel = Funnel.of(report)
    rows = chosen(report.decisions)
    known = anchors(rows)
    sections = [
        ("equity", "Equity", "Equity against its baselines", equity_chart(report)),
        ("prices", "Prices", "Where it acted", _prices(report, known)),
        ("funnel", "Funnel", "From ticks to fills", funnel_section(funnel)),
        ("refused", "Refused", "What the engine refused", refusal_section(report, funnel, known)),
        ("decisions", "Decisions", "Every decision and why", decision_section(report, rows)),
        ("trades", "Trades", "Round trips", trade_section(report)),
        ("metrics", "Metrics", "All metrics", metric_section(report)),
        ("costs", "Costs", "What it cost", cost_section(report)),
        ("limits", "Limits", "Assumptions and limits", assumption_section(report)),
        ("skill", "Skill", "The skill", skill_section(report)),
        ("verify", "Verify", "Check it yourself", verify_section(report)),
    ]
    summary = tag(
        "section",
        tag("h2", "In plain words", id="summary-title"),
        tag("div", *[tag("p", words) for words in paragraphs(report, funnel)]),
        class_="summary",
        aria_labelledby="summary-title",
    )
    return join(
        [
            shapes(),
            tag("a", "Skip to the report", href="#main", class_="skip"),
            _bar([(key, short) for key, short, _, _ in sections]),
            tag(
                "main",
                title(report),
                labels(report),
                tiles(report, funnel),
                summary,
                *[_section(key, name, content) for key, _, name, content in sections],
                id="main",
            ),
            tag(
                "footer",
                tag("p", "Past results of a simulation are not a promise. All times are UTC, all money is USD."),
            ),
        ]
    )


def _bar(links: list[tuple[str, str]]) -> Html:
    chip = tag(
        "svg",
        tag("circle", cx=12, cy=12, r=9, class_="rim"),
        tag("circle", cx=12, cy=12, r=4.2, class_="core"),
        viewBox="0 0 24 24",
        aria_hidden="true",
    )
    return tag(
        "div",
        tag("a", chip, "pitboss", href="#main", class_="brand"),
        tag("nav", *[tag("a", name, href=f"#{key}") for key, name in links], aria_label="Sections"),
        tag("button", "Theme", type="button", data_do="theme", class_="needs-script", aria_label="Switch theme"),
        class_="top",
    )


def _section(key: str, name: str, content: Html) -> Html:
    return tag("section", tag("h2", name, id=f"{key}-title"), content, id=key, aria_labelledby=f"{key}-title")


def _prices(report: Report, known: dict[tuple[int, str], str]) -> Html:
    if not report.prices:
        return tag("p", "No bars were given to this report.", class_="note")
    active = position.symbols(report.fills, report.decisions)
    charts: list[Html] = []
    for symbol in sorted(report.prices, key=lambda name: (name not in active, name)):
        chart = price_chart(report, symbol, known)
        if len(charts) < OPEN_CHARTS:
            charts.append(chart)
        else:
            charts.append(tag("details", tag("summary", f"Price of {symbol}"), chart, class_="folded"))
    return join([legend(), *charts])


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )


@cache
def _part(name: str) -> str:
    """The style sheet or the script, with the line ends that browsers hash."""
    return "\n" + files("pitboss.sim.report").joinpath(name).read_text("utf-8").replace("\r\n", "\n")
