"""The chart of a run: each action at its heartbeat, in a lane of its kind, beside what others posted."""

from collections.abc import Sequence

from pitboss.core.instant import MINUTE_MS
from pitboss.report import figures
from pitboss.report.frame import Frame, chart_figure, time_axis
from pitboss.report.markup import Html, join, tag
from pitboss.venues.community.panels.source import ActionMark, CommunityReport

WIDTH, LEFT, TOP, LANE, FOOT = 1120.0, 118.0, 10.0, 38.0, 30.0
LANES = ("Others", "Looked at", "Posts", "Reports", "Transactions", "Refused")
STYLES = (
    ("others", "post of another participant or the owner"),
    ("read", "source, comments or a call that changes nothing"),
    ("post", "thread, comment or status"),
    ("first", "first report of a bug"),
    ("repeated", "report of a reported bug"),
    ("false", "false report"),
    ("sent", "transaction"),
    ("refused", "refused by a rule"),
)


def heartbeat_chart(report: CommunityReport) -> Html:
    """The lanes, and a legend of the marks that occur."""
    marks = [*report.marks, *_others(report)]
    if not marks:
        return tag("p", "The agent did nothing, and there were no posts.", class_="note")
    instants = [mark.at for mark in marks]
    bounds = [at for at in (report.run.from_at, report.run.to_at) if at is not None]
    first = min(instants + bounds)
    last = max(instants + bounds + [first + MINUTE_MS])
    frame = Frame(LEFT, TOP, WIDTH - LEFT - 24, LANE * len(LANES), float(first), float(last), 0.0, 1.0)
    lanes: list[Html] = []
    dots: list[Html] = []
    for number, name in enumerate(LANES):
        y = TOP + LANE * number
        box = {"x": LEFT - 12, "y": f"{y + 2:.1f}", "width": WIDTH - LEFT, "height": LANE - 4, "rx": 6}
        lanes.append(tag("rect", class_="lane", **box))
        lanes.append(tag("text", name, x=LEFT - 22, y=f"{y + LANE / 2:.1f}", dy="0.32em", text_anchor="end"))
        dots += _dots(frame, [mark for mark in marks if mark.lane == name], y + LANE / 2)
    present = {mark.style for mark in marks}
    legend = tag("ul", *[_key(style, text) for style, text in STYLES if style in present], class_="legend marks")
    heading = "Every action of the agent at its heartbeat"
    drawing = [*lanes, time_axis(frame, frame.top), *dots]
    return join([legend, chart_figure(heading, drawing, (WIDTH, frame.bottom + FOOT), heading)])


def _others(report: CommunityReport) -> list[ActionMark]:
    start = report.run.from_at
    return [
        ActionMark(post.at, "Others", "others", f"{post.author} in “{thread.title[:60]}”")
        for thread in report.threads
        for post in thread.posts
        if not post.is_own and post.at is not None and (start is None or post.at >= start) and thread.kind != "SYSTEM"
    ]


def _dots(frame: Frame, marks: Sequence[ActionMark], y: float) -> list[Html]:
    """One dot for each instant and style; several actions of a heartbeat stand beside each other."""
    groups: dict[tuple[float, str], list[ActionMark]] = {}
    for mark in marks:
        groups.setdefault((round(frame.x(mark.at)), mark.style), []).append(mark)
    dots: list[Html] = []
    for (x, style), group in groups.items():
        for place, mark in enumerate(group[:4]):
            more = f" and {len(group) - 4} more" if place == 3 and len(group) > 4 else ""
            hint = tag("title", f"{figures.clock(mark.at)} {mark.label}{more}")
            dots.append(tag("circle", hint, class_=f"dot {style}", cx=x + place * 13, cy=f"{y:.1f}", r=5.5))
    return dots


def _key(style: str, text: str) -> Html:
    dot = tag("circle", class_=f"dot {style}", cx=8.5, cy=8.5, r=5.5)
    return tag("li", tag("svg", dot, viewBox="0 0 17 17", class_="key", aria_hidden="true"), text)
