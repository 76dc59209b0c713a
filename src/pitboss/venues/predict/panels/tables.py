"""Tables of the predict page: forecasters on the same calls, heuristics on the same markets, the spread, all figures."""

from collections.abc import Sequence

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.meaning import Form
from pitboss.report.measures import format_metric, format_named, result_facts
from pitboss.report.source import Plain, mapping, model_cost, number, pair
from pitboss.report.table import LEFT, RIGHT, WIDE, gain_or_loss, table
from pitboss.venues.predict.panels.source import PredictReport, nested
from pitboss.venues.predict.panels.summary import cents, score

FORECASTERS = {
    "model": ("The model", "Its stated confidence."),
    "market": ("The market's price", "The ask over the sum of both sides' asks: the two sides add up to one."),
    "market_ask": ("The ask", "With the spread, so both sides add up to more than one."),
    "coin": ("Constant 50%", "One half for every call."),
    "always_no": ("Always NO", "Certain that the price ends at or below the strike."),
}
TRADERS = {
    "alternate": ("Alternate", "YES and NO in turn, at the first strike from spot that is admitted."),
    "yes_only": ("YES only", "Always YES, the same way."),
    "no_only": ("NO only", "Always NO, the same way."),
}


def score_section(report: PredictReport) -> Html:
    """Scores of the forecasters and results of the heuristics."""
    return join([_forecasts(report), tag("h3", "Trading the same markets"), _trading(report)])


def _forecasts(report: PredictReport) -> Html:
    forecasts = mapping(report.baselines.get("forecasts"))
    all_calls, minted = mapping(forecasts.get("all")), mapping(forecasts.get("minted"))
    if not number(forecasts.get("calls")):
        return tag("p", "No call could be compared with the market's price.", class_="note")
    keys = [key for key in FORECASTERS if key in all_calls]
    columns = (
        ("Forecaster", LEFT),
        ("Brier, all calls", RIGHT),
        ("Log loss", RIGHT),
        ("Brier, minted", RIGHT),
        ("Log loss", RIGHT),
    )
    columns_of_scores = ((all_calls, "brier"), (all_calls, "log_loss"), (minted, "brier"), (minted, "log_loss"))
    best = [_lowest([nested(group, key, name) for key in keys]) for group, name in columns_of_scores]
    rows = [
        (
            _with_meaning(*FORECASTERS[key]),
            *[
                _cell(nested(group, key, name), least)
                for (group, name), least in zip(columns_of_scores, best, strict=True)
            ],
        )
        for key in keys
    ]
    some = number(nested(minted, "model", "calls"))
    note = (
        f"Lower is better, and the best of each column is bold. All forecasters are scored on the same "
        f"{figures.plural(forecasts.get('calls'), 'call')} in {figures.plural(forecasts.get('markets'), 'market')} "
        f"({figures.count(some)} of them minted): those with a confidence, a known price of both sides, and a settled market. "
        f"Log loss limits probabilities to at least {figures.share(report.metrics.get('log_loss_clip'))}."
    )
    return join([tag("p", note, class_="note"), table("Scores on the same calls", columns, rows, style="named")])


def _with_meaning(name: str, meaning: str) -> Html:
    return tag("span", name, tag("small", meaning), class_="stack")


def _lowest(values: Sequence[object]) -> float | None:
    return min((numeric for value in values if (numeric := number(value)) is not None), default=None)


def _cell(value: object, least: float | None) -> object:
    text = score(value)
    return tag("b", text) if least is not None and number(value) == least else text


