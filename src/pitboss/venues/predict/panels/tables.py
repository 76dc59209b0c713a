"""Tables of the predict report: forecasters on the same calls, heuristics on the same course, the spread, all figures."""

from collections.abc import Sequence

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.meaning import Form
from pitboss.report.measures import format_metric
from pitboss.report.source import Plain, mapping, model_cost, number, pair
from pitboss.report.table import LEFT, RIGHT, gain_or_loss, table
from pitboss.venues.predict.panels.source import PredictReport, nested
from pitboss.venues.predict.panels.summary import cents, score

FORECASTERS = {
    "model": ("The model", "Its confidence, as it named it."),
    "market": ("The market's price", "The ask over the sum of both sides' asks: the two sides add up to one."),
    "market_ask": ("The ask as it is", "With the spread in it, so both sides together say more than one."),
    "coin": ("A coin", "One half, always."),
    "always_no": ("Always NO", "Certain that the price ends at or below the strike."),
}
TRADERS = {
    "alternate": ("Alternate", "YES and NO in turn, at the first strike from spot that is admitted."),
    "yes_only": ("YES only", "Always YES, the same way."),
    "no_only": ("NO only", "Always NO, the same way."),
}


def score_section(report: PredictReport) -> Html:
    """Who knew better, and who earned more."""
    return join([_forecasts(report), tag("h3", "Trading the same course"), _trading(report)])


def _forecasts(report: PredictReport) -> Html:
    told = mapping(report.baselines.get("forecasts"))
    all_calls, minted = mapping(told.get("all")), mapping(told.get("minted"))
    if not number(told.get("calls")):
        return tag("p", "No call could be scored beside the market's price.", class_="note")
    keys = [key for key in FORECASTERS if key in all_calls]
    columns = (
        ("Forecaster", LEFT),
        ("Brier, all calls", RIGHT),
        ("Log loss", RIGHT),
        ("Brier, minted", RIGHT),
        ("Log loss", RIGHT),
    )
    picked = ((all_calls, "brier"), (all_calls, "log_loss"), (minted, "brier"), (minted, "log_loss"))
    best = [_lowest([nested(group, key, name) for key in keys]) for group, name in picked]
    rows = [
        (
            _named(*FORECASTERS[key]),
            *[_cell(nested(group, key, name), least) for (group, name), least in zip(picked, best, strict=True)],
        )
        for key in keys
    ]
    some = number(nested(minted, "model", "calls"))
    words = (
        f"Lower is better, and the best of a column is bold. Everybody is scored on the same "
        f"{figures.plural(told.get('calls'), 'call')} in {figures.plural(told.get('markets'), 'market')} "
        f"({figures.count(some)} of them minted): those with a confidence, a known price of both sides, and a market that "
        f"settled. For log loss no probability counts as less than {figures.share(report.metrics.get('log_loss_clip'))}."
    )
    return join([tag("p", words, class_="note"), table("Scores on the same calls", columns, rows, style="named")])


def _named(name: str, meaning: str) -> Html:
    return tag("span", name, tag("small", meaning), class_="stack")


def _lowest(values: Sequence[object]) -> float | None:
    return min((found for value in values if (found := number(value)) is not None), default=None)


def _cell(value: object, least: float | None) -> object:
    shown = score(value)
    return tag("b", shown) if least is not None and number(value) == least else shown


def _trading(report: PredictReport) -> Html:
    trading = mapping(report.baselines.get("trading"))
    rows = [_trader("This run", "What the model decided, after the rules.", report.metrics)]
    rows += [_trader(*TRADERS.get(name, (name, "")), mapping(trading[name])) for name in trading]
    columns = (
        ("Who", LEFT),
        ("Return", RIGHT),
        ("Result", RIGHT),
        ("Max drawdown", RIGHT),
        ("Mints", RIGHT),
        ("Hit rate", RIGHT),
        ("Spent", RIGHT),
        ("Spread cost", RIGHT),
        ("Edge a contract", RIGHT),
    )
    return table("Trading", columns, rows, style="named")


def _trader(name: str, meaning: str, told: Plain) -> tuple[object, ...]:
    change = told.get("total_return_pct")
    return (
        _named(name, meaning),
        gain_or_loss(figures.percent(change, signed=True), figures.tone(change)),
        figures.usd(told.get("pnl_usd"), signed=True),
        figures.percent(told.get("max_drawdown_pct")),
        figures.count(told.get("mints")),
        figures.share(told.get("hit_rate")),
        figures.usd(told.get("total_spend_usd")),
        figures.usd(nested(told, "spread_cost", "total_usd")),
        cents(nested(told, "edge", "minted", "realised_per_contract")),
    )


def spread_section(report: PredictReport) -> Html:
    """What stood between the fair price and the price paid, and what was left of the result."""
    metrics = report.metrics
    spread = mapping(metrics.get("spread_cost"))
    model = model_cost(report.run.document)[0] or 0.0
    mints, redeems = (number(spread.get(name)) or 0.0 for name in ("mints_usd", "redeems_usd"))
    total, result = mints + redeems, number(metrics.get("pnl_usd")) or 0.0
    rows = [
        (
            _named("Buying above the fair price", "Ask less fair, times contracts."),
            figures.usd(mints),
            _of(mints, metrics),
        ),
        (
            _named("Selling back below it", "Fair less bid, times contracts."),
            figures.usd(redeems),
            _of(redeems, metrics),
        ),
        (tag("b", "All of the spread"), tag("b", figures.usd(total)), tag("b", _of(total, metrics))),
        (_named("The model", "Paid apart, not taken from the account."), figures.usd(model), _of(model, metrics)),
    ]
    columns = (("Cost", LEFT), ("USD", RIGHT), ("Of what was spent", RIGHT))
    outcome = (("Result without any spread", result + total), ("Result of the account", result))
    facts = [
        tag("div", tag("dt", name), tag("dd", figures.usd(value, signed=True), class_=figures.tone(value)))
        for name, value in (*outcome, ("Result after paying the model", result - model))
    ]
    unknown = number(spread.get("unknown_fills"))
    missing = (
        f"The fair price of {figures.plural(unknown, 'fill')} is not known; they are not in here." if unknown else ""
    )
    return join(
        [
            tag("p", missing, class_="note") if missing else Html(),
            table("Cost of the spread", columns, rows, style="named"),
            tag("dl", *facts, class_="facts wide"),
        ]
    )


