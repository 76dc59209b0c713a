"""What surrounds every page of the app: the document, the navigation, the theme, and the static files it loads.

Pages use the markup, tokens and components of `report`. Text of others enters a page only through `tag`, which escapes it. No page
has inline scripts or style attributes: the content security policy of `access/gate.py` would block them.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from fastapi.responses import HTMLResponse

from pitboss.report.markup import Html, join, tag
from pitboss.report.shell import (
    CHART_SCRIPTS,
    NO_MARKUP,
    ReportPage,
    brand,
    resource,
    section,
    summary,
    theme_button,
)
from pitboss.runs.web_section import web_sections
from pitboss.server.access.caller import Caller
from pitboss.server.access.gate import POLICY
from pitboss.server.pages.chat_drawer import SCRIPT, STYLE, chat_button, chat_drawer

STATIC = "pitboss.server.pages.static"
SHARED = dict.fromkeys(("report.css", "report.js", *CHART_SCRIPTS), "pitboss.report")
"""Static files that reports have too."""


@dataclass(frozen=True, slots=True)
class Section:
    """An entry of the main navigation."""

    name: str
    path: str


NAVIGATION = (
    Section("Home", "/"),
    Section("Skills", "/skills"),
    Section("Backtest", "/backtest"),
    Section("Runs", "/runs"),
    Section("Deployments", "/deployments"),
    Section("Studies", "/studies"),
    Section("Costs", "/costs"),
    Section("Data", "/data"),
    Section("Settings", "/settings"),
)


def app_page(
    caller: Caller,
    title: str,
    path: str,
    *content: object,
    scripts: Sequence[str] = (),
    styles: Sequence[str] = (),
    style: str = "",
    status: int = 200,
) -> HTMLResponse:
    """A page of the app. `path` is that of its entry in the navigation, `scripts` and `styles` are static files that only
    this page needs, `style` is the CSS text of a report.
    """
    bar = _bar(caller, path)
    return _page(bar, title, content, scripts=scripts, styles=styles, style=style, status=status, csrf=caller.csrf)


def plain_page(title: str, *content: object, styles: Sequence[str] = (), status: int = 200) -> HTMLResponse:
    """A page for a browser without a session: it has no navigation and no chat."""
    bar = tag("div", brand("/"), tag("nav", aria_label="Main"), theme_button(), class_="top")
    return _page(bar, title, content, styles=styles, status=status, has_chat=False)


def _page(
    bar: Html,
    title: str,
    content: Sequence[object],
    *,
    scripts: Sequence[str] = (),
    styles: Sequence[str] = (),
    style: str = "",
    status: int = 200,
    csrf: str = "",
    has_chat: bool = True,
) -> HTMLResponse:
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="pitboss-csrf", content=csrf) if csrf else None,
        tag("title", f"{title} – pitboss"),
        tag("link", rel="icon", href="data:,"),
        *[tag("link", rel="stylesheet", href=static_path(name)) for name in ("report.css", "app.css", STYLE, *styles)],
        tag("style", Html(style)) if style else None,
        *[tag("script", src=static_path(name), defer=True) for name in ("report.js", "app.js", SCRIPT, *scripts)],
    )
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#main", class_="skip"),
        bar,
        tag("main", *content, id="main"),
        chat_drawer() if has_chat else None,
        class_="app",
    )
    html = f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"
    headers = {"Content-Security-Policy": _policy_with(style)} if style else None
    return HTMLResponse(html, status, headers)


def report_content(page: ReportPage) -> Html:
    """The content of a report for a page of the app."""
    sections = [section(key, name, content) for key, _, name, content in page.parts]
    return join([page.shapes or NO_MARKUP, *page.top, summary(page.paragraphs), *sections])


@cache
def navigation() -> tuple[Section, ...]:
    """The main navigation, with the sections of venues before the settings."""
    return (*NAVIGATION[:-1], *(Section(entry.name, entry.path) for entry in web_sections()), NAVIGATION[-1])


def _bar(caller: Caller, path: str) -> Html:
    links = [
        tag("a", entry.name, href=entry.path, aria_current="page" if entry.path == path else None)
        for entry in navigation()
    ]
    return tag(
        "div",
        brand("/"),
        tag("nav", *links, aria_label="Main"),
        chat_button(),
        tag("span", caller.name, class_="muted who"),
        theme_button(),
        class_="top",
    )


def _policy_with(style: str) -> str:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return POLICY.replace("style-src 'self'", f"style-src 'self' 'sha256-{digest}'")


def static_file(name: str) -> bytes | None:
    """The content of a static file; None if there is none of that name."""
    return _static_files().get(name)


@cache
def _static_files() -> dict[str, bytes]:
    """All static files by name."""
    own = {
        file.name: file.read_bytes()
        for file in files(STATIC).iterdir()
        if file.name.endswith((".css", ".js", ".svg")) and file.is_file()
    }
    return {**own, **{name: resource(package, name).encode() for name, package in SHARED.items()}}


@cache
def static_path(name: str) -> str:
    """The address of a static file; it changes with its content, so that browsers may keep it."""
    content = static_file(name)
    if content is None:
        raise FileNotFoundError(name)
    return f"/static/{hashlib.sha256(content).hexdigest()[:12]}/{name}"
