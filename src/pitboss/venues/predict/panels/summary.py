"""The conclusion of a predict run, whether the model beat the market's price: as a line, as tiles and as sentences."""

from typing import Literal

from pitboss.report import figures
from pitboss.report.funnel import Funnel
from pitboss.report.headline import interval, label, note, tile
from pitboss.report.markup import Html, tag
from pitboss.report.source import Plain, mapping, number, pair
from pitboss.venues.predict.panels.source import PredictReport, Surfaces, nested

Conclusion = Literal["better", "worse", "open", "few", "none"]

ANSWERS: dict[Conclusion, str] = {
    "better": "Yes: its probabilities were significantly better than the market's price.",
    "worse": "No: its probabilities were significantly worse than the market's price.",
    "open": "Inconclusive: the difference from the market's price is not significant for this number of markets.",
    "few": "Inconclusive: too few markets settled for an interval.",
    "none": "Not measurable: no decision with a confidence has a settled market.",
}

FITTED = (
    "No volatility surface was recorded for these markets. Their prices come from a formula: a flat surface whose variance "
    "is the realised volatility of one-minute returns over the 24 hours before, times the time left. “The market's price” "
    "on this page is the price of that formula; no trade took place at it."
)
RECORDED = (
    "Prices come from volatility surfaces that were recorded at the time, each used only from the moment it was available. "
    "“The market's price” on this page is computed from them by the venue's formula."
)
MIXED = (
    "Some prices come from volatility surfaces that were recorded at the time. Markets without one use a flat surface fitted "
    "to the realised volatility of one-minute returns over the 24 hours before. “The market's price” on this page is computed "
    "from both by the venue's formula."
)
PROTOCOL = (
    "Prices come from the volatility surfaces of the protocol's own markets, as its indexer reported them at the time. “The "
    "market's price” on this page is computed from them by the protocol's formula."
)
SURFACES: dict[Surfaces, tuple[str, str]] = {
    "protocol": ("The protocol's own surfaces", PROTOCOL),
    "fitted": ("Surfaces fitted from realised volatility", FITTED),
    "mixed": ("Surfaces recorded in part", MIXED),
    "recorded": ("Recorded surfaces", RECORDED),
}
"""The origin of the prices: a name and an explanation."""


def conclude(report: PredictReport) -> Conclusion:
    """The conclusion that the interval of the skill allows."""
    comparison = report.against()
    if not number(comparison.get("calls")):
        return "none"
    reach = pair(comparison.get("skill_ci"))
    if reach is None:
        return "few"
    return "better" if reach[0] > 0 else "worse" if reach[1] < 0 else "open"


def answer(report: PredictReport) -> Html:
    """The main question and its answer."""
    conclusion = conclude(report)
    return tag(
        "div",
        tag("p", "Is the model better than the market's price?", class_="question"),
        tag("p", ANSWERS[conclusion], class_="said"),
        tag("p", _measured(report), class_="below"),
        class_=f"answer {conclusion}",
        role="note",
    )


def _measured(report: PredictReport) -> str:
    comparison = report.against()
    count = number(comparison.get("calls"))
    if not count:
        return "All other numbers on this page are valid."
    reach = pair(comparison.get("skill_ci"))
    text = (
        f"Brier score {score(comparison.get('model_brier'))} against {score(comparison.get('market_brier'))} of the price, on the same "
        f"{figures.plural(count, 'call')} in {figures.plural(comparison.get('markets'), 'market')}; lower is better. "
        f"Skill {figures.share(comparison.get('skill'), signed=True)}"
    )
    if reach is None:
        return f"{text}, without an interval."
    low, high = (figures.share(value, signed=True) for value in reach)
    return f"{text}, 95% interval {low} to {high}."


def score(value: object) -> str:
    """A Brier score or a log loss, formatted."""
    return figures.plain(value, 4)


def surface_label(report: PredictReport) -> Html:
    """The origin of the prices. Always shown, because the answer above depends on it."""
    name, meaning = SURFACES[report.surfaces]
    quiet = " plain-label" if report.surfaces in ("recorded", "protocol") else ""
    return tag("div", label(name, f"{meaning} {report.surface_note}".strip()), class_=f"labels{quiet}")


def tiles(report: PredictReport, funnel: Funnel) -> Html:
    """The headline numbers."""
    metrics, comparison = report.metrics, report.against()
    skill, reach = number(comparison.get("skill")), pair(comparison.get("skill_ci"))
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
        tile("Edge promised", cents(nested(metrics, "edge", "minted", "promised_per_contract")), note("per contract")),
        tile(
            "Edge realised",
            cents(nested(metrics, "edge", "minted", "realised_per_contract")),
            note("per contract, if held"),
        ),
        tile("Cost of spread", figures.usd(spread.get("total_usd")), note(_of_spend(spread))),
        tile(
            "Refused", figures.count(funnel.total_refused), note(f"of {figures.plural(funnel.proposals, 'decision')}")
        ),
        class_="tiles",
    )


def cents(value: object) -> str:
    """A share of a contract's payout, in cents with a sign."""
    numeric = number(value)
    return figures.NONE if numeric is None else f"{figures.plain(numeric * 100, 1, signed=True)} ¢"


