"""The tables of an arena: the leaderboard with its tiers, the cost of each entrant, and all runs."""

from pitboss.report import figures
from pitboss.report.headline import interval_drawing
from pitboss.report.markup import Html, join, tag, with_code
from pitboss.report.measures import format_metric
from pitboss.report.metric import meanings_of, metric_meaning
from pitboss.report.runs import cause_counts, failure_cause, run_link, without_result
from pitboss.report.source import Plain, number, pair
from pitboss.report.table import LEFT, RIGHT, WIDE, table

MOST_EACH = 100
"""Runs of an entrant that the table lists."""
FOLDED = 25
"""Up to this many runs their table is shown open."""
MAX_CAUSE_LENGTH = 72
"""Characters of a cause on the leaderboard; more of it is under failures."""


def leaderboard(arena: Plain) -> Html:
    """Entrants by tier. Inside a tier they are ordered by mean return, which is not significant."""
    entries = arena["entries"]
    edges = [edge for entry in entries for edge in (pair(entry["total_return_ci"]) or ())]
    edges += [value for entry in entries if (value := number(entry["total_return_pct"])) is not None]
    low, high = min([0.0, *edges]), max([0.0, *edges])
    forecasts = any(number(entry["brier"]) is not None for entry in entries)
    rows = [
        (
            entrant_name(entry),
            tier_badge(entry["tier"]),
            rank_range(entry["rank"]),
            tag(
                "b",
                figures.percent(entry["total_return_pct"], signed=True),
                class_=figures.tone(entry["total_return_pct"]),
            ),
            _bar(entry, low, high),
            *((figures.plain(entry["brier"], 4),) if forecasts else ()),
            figures.sharpe(entry["sharpe"], figures.has_few_days(entry)),
            _chance(entry["deflated_sharpe"]),
            figures.drawdown(entry["max_drawdown_pct"]),
            *(() if forecasts else (figures.plain(entry["total_trades"], 1),)),
            repeats_link(entry, index),
        )
        for index, entry in enumerate(entries)
    ]
    head = [
        ("Entrant", LEFT),
        ("Tier", LEFT),
        ("Ranks", RIGHT),
        ("Return", RIGHT),
        ("95% interval", WIDE),
        *([("Brier", RIGHT)] if forecasts else []),
        ("Sharpe", RIGHT),
        ("Deflated", RIGHT),
        ("Drawdown", RIGHT),
        *([] if forecasts else [("Trips", RIGHT)]),
        ("Repeats", RIGHT),
    ]
    note = (
        "Entrants of one tier are not statistically distinguishable from its first; inside it they are ordered by mean return. "
        "Ranks are those that cannot be ruled out; the deflated Sharpe is explained under chance."
    )
    if forecasts:
        note += (
            " The Brier score is the mean squared error of stated confidence: lower is better, a constant 50% has 0.25."
        )
    return join([tag("p", note, class_="note"), table("Leaderboard", head, rows, style="board", stacks=True)])


def cost_section(arena: Plain) -> Html:
    """Cost and time of each entrant."""
    rows = [
        (
            entry["model"],
            figures.usd(entry["cost_usd"]),
            figures.usd(entry["cost_per_run_usd"]),
            figures.usd(entry["cost_per_decision_usd"]),
            _ms(entry["latency_ms"]),
            _ms(entry["slow_ms"]),
            figures.share(entry["decided"], 1),
        )
        for entry in arena["entries"]
    ]
    head = [
        ("Entrant", LEFT),
        ("All runs", RIGHT),
        ("One run", RIGHT),
        ("One decision", RIGHT),
        ("Median answer", RIGHT),
        ("Slowest 5%", RIGHT),
        ("Ticks decided", RIGHT),
    ]
    note = "Costs include cached answers at their original price. Times cover only answers that were requested from the provider."
    return join([tag("p", note, class_="note"), table("Cost and time of each entrant", head, rows, stacks=True)])


