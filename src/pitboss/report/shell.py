"""`ReportPage`, what every kind of report is composed of, and the HTML document of one that is saved to a file.

The document has its style and script inline, a content security policy, a navigation bar and sections. The web app shows the same
`ReportPage` inside its own frame.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pitboss.report.chart_series import NO_SERIES, ChartSeries
from pitboss.report.markup import Html, join, tag

Part = tuple[str, str, str, Html]
"""Key, short name for the navigation bar, heading, content."""
NO_MARKUP = Html()
CHART_SCRIPTS = ("chart_drawing.js", "chart_range.js")
"""Scripts of pages with charts that carry their data, in this order."""
FOOT = "Results of a simulation do not predict future results. All times are UTC, all money is USD."


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A composed report: its sections are markup, and nothing in it says whether it is a file or a page of the app."""

    name: str
    """What the report is about, for the title of the window."""
    top: Sequence[Html]
    """Title, labels and tiles."""
    paragraphs: Sequence[object]
    """The summary."""
    parts: Sequence[Part]
    foot: str = FOOT
    style: str = ""
    """CSS text that follows the common style sheet."""
    shapes: Html = NO_MARKUP
    """Hidden drawings that charts refer to."""
    series: ChartSeries = NO_SERIES
    """What the charts show besides the records; a file does not contain it."""


def html_document(page: ReportPage) -> str:
    """A report as one HTML document that needs no other file."""
    style = resource("pitboss.report", "report.css") + page.style
    body = join([page.shapes, _layout(page)])
    scripts = ("report.js", *(CHART_SCRIPTS if "data-chart=" in body else ()))
    script = "".join(resource("pitboss.report", name) for name in scripts)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{page.name or 'Backtest'} – pitboss report"),
        tag("link", rel="icon", href="data:,"),
        tag("style", Html(style)),
    )
    root = tag("html", head, tag("body", body, tag("script", Html(script))), lang="en")
    return f"<!doctype html>\n{root}\n"


def _layout(page: ReportPage) -> Html:
    """Navigation bar, the top of the page, the summary, the sections, and a closing sentence."""
    sections = [section(key, name, content) for key, _, name, content in page.parts]
    return join(
        [
            tag("a", "Skip to the report", href="#main", class_="skip"),
            _bar([(key, short) for key, short, _, _ in page.parts]),
            tag("main", *page.top, summary(page.paragraphs), *sections, id="main"),
            tag("footer", tag("p", page.foot)),
        ]
    )


def summary(paragraphs: Sequence[object]) -> Html:
    """The card of the summary."""
    return tag(
        "section",
        tag("h2", "Summary", id="summary-title"),
        tag("div", *[tag("p", paragraph) for paragraph in paragraphs]),
        class_="summary",
        aria_labelledby="summary-title",
    )


def brand(href: str) -> Html:
    """The mark and name of the project as a link."""
    chip = tag(
        "svg",
        tag("circle", cx=12, cy=12, r=9, class_="rim"),
        tag("circle", cx=12, cy=12, r=4.2, class_="core"),
        viewBox="0 0 24 24",
        aria_hidden="true",
    )
    return tag("a", chip, "pitboss", href=href, class_="brand")


def theme_button() -> Html:
    """The button that switches between the light and the dark theme."""
    return tag("button", "Theme", type="button", data_do="theme", class_="needs-script", aria_label="Switch theme")


def _bar(links: list[tuple[str, str]]) -> Html:
    return tag(
        "div",
        brand("#main"),
        tag("nav", *[tag("a", name, href=f"#{key}") for key, name in links], aria_label="Sections"),
        theme_button(),
        class_="top",
    )


def section(key: str, name: str, content: Html) -> Html:
    """One card of the page with its heading."""
    return tag("section", tag("h2", name, id=f"{key}-title"), content, id=key, aria_labelledby=f"{key}-title")


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )


@cache
def resource(package: str, name: str) -> str:
    """The text of a style sheet or script of a package, with the line ends that browsers hash."""
    return "\n" + files(package).joinpath(name).read_text("utf-8").replace("\r\n", "\n")


def command_list(commands: Iterable[tuple[str, str]]) -> Html:
    """Commands for a shell, each with its purpose."""
    return tag(
        "ol",
        *[
            tag("li", tag("code", command), tag("br"), tag("span", purpose, class_="muted"))
            for command, purpose in commands
        ],
        class_="commands",
    )
