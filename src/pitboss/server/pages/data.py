"""`/data`: the series in the lake with a calendar of their days, imports, downloads and the demo market."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import INTERVALS
from pitboss.data.coverage import coverage
from pitboss.data.sources import names as source_names
from pitboss.data.sources import source
from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.shell import section
from pitboss.report.table import LEFT, RIGHT, table
from pitboss.runs.listing import holdings
from pitboss.server.access.caller import Caller, OwnWorkspace, Viewer
from pitboss.server.api.routes.data import Kind
from pitboss.server.pages.components import (
    badge,
    button,
    dialog,
    empty_state,
    field,
    form_actions,
    page_head,
    select,
    text_input,
)
from pitboss.server.pages.coverage_calendar import calendar, legend
from pitboss.server.pages.frame import app_page

router = APIRouter()
MOST_CALENDARS = 6
"""Calendars that the page draws by itself; others when they are asked for."""
Row = Mapping[str, Any]
Key = tuple[str, str, str, str]


@router.get("/data")
def data_page(
    caller: Viewer, workspace: OwnWorkspace, show: Annotated[str, Query(max_length=300)] = ""
) -> HTMLResponse:
    """The market data. `show` names the series whose calendar is shown, as venue/kind/symbol/interval."""
    rows = holdings(workspace.lake)
    actions = _actions() if caller.may("author") else []
    content = _content(workspace, rows, show) if rows else [_nothing(caller)]
    about = "What backtests run on. A gap is a span in which rows are missing; runs refuse gaps longer than the setting max_gap."
    return app_page(
        caller,
        "Data",
        "/data",
        page_head("Data", *actions, about=about),
        tag("section", tag("h2", "Downloads"), tag("div", id="downloads"), id="download-list", hidden=True),
        *content,
        _import_dialog(),
        _download_dialog(),
        scripts=("data.js",),
        styles=("data.css",),
    )


def _actions() -> list[Html]:
    return [
        button("Demo market", "demo", "quiet"),
        button("Download…", "open-download"),
        button("Import a file…", "open-import", "primary"),
    ]


def _nothing(caller: Caller) -> Html:
    actions = [button("Generate the demo market", "demo", "primary")] if caller.may("author") else []
    text = "Import a file, download from an exchange, or generate a synthetic market to try things on."
    return tag("section", empty_state("There is no market data yet", text, *actions))


def _content(workspace: Workspace, rows: Sequence[Row], show: str) -> list[Html]:
    chosen = [row for row in rows if "/".join(_key(row)) == show]
    if not chosen:
        chosen = [row for row in rows if row["kind"] == "bars"][:MOST_CALENDARS]
    calendars = [
        tag(
            "div",
            tag("h3", _name(row), " ", badge("synthetic", "warn") if row["synthetic"] else Html()),
            calendar(coverage(workspace.lake, row["kind"], row["venue"], row["symbol"], row["interval"]), _name(row)),
            class_="covered",
        )
        for row in chosen
    ]
    more = tag("p", tag("a", "Show the calendars of all bars", href="/data#coverage"), class_="after") if show else None
    parts = [legend(), tag("div", *calendars, class_="calendars"), more or Html()]
    return [
        section("series", "Series", _table(rows)),
        section("coverage", "Coverage by day", join(parts)) if chosen else Html(),
    ]


def _table(rows: Sequence[Row]) -> Html:
    columns = [
        ("Series", LEFT),
        ("Venue", LEFT),
        ("Kind", LEFT),
        ("Rows", RIGHT),
        ("First", LEFT),
        ("Last", LEFT),
        ("Gaps", RIGHT),
        ("", LEFT),
    ]
    cells = [
        (
            " ".join(part for part in (row["symbol"], row["interval"]) if part) or figures.NONE,
            join([row["venue"], " ", badge("synthetic", "warn") if row["synthetic"] else Html()]),
            str(row["kind"]).replace("_", " "),
            figures.count(row["rows"]),
            _day(row["first_at"]),
            _day(row["last_at"]),
            tag("b", figures.count(row["gaps"]), class_="loss") if row["gaps"] else "0",
            tag("a", "Calendar", href=f"/data?{urlencode({'show': '/'.join(_key(row))})}#coverage")
            if row["first_at"]
            else "",
        )
        for row in rows
    ]
    return table("The series in the lake", columns, cells, style="series", tall=len(cells) > 30)


def _key(row: Row) -> Key:
    return row["venue"], row["kind"], row["symbol"] or "", row["interval"] or ""


def _name(row: Row) -> str:
    return " ".join(
        part for part in (row["venue"], row["symbol"], row["interval"], str(row["kind"]).replace("_", " ")) if part
    )


def _day(text: str | None) -> str:
    return (text or figures.NONE)[:16].replace("T", " ")


def _import_dialog() -> Html:
    kinds = [("", "as its columns say"), *[(kind, kind.replace("_", " ")) for kind in get_args(Kind)]]
    intervals = [("", "none"), *[(name, name) for name in INTERVALS]]
    file = tag(
        "input", id="file", name="file", type="file", accept=".csv,.gz,.parquet,.feather,.jsonl,.ndjson,.json,.zip"
    )
    replace = tag("input", id="replace", name="replace", type="checkbox")
    form = tag(
        "form",
        field("file", "File", file, "Parquet, CSV, CSV.gz, feather, JSON lines, or a zip with one CSV.", wide=True),
        field("kind", "Kind", select("kind", kinds)),
        field("interval", "Length of a bar", select("interval", intervals), "Never guessed from the rows."),
        field("symbol", "Symbol", text_input("symbol", placeholder="BTC")),
        field("venue", "Venue", text_input("venue", "hyperliquid"), "The name under which it is stored."),
        field("replace", "Replace stored rows that differ", replace, wide=True, check=True),
        tag("p", id="import-state", class_="wide note", role="status", hidden=True),
        id="import-form",
        class_="form",
    )
    return dialog("import", "Import a file", form, actions=form_actions("Import", "import-form"))


def _download_dialog() -> Html:
    sources = [source(name) for name in source_names()]
    names = [(each.name, f"{each.name}: {each.about}") for each in sources]
    needs = {each.name: " ".join(each.needs) for each in sources}
    choice = select("source", names, "hyperliquid", **{f"data_needs_{name}": text for name, text in needs.items()})
    form = tag(
        "form",
        field("source", "Source", choice, wide=True),
        tag("div", field("symbols", "Symbols", text_input("symbols", placeholder="BTC, ETH")), data_need="symbols"),
        tag(
            "div",
            field("intervals", "Lengths of bars", text_input("intervals", "1h"), "Such as 15m, 1h."),
            data_need="interval",
        ),
        tag("div", field("from", "From", text_input("from", type="date")), data_need="from"),
        tag("div", field("to", "To", text_input("to", type="date"), "Now if empty."), data_need="from"),
        tag(
            "div",
            field("urls", "Addresses", text_input("urls", placeholder="https://…"), "Separated by spaces.", wide=True),
            data_need="url",
            class_="wide",
            hidden=True,
        ),
        tag("p", "Only missing rows are requested, within the limits of the source.", class_="wide note"),
        id="download-form",
        class_="form",
    )
    return dialog("download", "Download data", form, actions=form_actions("Download", "download-form"))