def run_section(arena: Plain) -> Html:
    """Every run of every entrant, with the commands that show it."""
    form = metric_meaning(arena["by"], meanings_of(arena))
    rows = [
        (
            tag("span", entry["model"], id=None if turn else f"runs-{index}"),
            figures.count(run["repeat"] + 1),
            run_link(run),
            run["status"],
            format_metric(run[arena["by"]], form.form),
            figures.usd(run["cost_usd"]),
            join([tag("code", f"pitboss {verb} {run['run_id']}") for verb in ("report", "runs show")], " "),
        )
        for index, entry in enumerate(arena["entries"])
        for turn, run in enumerate(entry["runs"][:MOST_EACH])
    ]
    head = [
        ("Entrant", LEFT),
        ("Repeat", RIGHT),
        ("Run", LEFT),
        ("Status", LEFT),
        (form.label, RIGHT),
        ("Cost", RIGHT),
        ("Commands", WIDE),
    ]
    many, omitted = len(rows) > FOLDED, sum(len(entry["runs"]) for entry in arena["entries"]) - len(rows)
    runs_table = table("Runs", head, rows, style="runs", tall=many, stacks=True)
    more = with_code(f"… and {omitted:,} more; `pitboss study show {arena['study_id']} --json` has all.")
    note = "In the order of the leaderboard. Runs with a report are links; the first command writes a report."
    return join(
        [
            tag("p", note, class_="note"),
            tag("details", tag("summary", figures.plural(len(rows), "run")), runs_table, class_="folded")
            if many
            else runs_table,
            tag("p", more, class_="note after") if omitted > 0 else "",
        ]
    )


def tier_badge(value: object) -> Html:
    """The badge of a tier."""
    tier = number(value)
    return (
        tag("span", "no result", class_="muted")
        if tier is None
        else tag("span", f"Tier {tier:.0f}", class_=f"tier t{min(int(tier), 5)}")
    )


def entrant_name(entry: Plain) -> Html:
    """The name of an entrant and the causes of its runs without a result."""
    failures = without_result(entry["runs"])
    causes = [failure_cause(run, MAX_CAUSE_LENGTH).removeprefix(f"{entry['model']}: ") for run in failures]
    incomplete = f"incomplete, {len(failures)} of {figures.plural(len(entry['runs']), 'run')} without a result: "
    return tag(
        "span",
        entry["model"],
        tag("small", "baseline") if entry["baseline"] else None,
        tag("small", incomplete, tag("a", cause_counts(causes, 1), href="#failed"), class_="loss")
        if failures
        else None,
        class_="who",
    )


def repeats_link(entry: Plain, index: int) -> Html:
    """The number of runs with a result, linked to the runs of the entrant at this place of the leaderboard."""
    complete, total = entry["repeats"], len(entry["runs"])
    text = figures.count(complete) if complete == total else f"{figures.count(complete)} of {figures.count(total)}"
    return tag("a", text, href=f"#runs-{index}", title="Runs of this entrant")


def _bar(entry: Plain, low: float, high: float) -> Html:
    """The interval of a return on the scale of the leaderboard."""
    bounds = pair(entry["total_return_ci"])
    text = "no interval" if bounds is None else " to ".join(figures.percent(end, signed=True) for end in bounds)
    drawing = interval_drawing(bounds, number(entry["total_return_pct"]), low, high)
    return tag("span", drawing, tag("small", text), class_="around")


def rank_range(value: object) -> str:
    """The ranks that an entrant may have."""
    ranks = pair(value)
    if ranks is None:
        return figures.NONE
    return f"{ranks[0]:.0f}" if ranks[0] == ranks[1] else f"{ranks[0]:.0f}\u2013{ranks[1]:.0f}"


def _chance(value: object) -> str:
    return figures.NONE if number(value) is None else figures.share(value, 0)


def _ms(value: object) -> str:
    milliseconds = number(value)
    return (
        figures.NONE
        if milliseconds is None
        else f"{milliseconds:,.0f} ms"
        if milliseconds < 10_000
        else f"{milliseconds / 1_000:,.1f} s"
    )
