"""The page of an arena: its sections in order, inside the document of `report/shell.py`."""

from collections.abc import Sequence

from pitboss.report import figures
from pitboss.report.arena.charts import curve_chart, difference_chart, repeat_chart
from pitboss.report.arena.judged import judged_leaderboard, judged_limits, judged_paragraphs, judged_tiles
from pitboss.report.arena.leaderboard import cost_section, leaderboard, run_section
from pitboss.report.arena.pairs import pair_table
from pitboss.report.arena.summary import limits, paragraphs, significance_section
from pitboss.report.headline import header, label, label_list, note, tile
from pitboss.report.markup import Html, join, tag
from pitboss.report.runs import check_section, failure_section, without_result
from pitboss.report.shell import Part, ReportPage, resource
from pitboss.report.source import Plain, number
from pitboss.report.study.view import period


def compose(arena: Plain) -> ReportPage:
    """The page. Runs of the document may have an `href`, the address of their own report."""
    runs = [run for entry in arena["entries"] for run in entry["runs"]]
    if not arena["has_account"]:
        return _compose_judged(arena, runs)
    parts: list[Part] = [
        ("board", "Board", "Leaderboard", leaderboard(arena)),
        ("duels", "Pairs", "Significant differences", join([difference_chart(arena), pair_table(arena)])),
        ("curves", "Equity", "Equity of all entrants", curve_chart(arena)),
        ("repeats", "Repeats", "Variation between repeats", repeat_chart(arena)),
        ("costs", "Costs", "Cost and time", cost_section(arena)),
        ("runs", "Runs", "All runs", run_section(arena)),
        ("failed", "Failures", "Runs without a result", _failures(arena)),
        ("luck", "Chance", "How likely chance explains the result", significance_section(arena)),
        ("limits", "Limits", "Method and limits", limits(arena)),
        ("verify", "Verify", "Verify this result", check_section(arena["study_id"], "arena", runs)),
    ]
    top = [_title(arena), _labels(arena), _tiles(arena)]
    return ReportPage(f"{arena['skill']} arena", top, paragraphs(arena), parts, style=_style())


def _compose_judged(arena: Plain, runs: Sequence[Plain]) -> ReportPage:
    """The page of an arena without accounts: no returns, so no equity, no pairs and nothing about chance."""
    parts: list[Part] = [
        ("board", "Board", "Leaderboard", judged_leaderboard(arena)),
        ("repeats", "Repeats", "Variation between repeats", repeat_chart(arena)),
        ("costs", "Costs", "Cost and time", cost_section(arena)),
        ("runs", "Runs", "All runs", run_section(arena)),
        ("failed", "Failures", "Runs without a result", _failures(arena)),
        ("limits", "Limits", "Method and limits", judged_limits(arena)),
        ("verify", "Verify", "Verify this result", check_section(arena["study_id"], "arena", runs)),
    ]
    foot = "Results of a simulation do not predict future results. All times are UTC."
    top = [_title(arena), _labels(arena), judged_tiles(arena)]
    return ReportPage(f"{arena['skill']} arena", top, judged_paragraphs(arena), parts, foot, _style())


def _style() -> str:
    return resource("pitboss.report", "hues.css") + resource("pitboss.report.arena", "arena.css")


def _title(arena: Plain) -> Html:
    complete = arena["complete"] == arena["runs"]
    rows = [
        ("Period", period(arena["from_at"], arena["to_at"])),
        *([("Days", figures.count(arena["days"]))] if arena["has_account"] else []),
        ("Entrants", figures.count(len(arena["entries"]))),
        ("Repeats of a model", figures.count(arena["repeats"])),
        ("Study", arena["study_id"]),
    ]
    return header("Arena", "complete" if complete else "partial", complete, arena["skill"], rows)


def _labels(arena: Plain) -> Html:
    labels: list[Html] = []
    if arena["synthetic"]:
        meaning = (
            "The prices are generated. The result allows no conclusion about a real market, or about models in one."
        )
        labels.append(label("Synthetic market", meaning))
    return label_list([*labels, *(label("Warning", warning) for warning in arena["warnings"])])


def _tiles(arena: Plain) -> Html:
    ranked = [entry for entry in arena["entries"] if entry["tier"] is not None]
    first = [entry for entry in ranked if entry["tier"] == 1]
    significant = sum(pair["told_apart"] for pair in arena["pairs"])
    over = arena["overfitting"]
    return tag(
        "div",
        tile(
            "First tier",
            f"{len(first)} of {len(arena['entries'])}",
            note(_first(first, len(ranked))),
            None,
            "lead",
        ),
        tile(
            "Probability of overfitting",
            figures.share(over["probability"], 0) if over else figures.NONE,
            note("that the best entrant was selected by chance" if over else "too few days"),
            None,
            "lead",
        ),
        tile("Tiers", figures.count(arena["tiers"]), note(f"among {figures.plural(len(arena['entries']), 'entrant')}")),
        tile("Significant pairs", figures.count(significant), note(f"of {figures.count(len(arena['pairs']))}")),
        tile("Runs", figures.count(arena["complete"]), note(f"of {figures.count(arena['runs'])} complete")),
        tile("Runs counted", figures.count(arena["trials"]), note("by the deflated Sharpe")),
        tile(
            "Cost of the models",
            figures.usd(arena["cost_usd"]),
            note("including cached answers" if number(arena["cost_usd"]) else "no model was paid"),
        ),
        class_="tiles",
    )


def _first(first: Sequence[Plain], ranked: int) -> str:
    if not first:
        return "no run has a result yet"
    if len(first) > 1:
        significance = "is not distinguishable from the others in this tier"
    else:
        significance = "is significantly ahead of all others" if ranked > 1 else "is the only entrant with a result"
    return f"{first[0]['model']} ended highest; it {significance}"


def _failures(arena: Plain) -> Html:
    failures = [
        (run, (entry["model"], figures.count(run["repeat"] + 1)))
        for entry in arena["entries"]
        for run in without_result(entry["runs"])
    ]
    return failure_section(failures, ("Entrant", "Repeat"))
