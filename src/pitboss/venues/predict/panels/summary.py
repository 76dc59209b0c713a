"""The top of the page: is the model better than the market's price? In a line, in tiles, and in plain words."""

from typing import Literal

from pitboss.report import figures
from pitboss.report.funnel import Funnel
from pitboss.report.headline import interval, label, note, tile
from pitboss.report.markup import Html, tag
from pitboss.report.meaning import rule
from pitboss.report.source import Plain, mapping, number, pair
from pitboss.venues.predict.panels.source import PredictReport, Surfaces, nested

Conclusion = Literal["better", "worse", "open", "few", "none"]

ANSWERS: dict[Conclusion, str] = {
    "better": "Yes: its probabilities were better than the market's price.",
    "worse": "No: its probabilities were worse than the market's price.",
    "open": "It cannot be told: the model and the market's price are too close for the number of markets.",
    "few": "It cannot be told: too few markets settled for an interval.",
    "none": "There is nothing to judge: no confidence was named on a market that settled.",
}

FITTED = (
    "No volatility surface was recorded for these markets. Their prices come from a formula: a flat surface whose variance "
    "is the realised volatility of one-minute returns over the 24 hours before, times the time left. “The market's price” "
    "on this page is that formula's, and nobody traded at it."
)
RECORDED = (
    "Prices come from volatility surfaces that were recorded at the time, each used only from the moment it was known. "
    "“The market's price” on this page is what the venue's formula makes of them."
)
MIXED = (
    "Some prices come from volatility surfaces that were recorded at the time. Where none was known for a market, a flat one "
    "stands in, fitted to the realised volatility of one-minute returns over the 24 hours before. “The market's price” on this "
    "page is what the venue's formula makes of both."
)
SURFACES: dict[Surfaces, tuple[str, str]] = {
    "fitted": ("Surfaces fitted from realised volatility", FITTED),
    "mixed": ("Surfaces recorded in part", MIXED),
    "recorded": ("Recorded surfaces", RECORDED),
}
"""How the market came about: a name and the whole of it."""


def conclude(report: PredictReport) -> Conclusion:
    """What the interval of the skill allows to say."""
    beside = report.against()
    if not number(beside.get("calls")):
        return "none"
    reach = pair(beside.get("skill_ci"))
    if reach is None:
        return "few"
    return "better" if reach[0] > 0 else "worse" if reach[1] < 0 else "open"


def answer(report: PredictReport) -> Html:
    """The question everybody comes with, and its answer."""
    found = conclude(report)
    return tag(
        "div",
        tag("p", "Is the model better than the market's price?", class_="question"),
        tag("p", ANSWERS[found], class_="said"),
        tag("p", _measured(report), class_="below"),
        class_=f"answer {found}",
        role="note",
    )


def _measured(report: PredictReport) -> str:
    beside = report.against()
    count = number(beside.get("calls"))
    if not count:
        return "Every other number on this page still holds."
    reach = pair(beside.get("skill_ci"))
    said = (
        f"Brier score {score(beside.get('model_brier'))} against {score(beside.get('market_brier'))} of the price, on the same "
        f"{figures.plural(count, 'call')} in {figures.plural(beside.get('markets'), 'market')}; lower is better. "
        f"Skill {figures.share(beside.get('skill'), signed=True)}"
    )
    if reach is None:
        return f"{said}, without an interval."
    low, high = (figures.share(value, signed=True) for value in reach)
    return f"{said}, 95% interval {low} to {high}."


def score(value: object) -> str:
    """A Brier score or a log loss."""
    return figures.plain(value, 4)


def surface_label(report: PredictReport) -> Html:
    """How the market came about. It is never left out: it decides what the answer above is about."""
    name, words = SURFACES[report.surfaces]
    quiet = " plain-label" if report.surfaces == "recorded" else ""
    return tag("div", label(name, f"{words} {report.surface_note}".strip()), class_=f"labels{quiet}")


def tiles(report: PredictReport, funnel: Funnel) -> Html:
    """The headline numbers."""
    metrics, beside = report.metrics, report.against()
    skill, reach = number(beside.get("skill")), pair(beside.get("skill_ci"))
    percents = None if reach is None else [reach[0] * 100, reach[1] * 100]
    own = metrics.get("total_return_pct")
    spread = mapping(metrics.get("spread_cost"))
    return tag(
        "div",
        tile(
            "Skill against the market's price",
            figures.share(skill, signed=True),
            interval(percents, None if skill is None else skill * 100, percent=True),
            skill,
            "lead",
        ),
        tile(
            "Return",
            figures.percent(own, signed=True),
            note(f"{figures.usd(metrics.get('pnl_usd'), signed=True)}; {_best_heuristic(report)}"),
            own,
            "lead",
        ),
        tile("Hit rate", figures.share(metrics.get("hit_rate")), note(_hits(metrics))),
        tile("Edge promised", cents(nested(metrics, "edge", "minted", "promised_per_contract")), note("a contract")),
        tile(
            "Edge realised",
            cents(nested(metrics, "edge", "minted", "realised_per_contract")),
            note("a contract, if held"),
        ),
        tile("Cost of spread", figures.usd(spread.get("total_usd")), note(_of_spend(spread))),
        tile(
            "Refused", figures.count(funnel.total_refused), note(f"of {figures.plural(funnel.proposals, 'decision')}")
        ),
        class_="tiles",
    )


def cents(value: object) -> str:
    """A part of a contract's payout, in cents with a sign."""
    found = number(value)
    return figures.NONE if found is None else f"{figures.plain(found * 100, 1, signed=True)} ¢"


