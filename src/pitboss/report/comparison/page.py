"""The sections of the page of a comparison, from the document of `runs/comparison.py`."""

from collections.abc import Mapping, Sequence

from pitboss.report import figures
from pitboss.report.comparison.chart import Curve, equity_chart
from pitboss.report.comparison.summary import paragraphs, run_period, verdict
from pitboss.report.headline import header, interval_drawing
from pitboss.report.markup import Html, join, tag
from pitboss.report.measures import compared_value, format_difference, format_interval
from pitboss.report.shell import Part, ReportPage, resource
from pitboss.report.source import Plain, pair
from pitboss.report.table import LEFT, RIGHT, WIDE, gain_or_loss, table

TITLE = "Compared runs"


def compose(document: Plain, curves: Sequence[Curve | None]) -> ReportPage:
    """The page. `curves` are the equity of the runs; a run of the document may have an `href`, the address of its report."""
    runs = document["runs"]
    parts: list[Part | None] = [
        ("runs", "Runs", "Runs", _runs(runs)),
        ("inputs", "Inputs", "Inputs that differ", _inputs(document)),
        ("equity", "Equity", "Equity", equity_chart(runs, curves)) if any(curves) else None,
        ("pairs", "Results", "Differences of the results", _pairs(document)),
        ("first", "Decisions", "First decisions that differ", _decisions(document)),
        ("metrics", "Metrics", "Metrics", _metrics(document)),
    ]
    style = resource("pitboss.report", "hues.css") + resource("pitboss.report.comparison", "comparison.css")
    skills = dict.fromkeys(run["skill"] for run in runs)
    rows = [("Period", period) for period in dict.fromkeys(run_period(run) for run in runs)]
    top = header(
        TITLE, figures.plural(len(runs), "run"), True, " and ".join(name or "unnamed skill" for name in skills), rows
    )
    return ReportPage(TITLE, [top], paragraphs(document), [part for part in parts if part is not None], style=style)


def _hue(index: int) -> Html:
    return tag("span", class_=f"hue h{index}", aria_hidden="true")


def _link(run: Plain, text: str, place: str = "") -> Html:
    return tag("a", text, href=f"{run['href']}{place}") if run.get("href") else tag("span", text)


def _runs(runs: Sequence[Plain]) -> Html:
    columns = [("", LEFT), ("Run", LEFT), ("Skill", LEFT), ("Model", LEFT), ("Status", LEFT), ("Period", LEFT)]
    rows = [
        (
            join([_hue(index), run["label"]]),
            _link(run, run["run_id"]),
            run["skill"],
            run["model"],
            str(run["status"]).replace("_", " "),
            run_period(run),
            figures.usd(run["cost_usd"]),
        )
        for index, run in enumerate(runs)
    ]
    return table("The compared runs", [*columns, ("Cost", RIGHT)], rows, style="compared", stacks=True)


def _inputs(document: Plain) -> Html:
    if not document["inputs"]:
        return tag("p", "None: the runs had the same skill, model, range, data and settings.", class_="note")
    columns = [("Input", LEFT), *[(run["label"], LEFT) for run in document["runs"]]]
    rows = [
        (tag("code", row["name"]), *[figures.NONE if value is None else value for value in row["values"]])
        for row in document["inputs"]
    ]
    return table("Inputs that differ", columns, rows, style="inputs", tall=len(rows) > 20)


