"""The summary of an arena in sentences, its significance, and its limits."""

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag, with_code
from pitboss.report.overfitting import explained_table, overfit_rows
from pitboss.report.provenance import sentence_list
from pitboss.report.runs import missing_results
from pitboss.report.source import Plain


def paragraphs(arena: Plain) -> list[str]:
    """The result, then its significance."""
    entries = [entry for entry in arena["entries"] if entry["tier"] is not None]
    failed = missing_results(arena["runs"] - arena["complete"])
    if not entries:
        return [f"No run has a result yet. {failed}".strip()]
    first = [entry for entry in entries if entry["tier"] == 1]
    best = first[0]
    result = [
        f"{best['model']} ended highest, with a mean return of {figures.percent(best['total_return_pct'], signed=True)} over "
        f"{figures.plural(arena['days'], 'day')}."
    ]
    if len(entries) == 1:
        result.append("No other entrant has a result to compare it with.")
    elif len(first) == len(entries):
        result.append(
            "No entrant is statistically distinguishable from it: all share one tier, and their order is not a ranking."
        )
    elif len(first) > 1:
        rivals = ", ".join(entry["model"] for entry in first[1:])
        result.append(f"It is not statistically distinguishable from {rivals}; these share the first tier.")
    else:
        result.append("Every other entrant ended significantly below it in this period.")
    models = [entry for entry in entries if not entry["baseline"]]
    rules = [entry for entry in entries if entry["baseline"]]
    if models and rules:
        result.append(_against_rules(arena, models, rules))
    significance = [_overfitting(arena), _money(models), failed]
    return [" ".join(result), " ".join(filter(None, significance))]


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
        return f"Of the models, {', '.join(ahead)} did significantly better than the best baseline ({best})."
    return f"No model did significantly better than the best baseline ({best})."


def _overfitting(arena: Plain) -> str:
    over = arena["overfitting"]
    if over is None:
        return "There are too few days to estimate the probability of overfitting."
    return (
        f"The best entrant on half of the days ranked in the lower half on the other days in "
        f"{figures.share(over['probability'], 0)} of {figures.count(over['splits'])} splits."
    )


def _money(models: list[Plain]) -> str:
    costs = [(entry["cost_per_run_usd"], entry["model"]) for entry in models if entry["cost_per_run_usd"]]
    if len(costs) < 2:
        return ""
    low, high = min(costs), max(costs)
    return f"A run cost from {figures.usd(low[0])} ({low[1]}) to {figures.usd(high[0])} ({high[1]})."


def significance_section(arena: Plain) -> Html:
    """The probability of overfitting and the deflated Sharpe, with explanations."""
    note = (
        f"The deflated Sharpe on the leaderboard is the probability that the true Sharpe of an entrant is above the expected best of "
        f"{figures.plural(arena['trials'], 'run')} without skill (Bailey and López de Prado 2014). Every run counts, repeats included. "
        "Below 95% it is not significant."
    )
    return join(
        [
            explained_table("Overfitting", overfit_rows(arena["overfitting"], "entrants")),
            tag("p", note, class_="note after"),
        ]
    )


def limits(arena: Plain) -> Html:
    """The method of the comparison and its limits."""
    sentences = [
        arena["correction"],
        "Entrants are compared by the mean logarithm of their final equity over repeats. A difference of 3% means 3% more final "
        "equity.",
        "An entrant joins a tier unless the first of the tier is significantly better. Significance is not transitive, so an "
        "entrant may also be indistinguishable from one in another tier: the possible ranks show what is left open.",
        "Repeats run the model again with another seed. They show the variation between its runs, not the result of another period.",
        "This is one skill over one period of history. Another skill, market or period may rank the same models differently.",
    ]
    if any(not entry["baseline"] for entry in arena["entries"]):
        sentences.append(
            with_code(
                "The training data of a language model may include this period. `pitboss audit memory` tests for that; a good "
                "result before its training cutoff can come from memory."
            )
        )
    return sentence_list(sentences)