def _hits(metrics: Plain) -> str:
    reach = pair(metrics.get("hit_rate_ci"))
    count = figures.plural(metrics.get("minted_resolved"), "settled mint")
    if reach is None:
        return count
    return f"{count}; 95% {figures.share(reach[0], 0)} to {figures.share(reach[1], 0)}"


def _of_spend(spread: Plain) -> str:
    part = number(spread.get("share_of_spend"))
    return "no spend" if part is None else f"{figures.share(part)} of spend"


def _best_heuristic(report: PredictReport) -> str:
    """The heuristic with the highest return."""
    trading = mapping(report.baselines.get("trading"))
    returns = [
        (change, name) for name in trading if (change := number(nested(trading, name, "total_return_pct"))) is not None
    ]
    if not returns:
        return "no heuristic to compare"
    best, name = max(returns)
    return f"best heuristic: {name.replace('_', ' ')} {figures.percent(best, signed=True)}"


def paragraphs(report: PredictReport, funnel: Funnel) -> list[str]:
    """The result, then how it came about."""
    first = [_skill(report), _calibrated(report), _edge(report), _caveat(report)]
    second = [_money(report), _spread(report), funnel.refusals("decision"), _unresolved(report)]
    return [" ".join(filter(None, sentences)) for sentences in (first, second) if any(sentences)]


def _skill(report: PredictReport) -> str:
    conclusion, comparison = conclude(report), report.against()
    if conclusion == "none":
        return (
            "No decision of this run has a confidence and a settled market, so there is no probability to compare "
            "with the market's."
        )
    skill = number(comparison.get("skill"))
    near = (
        "as far from the outcomes as"
        if not skill
        else "closer to the outcomes than"
        if skill > 0
        else "further from the outcomes than"
    )
    ends = {
        "better": "The interval lies entirely above zero, so chance is an unlikely explanation in this period.",
        "worse": "The interval lies entirely below zero: the market's price was the better forecast.",
        "open": "The interval includes zero, so the difference is not significant.",
        "few": "With so few markets this is not significant.",
    }
    calls = figures.plural(comparison.get("calls"), "call")
    return f"On {calls} the model's probabilities were {near} the ones in the market's own prices. {ends[conclusion]}"


def _calibrated(report: PredictReport) -> str:
    scores = report.scores()
    confidence, observed = number(scores.get("mean_confidence")), number(scores.get("observed"))
    if confidence is None or observed is None:
        return ""
    gap = confidence - observed
    name = "well calibrated" if abs(gap) < 0.02 else "overconfident" if gap > 0 else "underconfident"
    return (
        f"It gave its chosen sides {figures.share(confidence)} on average and {figures.share(observed)} of them won: on average "
        f"it was {name}."
    )


def _edge(report: PredictReport) -> str:
    edge = mapping(nested(report.metrics, "edge", "minted"))
    promised, realised = edge.get("promised_per_contract"), edge.get("realised_per_contract")
    if number(realised) is None:
        return ""
    settled = f"At settlement it was worth {_apart(realised)} its price."
    if number(promised) is None:
        return f"For an average contract that it bought: {settled}"
    return (
        f"By its own probabilities an average contract that it bought was worth {_apart(promised)} its price. {settled}"
    )


def _apart(edge: object) -> str:
    """`6.3 ¢ more than`: the amount and its direction in words."""
    numeric = number(edge) or 0.0
    return f"{figures.plain(abs(numeric) * 100, 1)} ¢ {'more' if numeric >= 0 else 'less'} than"


def _caveat(report: PredictReport) -> str:
    text = ""
    if report.surfaces == "fitted":
        text = "The price here is a formula of past volatility, so a better score does not mean beating a market."
    if report.run.standin:
        text += " The decisions came from a program, so this allows no conclusion about language models."
    return text.strip()


def _money(report: PredictReport) -> str:
    run = report.run
    start, last = figures.day(run.from_at), figures.day(run.equity[-1][0] if len(run.equity) else run.from_at)
    partial = "" if run.finished else "The run did not finish, so this covers only its first part. "
    metrics = report.metrics
    days = f"On {start}" if start == last else f"From {start} to {last}"
    return (
        f"{partial}{days} the account went from {figures.usd(run.initial_usd)} to {figures.usd(run.final_usd)}: "
        f"{figures.usd(metrics.get('total_spend_usd'))} were spent on {figures.plural(metrics.get('mints'), 'mint')}, "
        f"{figures.usd(metrics.get('total_payout_usd'))} were paid out at settlement and "
        f"{figures.usd(metrics.get('total_redeemed_usd'))} came from selling before it."
    )


def _spread(report: PredictReport) -> str:
    spread = mapping(report.metrics.get("spread_cost"))
    total = number(spread.get("total_usd"))
    if not total:
        return ""
    return f"The spread cost {figures.usd(total)}, {figures.share(spread.get('share_of_spend'))} of spend."


def _unresolved(report: PredictReport) -> str:
    open_calls = number(report.metrics.get("calls_unresolved"))
    if not open_calls:
        return ""
    return f"{figures.plural(open_calls, 'call')} had markets that did not settle before the run ended; they are not scored."
