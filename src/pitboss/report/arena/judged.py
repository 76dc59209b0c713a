"""The parts of an arena's page for a venue without accounts: entrants by the metric that the venue is judged by."""

from pitboss.report import figures
from pitboss.report.arena.leaderboard import entrant_name, rank_range, repeats_link
from pitboss.report.headline import note, tile
from pitboss.report.markup import Html, join, tag
from pitboss.report.meaning import Form
from pitboss.report.measures import format_metric
from pitboss.report.metric import meanings_of, metric_meaning
from pitboss.report.provenance import sentence_list
from pitboss.report.runs import missing_results
from pitboss.report.source import Plain, number
from pitboss.report.study.summary import NOT_TESTED
from pitboss.report.table import LEFT, RIGHT, table


def judged_leaderboard(arena: Plain) -> Html:
    """Entrants, the best first; equal values share a rank."""
    meanings, by = meanings_of(arena), arena["by"]
    names = list(arena["entries"][0]["metrics"]) if arena["entries"] else []
    form = metric_meaning(by, meanings).form
    rows = [
        (
            entrant_name(entry),
            rank_range(entry["rank"]),
            tag("b", format_metric(entry["metrics"][by], form)),
            _spread(entry, form),
            *[
                format_metric(entry["metrics"][name], metric_meaning(name, meanings).form)
                for name in names
                if name != by
            ],
            repeats_link(entry, index),
        )
        for index, entry in enumerate(arena["entries"])
    ]
    head = [
        ("Entrant", LEFT),
        ("Rank", RIGHT),
        (metric_meaning(by, meanings).label, RIGHT),
        ("Lowest to highest", RIGHT),
        *[(metric_meaning(name, meanings).label, RIGHT) for name in names if name != by],
        ("Repeats", RIGHT),
    ]
    text = f"Means over the repeats of each entrant. Entrants of the same {metric_meaning(by, meanings).label.lower()} share a rank."
    return join([tag("p", text, class_="note"), table("Leaderboard", head, rows, style="board", stacks=True)])


def _spread(entry: Plain, form: Form) -> str:
    values = entry["values"]
    if not values:
        return figures.NONE
    return " to ".join(format_metric(value, form) for value in (min(values), max(values)))


def judged_tiles(arena: Plain) -> Html:
    """The headline numbers."""
    ranked = [entry for entry in arena["entries"] if entry["rank"] is not None]
    metric = metric_meaning(arena["by"], meanings_of(arena))
    best = ranked[0] if ranked else None
    return tag(
        "div",
        tile(
            f"Best {metric.label.lower()}",
            figures.NONE if best is None else format_metric(best["metrics"][arena["by"]], metric.form),
            note("no run has a result yet" if best is None else _first(arena)),
            None,
            "lead",
        ),
        tile("Entrants", figures.count(len(arena["entries"])), note(f"{len(ranked)} with a result"), None, "lead"),
        tile("Runs", figures.count(arena["complete"]), note(f"of {figures.count(arena['runs'])} complete")),
        tile(
            "Cost of the models",
            figures.usd(arena["cost_usd"]),
            note("including cached answers" if number(arena["cost_usd"]) else "no model was paid"),
        ),
        class_="tiles even",
    )


def _first(arena: Plain) -> str:
    return ", ".join(entry["model"] for entry in arena["entries"] if entry["rank"] and entry["rank"][0] == 1)


def judged_paragraphs(arena: Plain) -> list[str]:
    """The result in a few sentences."""
    failed = missing_results(arena["runs"] - arena["complete"])
    ranked = [entry for entry in arena["entries"] if entry["rank"] is not None]
    if not ranked:
        return [f"No run has a result yet. {failed}".strip()]
    metric = metric_meaning(arena["by"], meanings_of(arena))
    value = format_metric(ranked[0]["metrics"][arena["by"]], metric.form)
    shared = "share" if ranked[0]["rank"][1] > 1 else "has"
    result = f"{_first(arena)} {shared} the best {metric.label.lower()}, with a mean of {value}."
    return [result, f"{NOT_TESTED} {failed}".strip()]


def judged_limits(arena: Plain) -> Html:
    """The method of the comparison and its limits."""
    sentences = [
        "Entrants are ordered by the mean over their repeats, and at equal values by the other columns.",
        NOT_TESTED,
        "Repeats run the model again with another seed. They show the variation between its runs, not the result of another scenario.",
        "This is one skill in one scenario. Another skill or scenario may rank the same models differently.",
    ]
    if any(not entry["baseline"] for entry in arena["entries"]):
        sentences.append("A language model may have seen the scenario, or one like it, in its training data.")
    return sentence_list(sentences)
