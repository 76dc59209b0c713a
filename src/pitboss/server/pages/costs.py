"""`/costs`: what was spent, by day, skill and model, and what is left of today's budget."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from pitboss.core.instant import DAY_MS, iso, parse_instant
from pitboss.report import figures
from pitboss.report.frame import Frame, chart_figure, grid, legend_item, round_ticks, tick_labels
from pitboss.report.headline import note, tile
from pitboss.report.markup import Html, join, tag
from pitboss.report.shell import section
from pitboss.report.table import LEFT, RIGHT, table
from pitboss.runs.costs import costs_document, first_day
from pitboss.server.access.caller import OwnWorkspace, Viewer
from pitboss.server.pages.components import empty_state, link_button, page_head
from pitboss.server.pages.frame import app_page

router = APIRouter()
RANGES = (7, 30, 90, 365)
MODELS = 6
"""Models with a colour of their own in the chart; the others share one."""
OTHERS = "others"
WIDTH, HEIGHT, LEFT_SIDE, TOP, FOOT = 1120.0, 260.0, 66.0, 14.0, 36.0
MOST_NAMES = 12
Row = Mapping[str, Any]


@router.get("/costs")
def costs_page(
    caller: Viewer, workspace: OwnWorkspace, days: Annotated[int, Query(ge=1, le=3_660)] = 30
) -> HTMLResponse:
    """Spending of the last days."""
    now = workspace.now()
    document = costs_document(workspace, first_day(now, days), now - now % DAY_MS + DAY_MS)
    if document["calls"] or document["uncertain_usd"]:
        content = [
            section("days", "By day", tag("div", _chart(document), data_shown="end")),
            section("models", "By model", _grouped(document["models"], "model", document["cost_usd"])),
            section("skills", "By skill", _grouped(document["skills"], "skill", document["cost_usd"])),
            section("rows", "Every day, skill and model", _rows(document["rows"])),
        ]
    else:
        content = [
            tag(
                "section",
                empty_state(
                    f"Nothing was spent in the last {days} days",
                    "Programs, stand-ins and local models cost nothing. What other models cost is estimated before a run begins.",
                    link_button("Start a backtest", "/backtest", "primary"),
                ),
            )
        ]
    about = "Every paid reply on the day it came, used or not. Replies from the cache are not paid again."
    return app_page(
        caller,
        "Costs",
        "/costs",
        page_head("Costs", _ranges(days), about=about),
        _tiles(document, days),
        *content,
        styles=("costs.css",),
    )


def _ranges(days: int) -> Html:
    links = [
        tag("a", f"{choice} days", href=f"/costs?days={choice}", aria_current="page" if choice == days else None)
        for choice in RANGES
    ]
    return tag("nav", *links, class_="ranges", aria_label="Range")


def _tiles(document: Row, days: int) -> Html:
    budget = document["budget"]
    limit = budget["daily_usd"]
    today = (
        note("there is no daily budget (setting daily_usd)")
        if limit is None
        else join(
            [
                tag(
                    "progress",
                    value=f"{min(limit, budget['spent_usd'] + budget['reserved_usd']):.6f}",
                    max=f"{limit:.6f}",
                    aria_label="Spent and reserved of today's budget",
                ),
                note(
                    f"{figures.usd(budget['left_usd'])} of {figures.usd(limit)} is left, "
                    f"{figures.usd(budget['reserved_usd'])} is reserved for runs"
                ),
            ]
        )
    )
    unpriced = document["unpriced_calls"]
    spent_today = sum(row["cost_usd"] for row in document["days"] if row["day"] == budget["day"])
    return tag(
        "div",
        tile(f"Spent in {days} days", figures.usd(document["cost_usd"]), note("paid for replies of models")),
        tile("Spent today", figures.usd(spent_today), today),
        tile("Calls", figures.count(document["calls"]), note(f"{figures.count(unpriced)} without a known price")),
        tile(
            "Uncertain",
            figures.usd(document["uncertain_usd"]),
            note("may have been charged for calls without a reply"),
        ),
        class_="tiles even",
    )


def _chart(document: Row) -> Html:
    """Stacked bars by day, one colour for each model, and the daily budget as a line where it fits."""
    models = [row["model"] for row in document["models"]]
    named = models[:MODELS] if len(models) > MODELS + 1 else models[: MODELS + 1]
    keys = [*named, *([OTHERS] if len(models) > len(named) else [])]
    first, last = parse_instant(document["from"]), parse_instant(document["to"])
    count = max(1, (last - first) // DAY_MS)
    amounts = [dict.fromkeys(keys, 0.0) for _ in range(count)]
    for row in document["rows"]:
        key = row["model"] if row["model"] in named else OTHERS
        amounts[(parse_instant(row["day"]) - first) // DAY_MS][key] += row["cost_usd"]
    highest = max(sum(day.values()) for day in amounts)
    limit = document["budget"]["daily_usd"] or 0.0
    shows_limit = 0 < limit <= 4 * highest
    high = max(highest, limit if shows_limit else 0.0) * 1.08 or 1.0
    frame = Frame(LEFT_SIDE, TOP, WIDTH - LEFT_SIDE - 20, HEIGHT, 0.0, float(count), 0.0, high)
    marks: list[Html] = [grid(frame, tick_labels(round_ticks(0.0, high, 4), before="$"))]
    width = frame.width / count
    for index, day in enumerate(amounts):
        marks += _bar(frame, index, width, iso(first + index * DAY_MS)[:10], day)
    step = -(-count // MOST_NAMES)
    for index in range(count - 1, -1, -step):
        name = iso(first + index * DAY_MS)[5:10]
        marks.append(tag("text", name, x=f"{frame.x(index + 0.5):.1f}", y=frame.bottom + 20, text_anchor="middle"))
    if shows_limit:
        y = f"{frame.y(limit):.1f}"
        marks.append(tag("line", class_="limit", x1=frame.left, x2=frame.right, y1=y, y2=y))
        marks.append(tag("text", "daily budget", class_="limit", x=frame.right, y=y, dy="-0.5em", text_anchor="end"))
    swatches = [_key(index, name) for index, name in enumerate(keys)]
    return chart_figure(
        "Costs by day and model", marks, (WIDTH, frame.bottom + FOOT), tag("ul", *swatches, class_="legend")
    )


def _bar(frame: Frame, index: int, width: float, name: str, day: Mapping[str, float]) -> list[Html]:
    marks: list[Html] = []
    below = 0.0
    left, inner = frame.x(index) + width * 0.14, max(1.0, width * 0.72)
    for place, (model, usd) in enumerate(day.items()):
        if usd <= 0:
            continue
        top, bottom = frame.y(below + usd), frame.y(below)
        below += usd
        marks.append(
            tag(
                "rect",
                tag("title", f"{name}: {model} {figures.usd(usd)}"),
                class_=f"part m{place}",
                x=f"{left:.1f}",
                y=f"{top:.1f}",
                width=f"{inner:.1f}",
                height=f"{max(0.8, bottom - top):.1f}",
            )
        )
    return marks


def _key(index: int, name: str) -> Html:
    box = tag("rect", class_=f"part m{index}", x=8, y=0, width=12, height=12, rx=2)
    return legend_item(box, name)


def _grouped(rows: Sequence[Row], name: str, total: float) -> Html:
    columns = [(name.capitalize(), LEFT), ("Cost", RIGHT), ("Share", LEFT), ("Calls", RIGHT), ("Uncertain", RIGHT)]
    cells = [
        (
            row[name],
            tag("b", figures.usd(row["cost_usd"])),
            _share(row["cost_usd"] / total if total else 0.0),
            figures.count(row["calls"]),
            figures.usd(row["uncertain_usd"]) if row["uncertain_usd"] else figures.NONE,
        )
        for row in rows
    ]
    return table(f"Costs by {name}", columns, cells, style="grouped")


def _share(share: float) -> Html:
    bar = tag("rect", x=0, y=0, width=f"{100 * share:.2f}", height=10, class_="part m0")
    drawing = tag("svg", bar, viewBox="0 0 100 10", preserveAspectRatio="none", class_="share", aria_hidden="true")
    return tag("span", drawing, figures.share(share, 0), class_="with-share")


def _rows(rows: Sequence[Row]) -> Html:
    columns = [("Day", LEFT), ("Skill", LEFT), ("Model", LEFT), ("Calls", RIGHT), ("Cost", RIGHT), ("Uncertain", RIGHT)]
    cells = [
        (
            row["day"],
            row["skill"],
            row["model"],
            figures.count(row["calls"]),
            figures.usd(row["cost_usd"]) + (" +?" if row["unpriced_calls"] else ""),
            figures.usd(row["uncertain_usd"]) if row["uncertain_usd"] else figures.NONE,
        )
        for row in reversed(rows)
    ]
    return table("Costs by day, skill and model", columns, cells, style="by-day", tall=len(cells) > 25)