def _of(value: float, metrics: Plain) -> str:
    spent = number(metrics.get("total_spend_usd"))
    return figures.percent(100 * value / spent) if spent else figures.NONE


FIGURES: tuple[tuple[tuple[str, ...], str, Form, str], ...] = (
    (("total_return_pct",), "Total return", "signed_percent", "Change of equity; open contracts count at their bid."),
    (("final_equity_usd",), "Final equity", "usd", "What the account was worth at the end."),
    (("realised_pnl_usd",), "Realised result", "usd", "Of contracts that were sold back or paid out."),
    (("max_drawdown_pct",), "Max drawdown", "percent", "Deepest fall from an earlier peak."),
    (("max_drawdown_duration_days",), "Longest drawdown", "days", "Longest time from a peak until it was reached again."),
    (("sharpe",), "Sharpe", "ratio", "Mean daily return over its deviation, scaled to a year."),
    (("calls",), "Calls", "count", "Decisions to buy that named an open market, once each; refused ones too."),
    (("calls_without_confidence",), "Without a confidence", "count", "They have no probability to score."),
    (("calls_unresolved",), "Unresolved", "count", "Their market had not settled when the run ended."),
    (("mints",), "Mints", "count", "Times contracts were bought."),
    (("redeems",), "Redeems", "count", "Times contracts were sold back before settlement."),
    (("payouts",), "Settled", "count", "Positions that were settled, won or lost."),
    (("wins",), "Wins", "count", "Settled mints whose side won, as if held."),
    (("hit_rate",), "Hit rate", "share", "Wins among the settled mints."),
    (("scores", "all", "brier"), "Brier score", "ratio", "Of every scored call; a coin has 0.25, lower is better."),
    (("scores", "all", "log_loss"), "Log loss", "ratio", "Of every scored call; a coin has 0.693, lower is better."),
    (
        ("scores", "all", "calibration_error"),
        "Calibration error",
        "share",
        "How far what was said and what happened are apart, on average.",
    ),
    (("scores", "all", "against", "normalised", "skill"), "Skill, against the price", "signed_share", "1 − Brier / market's Brier."),
    (("scores", "all", "against", "ask", "skill"), "Skill, against the ask", "signed_share", "The ask as it is, spread included."),
    (("scores", "all", "against", "fair", "skill"), "Skill, against the fair price", "signed_share", "What the surface says, without any spread."),
    (("scores", "minted", "against", "normalised", "skill"), "Skill, minted only", "signed_share", "On the calls that were bought."),
    (("edge", "calls", "promised"), "Edge promised, all calls", "signed_share", "Confidence less ask, each call the same."),
    (("edge", "calls", "realised"), "Edge realised, all calls", "signed_share", "Outcome less ask, bought or not."),
    (("edge", "minted", "promised_usd"), "Edge promised", "usd", "On what was bought, by the model's own probabilities."),
    (("edge", "minted", "realised_usd"), "Edge realised", "usd", "On what was bought, as if held to settlement."),
    (("total_ai_cost_usd",), "Cost of the model", "usd", "Paid for the answers that were used."),
    (("total_ticks",), "Ticks", "count", "Times the schedule came round."),
    (("total_proposed_actions",), "Decisions", "count", "What was proposed other than to hold."),
    (("total_accepted_actions",), "Accepted", "count", "Decisions the engine let through."),
    (("late_rejections_by_rule",), "Refused late", "table", "Accepted first, and refused when their price came."),
)  # fmt: skip
REACHES = {
    ("total_return_pct",): ("total_return_ci",),
    ("sharpe",): ("sharpe_ci",),
    ("hit_rate",): ("hit_rate_ci",),
    **{
        ("scores", group, "against", kind, "skill"): ("scores", group, "against", kind, "skill_ci")
        for group in ("all", "minted")
        for kind in ("normalised", "ask", "fair")
    },
}
"""Figure → where its 95 % interval is."""


def figure_section(report: PredictReport) -> Html:
    """Every figure with its interval and what it means."""
    rows: list[tuple[object, ...]] = []
    for path, name, form, meaning in FIGURES:
        value = nested(report.metrics, *path)
        digits = 4 if path[-1] in ("brier", "log_loss") else None
        reach = pair(nested(report.metrics, *REACHES[path])) if path in REACHES else None
        shown = figures.NONE if reach is None else " to ".join(format_metric(end, form) for end in reach)
        rows.append(
            (
                name,
                format_metric(value, form) if digits is None else score(value),
                shown if path in REACHES else "",
                meaning,
            )
        )
    columns = (("Figure", LEFT), ("This run", RIGHT), ("95% interval", RIGHT), ("Meaning", LEFT))
    return table("All figures", columns, rows, style="metrics")
