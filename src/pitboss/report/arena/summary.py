"""What an arena shows in plain words, and how far it carries."""

from collections.abc import Mapping
from typing import Any

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.overfitting import explained_table, overfit_rows
from pitboss.report.runs import missing_results

Plain = Mapping[str, Any]


def paragraphs(arena: Plain) -> list[str]:
    """What came out, then how sure it is."""
    entries = [entry for entry in arena["entries"] if entry["tier"] is not None]
    failed = missing_results(arena["runs"] - arena["complete"])
    if not entries:
        return [f"No run has a result yet. {failed}".strip()]
    first = [entry for entry in entries if entry["tier"] == 1]
    best = first[0]
    said = [
        f"{best['model']} ended highest, with a mean return of {figures.percent(best['total_return_pct'], signed=True)} over "
        f"{figures.plural(arena['days'], 'day')}."
    ]
    if len(entries) == 1:
        said.append("No other entrant has a result to compare it with.")
    elif len(first) == len(entries):
        said.append("No entrant can be told from it: all share one tier, and their order is no ranking.")
    elif len(first) > 1:
        others = ", ".join(entry["model"] for entry in first[1:])
        said.append(f"It cannot be told from {others}; these share the first tier.")
    else:
        said.append("Every other entrant ended below it beyond what luck explains in this period.")
    models = [entry for entry in entries if not entry["baseline"]]
    rules = [entry for entry in entries if entry["baseline"]]
    if models and rules:
        said.append(_against_rules(arena, models, rules))
    second = [_luck(arena), _money(models), failed]
    return [" ".join(said), " ".join(filter(None, second))]


def _against_rules(arena: Plain, models: list[Plain], rules: list[Plain]) -> str:
    best = rules[0]["model"]
    ahead = [
        model["model"]
        for model in models
        for pair in arena["pairs"]
        if pair["told_apart"]
        and (
            ((pair["first"], pair["second"]) == (model["model"], best) and pair["percent"] > 0)
            or ((pair["first"], pair["second"]) == (best, model["model"]) and pair["percent"] < 0)
        )
    ]
    if ahead:
        return f"Of the models, {', '.join(ahead)} did better than the best baseline ({best})."
    return f"No model did better than the best baseline ({best}) beyond doubt."


def _luck(arena: Plain) -> str:
    over = arena["overfitting"]
    if over is None:
        return "The days are too few to say how likely it is that choosing the best of these would choose noise."
    return (
        f"Choosing the best entrant on half of the days put it into the lower half on the other days in "
        f"{figures.share(over['probability'], 0)} of {figures.count(over['splits'])} splits."
    )


def _money(models: list[Plain]) -> str:
    costs = [(entry["cost_per_run_usd"], entry["model"]) for entry in models if entry["cost_per_run_usd"]]
    if len(costs) < 2:
        return ""
    low, high = min(costs), max(costs)
    return f"A run cost from {figures.usd(low[0])} ({low[1]}) to {figures.usd(high[0])} ({high[1]})."


def luck_section(arena: Plain) -> Html:
    """The probability of overfitting and the deflated Sharpe, with what they mean."""
    words = (
        f"The deflated Sharpe on the board is the probability that an entrant's true Sharpe is above what the best of "
        f"{figures.count(arena['trials'])} tries without any skill would show by luck (Bailey and López de Prado 2014). Each run counts "
        "as a try, repeats included. Below 95% it proves nothing."
    )
    return join(
        [
            explained_table("Overfitting", overfit_rows(arena["overfitting"], "entrants")),
            tag("p", words, class_="note after"),
        ]
    )


def limits(arena: Plain) -> Html:
    """How the comparison was made, and what it does not say."""
    said = [
        arena["correction"],
        "Compared is what entrants end with: the mean logarithm of the final equity over repeats. A difference of 3% means that the "
        "one ended with 3% more than the other.",
        "An entrant joins a tier if it cannot be told from the tier's first. Being told apart is no chain, so an entrant may also be "
        "impossible to tell from one in another tier: the possible ranks say what is left open.",
        "Repeats ask the model again with another seed. They show how much it differs from itself, not how another period would go.",
        "This is one skill over one stretch of history. Another skill, market or period may order the same models differently.",
    ]
    if any(not entry["baseline"] for entry in arena["entries"]):
        said.append(
            "A language model may have read about this period while it was trained. `pitboss audit memory` tests for that; a good "
            "result before its training cutoff can be memory."
        )
    return tag("ul", *[tag("li", sentence) for sentence in said], class_="plain")