def _hits(metrics: Plain) -> str:
    reach = pair(metrics.get("hit_rate_ci"))
    count = figures.plural(metrics.get("minted_resolved"), "settled mint")
    if reach is None:
        return count
    return f"{count}; 95% {figures.share(reach[0], 0)} to {figures.share(reach[1], 0)}"


def _of_spend(spread: Plain) -> str:
    part = number(spread.get("share_of_spend"))
    return "nothing was spent" if part is None else f"{figures.share(part)} of what was spent"


def _best_heuristic(report: PredictReport) -> str:
    """The heuristic that came out best, by its return."""
    trading = mapping(report.baselines.get("trading"))
    known = [
        (found, name) for name in trading if (found := number(nested(trading, name, "total_return_pct"))) is not None
    ]
    if not known:
        return "no heuristic beside it"
    best, name = max(known)
    return f"best heuristic: {name.replace('_', ' ')} {figures.percent(best, signed=True)}"


def paragraphs(report: PredictReport, funnel: Funnel) -> list[str]:
    """What came out, then how it came about."""
    first = [_skill(report), _calibrated(report), _edge(report), _caveat(report)]
    second = [_money(report), _spread(report), _refusals(funnel), _unresolved(report)]
    return [" ".join(filter(None, sentences)) for sentences in (first, second) if any(sentences)]


def _skill(report: PredictReport) -> str:
    found, beside = conclude(report), report.against()
    if found == "none":
        return (
            "No decision of this run named a confidence on a market that settled, so there is no probability to hold "
            "against the market's."
        )
    skill = number(beside.get("skill"))
    near = (
        "as far from what happened as"
        if not skill
        else "closer to what happened than"
        if skill > 0
        else "further from what happened than"
    )
    ends = {
        "better": "The whole interval lies above zero, so in this period that was hardly luck.",
        "worse": "The whole interval lies below zero: taking the price for the probability would have been wiser.",
        "open": "The interval holds zero, so this can be luck either way.",
        "few": "With so few markets that says next to nothing.",
    }
    calls = figures.plural(beside.get("calls"), "call")
    return f"On {calls} the model's probabilities were {near} the ones in the market's own prices. {ends[found]}"


def _calibrated(report: PredictReport) -> str:
    scores = report.scores()
    meant, seen = number(scores.get("mean_confidence")), number(scores.get("observed"))
    if meant is None or seen is None:
        return ""
    gap = meant - seen
    name = "about right" if abs(gap) < 0.02 else "too sure" if gap > 0 else "not sure enough"
    return (
        f"It gave its chosen sides {figures.share(meant)} on average and {figures.share(seen)} of them won: on the whole "
        f"it was {name}."
    )


def _edge(report: PredictReport) -> str:
    edge = mapping(nested(report.metrics, "edge", "minted"))
    promised, realised = edge.get("promised_per_contract"), edge.get("realised_per_contract")
    if number(realised) is None:
        return ""
    settled = f"At settlement it was worth {_apart(realised)} its price."
    if number(promised) is None:
        return f"Take an average contract it bought. {settled}"
    return f"By its own probabilities an average contract it bought was worth {_apart(promised)} its price. {settled}"


def _apart(edge: object) -> str:
    """`6.3 ¢ more than`, without a sign to read."""
    found = number(edge) or 0.0
    return f"{figures.plain(abs(found) * 100, 1)} ¢ {'more' if found >= 0 else 'less'} than"


def _caveat(report: PredictReport) -> str:
    said = ""
    if report.surfaces == "fitted":
        said = "The price here is a formula of past volatility, so being better than it is not the same as beating a market."
    if report.run.standin:
        said += " The decisions came from a program, so nothing follows about a language model."
    return said.strip()


def _money(report: PredictReport) -> str:
    run = report.run
    start, last = figures.day(run.from_at), figures.day(run.equity[-1][0] if len(run.equity) else run.from_at)
    partly = "" if run.finished else "The run did not finish, so this covers only its first part. "
    metrics = report.metrics
    days = f"On {start}" if start == last else f"From {start} to {last}"
    return (
        f"{partly}{days} the account went from {figures.usd(run.initial_usd)} to {figures.usd(run.final_usd)}: "
        f"{figures.usd(metrics.get('total_spend_usd'))} went into {figures.plural(metrics.get('mints'), 'mint')}, "
        f"{figures.usd(metrics.get('total_payout_usd'))} came back at settlement and "
        f"{figures.usd(metrics.get('total_redeemed_usd'))} from selling before it."
    )


def _spread(report: PredictReport) -> str:
    spread = mapping(report.metrics.get("spread_cost"))
    whole = number(spread.get("total_usd"))
    if not whole:
        return ""
    return f"The spread took {figures.usd(whole)}, {figures.share(spread.get('share_of_spend'))} of what was spent."


def _refusals(funnel: Funnel) -> str:
    if not funnel.refused:
        return "The engine refused nothing." if funnel.proposals else "Nothing was ever proposed."
    code = next(iter(funnel.refused))
    return (
        f"The engine refused {figures.count(funnel.total_refused)} of {figures.plural(funnel.proposals, 'decision')}, "
        f"{'most often ' if len(funnel.refused) > 1 else ''}by {code} ({rule(code).name.lower()})."
    )


def _unresolved(report: PredictReport) -> str:
    open_calls = number(report.metrics.get("calls_unresolved"))
    if not open_calls:
        return ""
    return f"{figures.plural(open_calls, 'call')} stood on markets that had not settled when the run ended; they are not scored."
