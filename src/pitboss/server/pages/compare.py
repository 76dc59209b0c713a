"""`/compare?run=…&run=…`: runs side by side, with intervals, their equity in one chart, and where two of them differ first."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from pitboss.bootstrap.workspace import Workspace
from pitboss.jobs.comparison import MOST_RUNS, comparison
from pitboss.report import figures
from pitboss.report.frame import Frame, chart_figure, grid, padded_range, round_ticks, tick_labels, time_axis
from pitboss.report.headline import interval_drawing
from pitboss.report.markup import Html, join, tag
from pitboss.report.measures import format_metric
from pitboss.report.series import Floats, downsample
from pitboss.report.shell import section
from pitboss.report.source import pair
from pitboss.report.table import LEFT, RIGHT, gain_or_loss, table
from pitboss.runs.indexed_runs import IndexedRuns
from pitboss.runs.listing import result_text
from pitboss.server.access.caller import Caller, OwnWorkspace, Viewer
from pitboss.server.api.lookup import named_run
from pitboss.server.api.run_access import Reader
from pitboss.server.pages.components import empty_state, link_button, page_head, status_badge
from pitboss.server.pages.frame import app_page
from pitboss.store.runs import Run

router = APIRouter()
WIDTH, HEIGHT, LEFT_SIDE, TOP, FOOT = 1120.0, 320.0, 60.0, 14.0, 34.0
COLUMNS = 500


@router.get("/compare")
def compare_page(
    caller: Viewer,
    workspace: OwnWorkspace,
    reader: Reader,
    run: Annotated[list[str] | None, Query()] = None,
) -> HTMLResponse:
    """Runs side by side."""
    ids = list(dict.fromkeys(run or []))[:MOST_RUNS]
    if len(ids) < 2:
        return _page(
            caller,
            _nothing("Choose at least two runs", "Tick runs in the list and press Compare."),
        )
    runs = list({found.id: found for found in (named_run(workspace, run_id) for run_id in ids)}.values())
    if len(runs) < 2:
        return _page(caller, _nothing("This is one run", "Choose a second one."))
    document = comparison(workspace, runs)
    curves = [_curve(workspace, reader.indexed, run) for run in runs]
    parts = [
        section("runs", "Runs", _runs(document)),
        section("equity", "Equity", _equity(document["runs"], curves)) if any(curves) else None,
        section("pairs", "Differences", _pairs(document)),
        section("first", "First difference", _first(document)) if document["difference"] else None,
        section("metrics", "Metrics", _metrics(document)),
    ]
    return _page(caller, *[part for part in parts if part is not None])


def _nothing(title: str, text: str) -> Html:
    return tag("section", empty_state(title, text, link_button("Runs", "/runs", "primary")))


def _page(caller: Caller, *content: Html) -> HTMLResponse:
    about = "Differences between single runs are often due to chance: check whether their intervals exclude zero."
    return app_page(
        caller, "Compare", "/runs", page_head("Compare runs", about=about), *content, styles=("compare.css",)
    )


def _link(run_id: str, index: int | None = None) -> Html:
    mark = None if index is None else tag("span", class_=f"hue h{index}", aria_hidden="true")
    return join([mark or Html(), tag("a", run_id, href=f"/runs/{run_id}")])


def _runs(document: Mapping[str, Any]) -> Html:
    columns = [
        ("Run", LEFT),
        ("Skill", LEFT),
        ("Model", LEFT),
        ("Status", LEFT),
        ("Period", LEFT),
        ("Cost", RIGHT),
        ("Result", RIGHT),
    ]
    rows = [
        (
            _link(run["run_id"], index),
            run["skill"],
            run["model"],
            status_badge(run["status"]),
            f"{run['from'][:10]} to {run['to'][:10]}",
            figures.usd(run["cost_usd"]),
            gain_or_loss(result_text(run), figures.tone(run["total_return_pct"])),
        )
        for index, run in enumerate(document["runs"])
    ]
    return table("The compared runs", columns, rows, style="compared")


def _curve(workspace: Workspace, indexed: IndexedRuns, run: Run) -> tuple[Floats, Floats] | None:
    """Times and equity of a run relative to its start at 100; None without an account or a point."""
    index = indexed.index(workspace, run)
    initial = float(run.params.get("equity_usd") or 0)
    if len(index.equity_at) < 2 or not initial:
        return None
    at, value = index.equity_at.astype(np.float64), 100.0 * index.equity_usd / initial
    chosen = downsample(at, value, float(at[0]), float(at[-1]), COLUMNS)
    return at[chosen], value[chosen]


def _equity(runs: Sequence[Mapping[str, Any]], curves: Sequence[tuple[Floats, Floats] | None]) -> Html:
    drawn = [(index, curve) for index, curve in enumerate(curves) if curve is not None]
    low, high = padded_range(
        min(float(values.min()) for _, (_, values) in drawn), max(float(values.max()) for _, (_, values) in drawn)
    )
    start, end = min(float(at[0]) for _, (at, _) in drawn), max(float(at[-1]) for _, (at, _) in drawn)
    frame = Frame(LEFT_SIDE, TOP, WIDTH - LEFT_SIDE - 32, HEIGHT, start, end, low, high)
    marks: list[Html] = [grid(frame, tick_labels(round_ticks(low, high, 5))), time_axis(frame, frame.top)]
    keys: list[Html] = []
    for index, (at, values) in drawn:
        marks.append(tag("path", class_=f"line h{index}", d="M" + frame.points(at, values)))
        swatch = tag("line", class_=f"line h{index}", x1=1, x2=27, y1=6, y2=6)
        name = f"{runs[index]['run_id']} · {runs[index]['model']}"
        ending = figures.percent(float(values[-1]) - 100, signed=True)
        keys.append(
            tag(
                "li",
                tag("svg", swatch, viewBox="0 0 28 12", class_="swatch", aria_hidden="true"),
                name,
                " ",
                tag("b", ending),
            )
        )
    legend = tag("ul", *keys, class_="legend")
    return chart_figure("Equity of the runs from 100", marks, (WIDTH, frame.bottom + FOOT), legend)


def _pairs(document: Mapping[str, Any]) -> Html:
    if document["unpaired"]:
        return tag("p", f"There is no paired comparison: {document['unpaired']}.", class_="note")
    edges = [edge for row in document["pairs"] for edge in (row["percent"], *(pair(row["interval"]) or ()))]
    left, right = padded_range(min([0.0, *edges]), max([0.0, *edges]))
    rows = [
        (
            join([_link(row["first"]), " against ", _link(row["second"])]),
            gain_or_loss(figures.percent(row["percent"], signed=True), figures.tone(row["percent"])),
            interval_drawing(pair(row["interval"]), row["percent"], left, right),
            _bounds(row["interval"], "signed_percent"),
            figures.plain(row["p"], 3),
            tag("b", "significant") if row["told_apart"] else "may be chance",
        )
        for row in document["pairs"]
    ]
    columns = [
        ("Runs", LEFT),
        ("Difference", RIGHT),
        ("", LEFT),
        ("95% interval", RIGHT),
        ("p", RIGHT),
        ("", LEFT),
    ]
    days = figures.plural(document["days"], "day")
    note = (
        f"The final equity of the first run relative to the second, over the same {days}, resampled in blocks. Intervals "
        "hold for all pairs at once."
    )
    return join([tag("p", note, class_="note"), table("Paired differences", columns, rows, style="pairs")])


def _first(document: Mapping[str, Any]) -> Html:
    difference = document["difference"]
    first, second = difference["first"], difference["second"]
    if difference["same"]:
        return tag("p", "The two runs are the same, byte for byte.", class_="note")
    found = difference["first_difference"]
    if found is None:
        return tag("p", "Every record is the same; only the metrics differ.", class_="note")
    where = tag(
        "p",
        "Record ",
        tag("b", found["seq"]),
        f" at {found['tick_at']} is the first that differs, in ",
        tag("code", ", ".join(found["fields"])),
        ".",
    )
    links = tag(
        "p",
        link_button(f"Decision in {first}", f"/runs/{first}#d{found['seq']}"),
        " ",
        link_button(f"Decision in {second}", f"/runs/{second}#d{found['seq']}"),
        class_="after",
    )
    return join([where, links])


def _metrics(document: Mapping[str, Any]) -> Html:
    if not document["metrics"]:
        return tag("p", "No run has metrics yet.", class_="note")
    columns = [("Metric", LEFT), *[(run["run_id"], RIGHT) for run in document["runs"]]]
    rows = [
        (
            row["label"],
            *[
                join([format_metric(value, row["form"]), _below(bounds, row["form"])])
                for value, bounds in zip(row["values"], row["intervals"], strict=True)
            ],
        )
        for row in document["metrics"]
    ]
    return table("Metrics of the runs", columns, rows, style="side")


def _below(bounds: object, form: Any) -> Html:
    text = _bounds(bounds, form)
    return tag("small", text, class_="bounds") if text else Html()


def _bounds(bounds: object, form: Any) -> str:
    found = pair(bounds)
    return "" if found is None else f"{format_metric(found[0], form)} to {format_metric(found[1], form)}"
