"""The calendar of a series: one cell for each day, by how much of it is there; one strip for each year."""

from collections.abc import Iterator
from datetime import UTC, date, datetime

from pitboss.core.instant import DAY_MS
from pitboss.data.coverage import Coverage, DayCoverage
from pitboss.report import figures
from pitboss.report.frame import legend_item
from pitboss.report.markup import Html, join, tag

CELL, STEP, LEFT_SIDE, TOP = 12, 15, 44, 20
WEEKDAYS = ((0, "Mon"), (2, "Wed"), (4, "Fri"))
MOST_GAPS = 6


def calendar(coverage: Coverage, name: str) -> Html:
    """The days of a series in strips of weeks, and its gaps in words."""
    if not coverage.days:
        return tag("p", "This kind of data has no days.", class_="note")
    years: dict[int, list[tuple[date, DayCoverage]]] = {}
    for day in coverage.days:
        on = datetime.fromtimestamp(day.day_at / 1000, UTC).date()
        years.setdefault(on.year, []).append((on, day))
    strips = [_strip(year, days, name) for year, days in years.items()]
    return join(
        [tag("div", *strips, class_="calendar scroll", tabindex="0", role="region", aria_label=name), _gaps(coverage)]
    )


def legend() -> Html:
    """What the colours mean."""
    keys = [
        ("full", "complete"),
        ("most", "a part is missing"),
        ("some", "half or more is missing"),
        ("none", "no rows"),
    ]
    boxes = [(tag("rect", class_=f"day {style}", x=8, width=12, height=12, rx=2), words) for style, words in keys]
    return tag("ul", *[legend_item(box, words) for box, words in boxes], class_="legend")


def _strip(year: int, days: list[tuple[date, DayCoverage]], name: str) -> Html:
    first = days[0][0]
    offset = first.weekday()
    weeks = (offset + (days[-1][0] - first).days) // 7 + 1
    cells = list(_cells(days, first, offset))
    width, height = LEFT_SIDE + weeks * STEP + 26, TOP + 7 * STEP
    labels = [
        tag("text", label, x=LEFT_SIDE - 8, y=TOP + row * STEP + CELL / 2, dy="0.35em", text_anchor="end")
        for row, label in WEEKDAYS
    ]
    title = f"{name}, {year}"
    return tag(
        "svg",
        tag("title", title),
        tag("text", str(year), x=0, y=12, class_="year"),
        *labels,
        *_months(days, first, offset),
        *cells,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        aria_label=title,
    )


def _cells(days: list[tuple[date, DayCoverage]], first: date, offset: int) -> Iterator[Html]:
    for on, day in days:
        place = offset + (on - first).days
        missing = f", {figures.share(day.missing, 0)} missing" if day.missing else ""
        yield tag(
            "rect",
            tag("title", f"{on.isoformat()}: {figures.plural(day.rows, 'row')}{missing}"),
            class_=f"day {_style(day)}",
            x=LEFT_SIDE + place // 7 * STEP,
            y=TOP + place % 7 * STEP,
            width=CELL,
            height=CELL,
            rx=2,
        )


def _months(days: list[tuple[date, DayCoverage]], first: date, offset: int) -> Iterator[Html]:
    last_x = -100
    for on, _ in days:
        x = LEFT_SIDE + (offset + (on - first).days) // 7 * STEP
        if (on.day == 1 or on == first) and x - last_x >= 2 * STEP:
            last_x = x
            yield tag("text", f"{on:%b}", x=x, y=12)


def _style(day: DayCoverage) -> str:
    if not day.rows:
        return "none"
    return "full" if day.missing < 0.001 else "most" if day.missing < 0.5 else "some"


def _gaps(coverage: Coverage) -> Html:
    if not coverage.gaps:
        return tag("p", "No gaps.", class_="gaps")
    longest = sorted(coverage.gaps, key=lambda gap: gap.from_at - gap.to_at)[:MOST_GAPS]
    items = [
        tag(
            "li",
            f"{figures.clock(gap.from_at)} to {figures.clock(gap.to_at)} ",
            tag("span", f"({figures.span(gap.to_at - gap.from_at)})", class_="muted"),
        )
        for gap in sorted(longest, key=lambda gap: gap.from_at)
    ]
    total = sum(gap.to_at - gap.from_at for gap in coverage.gaps) / DAY_MS
    words = f"{figures.plural(len(coverage.gaps), 'gap')}, {figures.plain(total, 1)} days in all"
    shown = "" if len(longest) == len(coverage.gaps) else f"; the {len(longest)} longest"
    return tag("div", tag("p", f"{words}{shown}:"), tag("ul", *items), class_="gaps")