def _pairs(document: Plain) -> Html:
    if document["unpaired"]:
        return tag("p", f"There is no paired comparison: {document['unpaired']}.", class_="note")
    labels = {run["run_id"]: run["label"] for run in document["runs"]}
    edges = [edge for row in document["pairs"] for edge in (row["percent"], *(pair(row["interval"]) or ()))]
    left, right = min([0.0, *edges]), max([0.0, *edges])
    room = (right - left) * 0.06 or 1.0
    rows = [
        (
            f"{labels[row['first']]} against {labels[row['second']]}",
            gain_or_loss(figures.percent(row["percent"], signed=True), figures.tone(row["percent"])),
            interval_drawing(pair(row["interval"]), row["percent"], left - room, right + room),
            format_interval(row["interval"], "signed_percent"),
            figures.plain(row["p"], 3),
            tag("b" if row["told_apart"] else "span", verdict(row)),
        )
        for row in document["pairs"]
    ]
    columns = [("Runs", LEFT), ("Difference", RIGHT), ("", WIDE), ("95% interval", RIGHT), ("p", RIGHT), ("", LEFT)]
    note = f"{document['interval_meaning']} Over {figures.plural(document['days'], 'day')}."
    return join([tag("p", note, class_="note"), table("Paired differences", columns, rows, style="pairs", stacks=True)])


def _decisions(document: Plain) -> Html:
    runs = {run["run_id"]: run for run in document["runs"]}
    return join([*[_decisions_of(each, runs) for each in document["decisions"]], _first_record(document)])


def _decisions_of(differing: Plain, runs: Mapping[str, Plain]) -> Html:
    pair_of_runs = runs[differing["first"]], runs[differing["second"]]
    name = " and ".join(run["label"] for run in pair_of_runs)
    if differing["why_not"]:
        return tag("p", f"The decisions of {name} cannot be compared: {differing['why_not']}.", class_="note")
    if not differing["decisions"]:
        return tag("p", f"{name} decided the same at every tick that both had.", class_="note")
    shown = len(differing["decisions"])
    rest = f"; these are the first {shown}" if differing["differing"] > shown else ""
    ticks = figures.plural(differing["differing"], "tick")
    rows = [
        (
            row["tick_at"][:16].replace("T", " "),
            *[_side(*side) for side in zip(row["sides"], pair_of_runs, strict=True)],
        )
        for row in differing["decisions"]
    ]
    columns = [("Time (UTC)", LEFT), *[(run["label"], LEFT) for run in pair_of_runs]]
    note = tag("p", f"{name} differ at {ticks}{rest}.", class_="note")
    return join([note, table(f"First decisions in which {name} differ", columns, rows, style="side-by-side")])


def _side(side: Plain, run: Plain) -> Html:
    words = side["words"][:1].upper() + side["words"][1:]
    place = f"#d{side['seq']}"
    name = tag("b", run["label"], class_="narrow-only")
    return tag(
        "div", name, _link(run, words, place), tag("small", side["reason"], dir="auto") if side["reason"] else None
    )


def _first_record(document: Plain) -> Html:
    difference = document["difference"]
    if difference is None:
        return Html()
    if difference["same"]:
        return tag("p", "The two runs are the same, byte for byte.", class_="note")
    record = difference["first_difference"]
    if record is None:
        return tag("p", "Every record is the same; only the metrics differ.", class_="note")
    fields = ", ".join(record["fields"])
    return tag(
        "p",
        f"Record {record['seq']} at {record['tick_at']} is the first that differs, in {fields}.",
        class_="note after",
    )


def _metrics(document: Plain) -> Html:
    if not document["metrics"]:
        return tag("p", "No run has metrics yet.", class_="note")
    first, *others = [run["label"] for run in document["runs"]]
    columns = [("Metric", LEFT), (first, RIGHT)]
    for label in others:
        columns += [(label, RIGHT), (f"{label} {figures.MINUS} {first}", RIGHT)]
    rows = [(row["label"], *_metric_cells(row)) for row in document["metrics"]]
    note = "Differences are between the rounded values; pp are percentage points. Below a value: its 95% interval."
    return join([tag("p", note, class_="note"), table("Metrics of the runs", columns, rows, style="side")])


def _metric_cells(row: Plain) -> list[Html]:
    cells: list[Html] = []
    for index, (bounds, difference) in enumerate(zip(row["intervals"], row["differences"], strict=True)):
        below = format_interval(bounds, row["form"])
        cells.append(join([compared_value(row, index), tag("small", below, class_="bounds") if below else Html()]))
        if index:
            cells.append(tag("b", format_difference(difference, row["form"])))
    return cells
