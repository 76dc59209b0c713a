"""The calibration charts: forecast probability against observed share, for the model and for the market's price."""

from collections.abc import Sequence

from pitboss.report import figures
from pitboss.report.frame import Frame
from pitboss.report.markup import Html, join, tag
from pitboss.report.source import Plain, mapping, number, pair
from pitboss.report.table import LEFT, RIGHT, table
from pitboss.venues.predict.panels.source import PredictReport

PANEL, TALL = 440.0, 330.0
LEFT_EDGE, RIGHT_EDGE, TOP, GAP, COUNTS, FOOT = 48.0, 22.0, 10.0, 40.0, 54.0, 26.0
TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
FEW = 10
"""Points with fewer calls are drawn hollow."""


def calibration_section(report: PredictReport) -> Html:
    """The two charts and their numbers."""
    model, market = _rows(report.scores()), _rows(report.against())
    if not model:
        return tag("p", "No call with a confidence has settled, so there is nothing to draw.", class_="note")
    most = max(number(row.get("calls")) or 0 for row in (*model, *market))
    note = (
        "Each point is a tenth of the scale: the mean probability of the chosen sides and the share of them that won. On the "
        "dashed line both agree; points below it show overconfidence. Bars are 95% intervals that treat calls as independent, "
        f"so they are too short where many calls share a market. Hollow points have fewer than {FEW} calls."
    )
    return join(
        [
            tag("p", note, class_="note"),
            tag(
                "div",
                _panel("The model's confidence", "model", model, most),
                _panel("The market's price", "market", market, most),
                class_="halves panels",
            ),
            tag("details", tag("summary", "Numbers"), _table(model, market), class_="folded"),
        ]
    )


def _rows(scores: Plain) -> list[Plain]:
    rows = scores.get("calibration")
    return [mapping(row) for row in rows] if isinstance(rows, Sequence) and not isinstance(rows, str) else []


def _panel(name: str, style: str, rows: Sequence[Plain], most: float) -> Html:
    frame = Frame(LEFT_EDGE, TOP, PANEL, TALL, 0.0, 1.0, 0.0, 1.0)
    # Room above the highest bar for its number.
    counts = Frame(LEFT_EDGE, TOP + TALL + GAP, PANEL, COUNTS, 0.0, 1.0, 0.0, (most or 1.0) * 1.1)
    calls = figures.plural(sum(number(row.get("calls")) or 0 for row in rows), "call")
    lines: list[Html] = []
    for tick in TICKS:
        x, y = f"{frame.x(tick):.1f}", f"{frame.y(tick):.1f}"
        lines += [
            tag("line", x1=frame.left, x2=frame.right, y1=y, y2=y),
            tag("line", x1=x, x2=x, y1=frame.top, y2=frame.bottom),
            tag("text", figures.share(tick, 0), x=frame.left - 8, y=y, dy="0.32em", text_anchor="end"),
            tag("text", figures.share(tick, 0), x=x, y=frame.bottom + 18, text_anchor="middle"),
        ]
    drawing = tag(
        "svg",
        tag("title", f"Calibration of {name.lower()}"),
        tag("g", *lines, class_="grid"),
        tag("line", class_="even", x1=frame.left, y1=frame.bottom, x2=frame.right, y2=frame.top),
        *[_point(frame, row) for row in rows],
        *[_count(counts, row) for row in rows],
        tag("text", "calls in each tenth", x=counts.left, y=counts.bottom + 17, class_="axis"),
        viewBox=f"0 0 {LEFT_EDGE + PANEL + RIGHT_EDGE:.0f} {counts.bottom + FOOT:.0f}",
        role="img",
        aria_label=_spoken(name, rows),
    )
    return tag(
        "figure",
        tag("figcaption", tag("span", tag("b", name), f", {calls}")),
        drawing,
        class_=f"chart calibration {style}",
    )


def _point(frame: Frame, row: Plain) -> Html | None:
    mean, observed, reach = number(row.get("mean")), number(row.get("observed")), pair(row.get("interval"))
    count = number(row.get("calls")) or 0
    if mean is None or observed is None:
        return None
    x, y = f"{frame.x(mean):.1f}", f"{frame.y(observed):.1f}"
    title = f"forecast {figures.share(mean)}, observed {figures.share(observed)}, {figures.plural(count, 'call')}"
    bar = None
    if reach is not None:
        low, high = f"{frame.y(reach[0]):.1f}", f"{frame.y(reach[1]):.1f}"
        bar = tag("line", class_="reach", x1=x, x2=x, y1=low, y2=high)
    dot = tag("circle", cx=x, cy=y, r=5.5, class_="few" if count < FEW else "dot")
    return tag("g", tag("title", title), bar, dot)


def _count(frame: Frame, row: Plain) -> Html:
    low, high, count = (number(row.get(name)) or 0.0 for name in ("from", "to", "calls"))
    top = frame.y(count)
    return tag(
        "g",
        tag(
            "rect",
            class_="count",
            x=f"{frame.x(low) + 2:.1f}",
            y=f"{top:.1f}",
            width=f"{max(frame.x(high) - frame.x(low) - 4, 1):.1f}",
            height=f"{max(frame.bottom - top, 1):.1f}",
        ),
        tag(
            "text", figures.count(count), x=f"{frame.x((low + high) / 2):.1f}", y=f"{top - 4:.1f}", text_anchor="middle"
        ),
    )


def _table(model: Sequence[Plain], market: Sequence[Plain]) -> Html:
    columns = (
        ("Forecaster", LEFT),
        ("Probability", LEFT),
        ("Calls", RIGHT),
        ("Mean forecast", RIGHT),
        ("Observed", RIGHT),
        ("95% interval", RIGHT),
    )
    rows: list[tuple[object, ...]] = []
    for forecaster, bins in (("Model", model), ("Market", market)):
        for row in bins:
            reach = pair(row.get("interval"))
            rows.append(
                (
                    forecaster,
                    f"{figures.share(row.get('from'), 0)} to {figures.share(row.get('to'), 0)}",
                    figures.count(row.get("calls")),
                    figures.share(row.get("mean")),
                    figures.share(row.get("observed")),
                    figures.NONE if reach is None else f"{figures.share(reach[0])} to {figures.share(reach[1])}",
                )
            )
    return table("Calibration", columns, rows)


def _spoken(forecaster: str, rows: Sequence[Plain]) -> str:
    parts = [
        f"forecast {figures.share(row.get('mean'), 0)}, observed {figures.share(row.get('observed'), 0)}"
        for row in rows
    ]
    return f"{forecaster}: {'; '.join(parts)}."
