"""The HTML document around a report: inline style and script, a content security policy, navigation bar and sections.

Every kind of report is built from these; the content of the sections is that of each kind.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

from pitboss.report.markup import Html, join, tag

Part = tuple[str, str, str, Html]
"""Key, short name for the navigation bar, heading, content."""
FOOT = "Results of a simulation do not predict future results. All times are UTC, all money is USD."


def document(name: str, body: Html, style: str = "") -> str:
    """A complete HTML document. `style` is CSS text that follows the common style sheet."""
    script = resource("pitboss.report", "report.js")
    style = resource("pitboss.report", "report.css") + style
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{name or 'Backtest'} – pitboss report"),
        tag("link", rel="icon", href="data:,"),
        tag("style", Html(style)),
    )
    page = tag("html", head, tag("body", body, tag("script", Html(script))), lang="en")
    return f"<!doctype html>\n{page}\n"


def layout(top: Sequence[Html], paragraphs: Sequence[object], parts: Sequence[Part], foot: str = FOOT) -> Html:
    """Navigation bar, the top of the page, the summary, the sections, and a closing sentence."""
    summary = tag(
        "section",
        tag("h2", "Summary", id="summary-title"),
        tag("div", *[tag("p", paragraph) for paragraph in paragraphs]),
        class_="summary",
        aria_labelledby="summary-title",
    )
    sections = [_section(key, name, content) for key, _, name, content in parts]
    return join(
        [
            tag("a", "Skip to the report", href="#main", class_="skip"),
            _bar([(key, short) for key, short, _, _ in parts]),
            tag("main", *top, summary, *sections, id="main"),
            tag("footer", tag("p", foot)),
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
