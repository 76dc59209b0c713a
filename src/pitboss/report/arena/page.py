"""The page of an arena: its sections in order. The document around them is that of every report."""

from collections.abc import Mapping, Sequence
from typing import Any

from pitboss.report import figures
from pitboss.report.arena.charts import curve_chart, difference_chart, repeat_chart
from pitboss.report.arena.leaderboard import cost_section, leaderboard, run_section
from pitboss.report.arena.pairs import pair_table
from pitboss.report.arena.summary import limits, luck_section, paragraphs
from pitboss.report.headline import label, note, tile
from pitboss.report.markup import Html, join, tag
from pitboss.report.runs import check_section, failure_section, without_result
from pitboss.report.shell import Part, document, layout, resource
from pitboss.report.source import number
from pitboss.report.study.view import period

Plain = Mapping[str, Any]


def render(arena: Plain) -> str:
    """The whole page as one HTML document. Runs of the document may have an `href`, the address of their own report."""
    runs = [run for entry in arena["entries"] for run in entry["runs"]]
    parts: list[Part] = [
        ("board", "Board", "Leaderboard", leaderboard(arena)),
        ("duels", "Duels", "Who can be told from whom", join([difference_chart(arena), pair_table(arena)])),
        ("curves", "Equity", "How they got there", curve_chart(arena)),
        ("repeats", "Repeats", "How much each differs from itself", repeat_chart(arena)),
        ("costs", "Costs", "What each cost and how long it took", cost_section(arena)),
        ("runs", "Runs", "Every run", run_section(arena)),
        ("failed", "Failures", "Runs without a result", _failures(arena)),
        ("luck", "Luck", "How much of it is luck", luck_section(arena)),
        ("limits", "Limits", "How this was compared", limits(arena)),
        ("verify", "Verify", "Check it yourself", check_section(arena["study_id"], "arena", runs)),
    ]
    body = layout(
        [_title(arena), _labels(arena), _tiles(arena)],
        paragraphs(arena),
        parts,
        "Past results of a simulation are not a promise. All times are UTC, all money is USD.",
    )
    return document(f"{arena['skill']} arena", body, resource("pitboss.report.arena", "arena.css"))


def _title(arena: Plain) -> Html:
    whole = arena["complete"] == arena["runs"]
    facts = [
        ("Period", period(arena["from_at"], arena["to_at"])),
        ("Days", figures.count(arena["days"])),
        ("Entrants", figures.count(len(arena["entries"]))),
        ("Repeats of a model", figures.count(arena["repeats"])),
        ("Study", arena["study_id"]),
    ]
    chip = tag("span", "complete" if whole else "partial", class_=f"chip {'ok' if whole else 'warn'}")
    return tag(
        "header",
        tag("p", "Arena", " ", chip, class_="kicker"),
        tag("h1", arena["skill"] or "Unnamed skill"),
        tag("dl", *[tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="facts"),
        class_="title",
    )


def _labels(arena: Plain) -> Html:
    found: list[Html] = []
    if arena["synthetic"]:
        found.append(
            label(
                "Synthetic market",
                "The prices are generated. Nothing follows about a real market, or about models in one.",
            )
        )
    found += [label("Mind", words) for words in arena["warnings"]]
    return tag("div", *found, class_="labels") if found else Html()


def _tiles(arena: Plain) -> Html:
    ranked = [entry for entry in arena["entries"] if entry["tier"] is not None]
    first = [entry for entry in ranked if entry["tier"] == 1]
    apart = sum(pair["told_apart"] for pair in arena["pairs"])
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
            note("that choosing the best of these chooses noise" if over else "too few days to say"),
            None,
            "lead",
        ),
        tile("Tiers", figures.count(arena["tiers"]), note(f"among {figures.plural(len(arena['entries']), 'entrant')}")),
        tile("Pairs told apart", figures.count(apart), note(f"of {figures.count(len(arena['pairs']))}")),
        tile("Runs", figures.count(arena["complete"]), note(f"of {figures.count(arena['runs'])} complete")),
        tile("Tries", figures.count(arena["trials"]), note("that the deflated Sharpe counts")),
        tile(
            "Cost of the models",
            figures.usd(arena["cost_usd"]),
            note("with answers that were known" if number(arena["cost_usd"]) else "nothing to pay"),
        ),
        class_="tiles",
    )


def _first(first: Sequence[Plain], ranked: int) -> str:
    if not first:
        return "no run has a result yet"
    if len(first) > 1:
        sure = "cannot be told from the others in this tier"
    else:
        sure = "is ahead of all others, beyond doubt" if ranked > 1 else "has nobody to be compared with"
    return f"{first[0]['model']} ended highest; it {sure}"


def _failures(arena: Plain) -> Html:
    failures = [
        (run, (entry["model"], figures.count(run["repeat"] + 1)))
        for entry in arena["entries"]
        for run in without_result(entry["runs"])
    ]
    return failure_section(failures, ("Entrant", "Repeat"))