def _trading(report: PredictReport) -> Html:
    trading = mapping(report.baselines.get("trading"))
    rows = [_trader("This run", "The decisions of the model, after the rules.", report.metrics)]
    rows += [_trader(*TRADERS.get(name, (name, "")), mapping(trading[name])) for name in trading]
    columns = (
        ("Trader", LEFT),
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


def _trader(name: str, meaning: str, metrics: Plain) -> tuple[object, ...]:
    change = metrics.get("total_return_pct")
    return (
        _with_meaning(name, meaning),
        gain_or_loss(figures.percent(change, signed=True), figures.tone(change)),
        figures.usd(metrics.get("pnl_usd"), signed=True),
        figures.percent(metrics.get("max_drawdown_pct")),
        figures.count(metrics.get("mints")),
        figures.share(metrics.get("hit_rate")),
        figures.usd(metrics.get("total_spend_usd")),
        figures.usd(nested(metrics, "spread_cost", "total_usd")),
        cents(nested(metrics, "edge", "minted", "realised_per_contract")),
    )


def spread_section(report: PredictReport) -> Html:
    """The difference between fair and traded prices, and the result with and without it."""
    metrics = report.metrics
    spread = mapping(metrics.get("spread_cost"))
    model = model_cost(report.run.document)[0] or 0.0
    mints, redeems = (number(spread.get(name)) or 0.0 for name in ("mints_usd", "redeems_usd"))
    total, result = mints + redeems, number(metrics.get("pnl_usd")) or 0.0
    rows = [
        (
            _with_meaning("Buying above the fair price", "Ask less fair, times contracts."),
            figures.usd(mints),
            _of(mints, metrics),
        ),
        (
            _with_meaning("Selling back below it", "Fair less bid, times contracts."),
            figures.usd(redeems),
            _of(redeems, metrics),
        ),
        (tag("b", "Total spread"), tag("b", figures.usd(total)), tag("b", _of(total, metrics))),
        (_with_meaning("The model", "Paid separately, not from the account."), figures.usd(model), _of(model, metrics)),
    ]
    columns = (("Cost", LEFT), ("USD", RIGHT), ("Of spend", RIGHT))
    results = (
        ("Result without the spread", result + total),
        ("Result of the account", result),
        ("Result after the cost of the model", result - model),
    )
    unknown = number(spread.get("unknown_fills"))
    missing = (
        f"The fair price of {figures.plural(unknown, 'fill')} is unknown; they are not included." if unknown else ""
    )
    return join(
        [
            tag("p", missing, class_="note") if missing else Html(),
            table("Cost of the spread", columns, rows, style="named"),
            result_facts(results),
        ]
    )


def _of(value: float, metrics: Plain) -> str:
    spend_usd = number(metrics.get("total_spend_usd"))
    return figures.percent(100 * value / spend_usd) if spend_usd else figures.NONE


FIGURES: tuple[tuple[tuple[str, ...], str, Form, str], ...] = (
    (("total_return_pct",), "Total return", "signed_percent", "Change of equity; open contracts count at their bid."),
    (("final_equity_usd",), "Final equity", "usd", "What the account was worth at the end."),
    (("realised_pnl_usd",), "Realised result", "usd", "From contracts that were sold back or paid out."),
    (("max_drawdown_pct",), "Max drawdown", "percent", "Largest fall from an earlier peak."),
    (("max_drawdown_duration_days",), "Longest drawdown", "days", "Longest time from a peak until it was reached again."),
    (("sharpe",), "Sharpe", "ratio", "Mean daily return over its deviation, scaled to a year."),
    (("calls",), "Calls", "count", "Decisions to buy that named an open market, once each; refused ones too."),
    (("calls_without_confidence",), "Without a confidence", "count", "Calls without a probability to score."),
    (("calls_unresolved",), "Unresolved", "count", "Calls whose market had not settled when the run ended."),
    (("mints",), "Mints", "count", "Times contracts were bought."),
    (("redeems",), "Redeems", "count", "Times contracts were sold back before settlement."),
    (("payouts",), "Settled", "count", "Positions that were settled, won or lost."),
    (("wins",), "Wins", "count", "Settled mints whose side won, as if held."),
    (("hit_rate",), "Hit rate", "share", "Wins among the settled mints."),
    (("scores", "all", "brier"), "Brier score", "ratio", "Over all scored calls; a constant 50% has 0.25, lower is better."),
    (("scores", "all", "log_loss"), "Log loss", "ratio", "Over all scored calls; a constant 50% has 0.693, lower is better."),
    (
        ("scores", "all", "calibration_error"),
        "Calibration error",
        "share",
        "Mean distance of forecast probability and observed share.",
    ),
    (("scores", "all", "against", "normalised", "skill"), "Skill, against the price", "signed_share", "1 − Brier / market's Brier."),
    (("scores", "all", "against", "ask", "skill"), "Skill, against the ask", "signed_share", "The ask, spread included."),
    (("scores", "all", "against", "fair", "skill"), "Skill, against the fair price", "signed_share", "The price of the surface, without spread."),
    (("scores", "minted", "against", "normalised", "skill"), "Skill, minted only", "signed_share", "On the calls that were bought."),
    (("edge", "calls", "promised"), "Edge promised, all calls", "signed_share", "Confidence less ask, with equal weight for each call."),
    (("edge", "calls", "realised"), "Edge realised, all calls", "signed_share", "Outcome less ask, bought or not."),
    (("edge", "minted", "promised_usd"), "Edge promised", "usd", "On what was bought, by the model's own probabilities."),
    (("edge", "minted", "realised_usd"), "Edge realised", "usd", "On what was bought, as if held to settlement."),
    (("total_ai_cost_usd",), "Cost of the model", "usd", "Paid for the answers that were used."),
    (("total_ticks",), "Ticks", "count", "Scheduled ticks."),
    (("total_proposed_actions",), "Decisions", "count", "Proposals other than to hold."),
    (("total_accepted_actions",), "Accepted", "count", "Decisions that the engine accepted."),
    (("late_rejections_by_rule",), "Refused late", "table", "Accepted decisions that were refused at execution."),
)  # fmt: skip
INTERVALS = {
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
    """Every figure with its interval and meaning."""
    rows: list[tuple[object, ...]] = []
    for path, name, form, meaning in FIGURES:
        value = nested(report.metrics, *path)
        digits = 4 if path[-1] in ("brier", "log_loss") else None
        reach = pair(nested(report.metrics, *INTERVALS[path])) if path in INTERVALS else None
        interval = figures.NONE if reach is None else " to ".join(format_metric(end, form) for end in reach)
        rows.append(
            (
                name,
                _shown(report, path, form) if digits is None else score(value),
                interval if path in INTERVALS else "",
                meaning,
            )
        )
    columns = (("Figure", LEFT), ("This run", RIGHT), ("95% interval", RIGHT), ("Meaning", WIDE))
    return table("All figures", columns, rows, style="metrics", stacks=True)


def _shown(report: PredictReport, path: tuple[str, ...], form: Form) -> str:
    value = nested(report.metrics, *path)
    return format_named(".".join(path), value, form, figures.has_few_days(report.metrics))
