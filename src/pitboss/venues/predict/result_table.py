"""The metrics of a predict run as table rows for a terminal, compared with the market's price and selected heuristics."""

from collections.abc import Mapping
from typing import Any

from pitboss.report import figures
from pitboss.report.source import mapping, pair
from pitboss.runs.result_table import ResultTable, cost_rows, counts, proposals
from pitboss.store.runs import Run
from pitboss.venues.predict.panels.source import PRICE, nested
from pitboss.venues.predict.panels.summary import cents

Plain = Mapping[str, Any]

HEADINGS = ("", "this run (95 % interval)", "market's price", "coin", "always NO")
TRADING_HEADINGS = ("", "return", "result", "mints", "hit rate", "spread cost", "edge a contract")


def result_tables(run: Run) -> list[ResultTable]:
    """Return the tables of forecasts compared with the market's price, and of trading compared with the heuristics."""
    metrics, baselines = mapping(run.metrics), mapping(run.baselines)
    forecasts = [*rows(metrics, baselines), *[(*row, "", "", "") for row in cost_rows(run)]]
    return [
        ResultTable(HEADINGS, forecasts, right=(2, 3, 4), folds=(1,), lead=answer(metrics)),
        ResultTable(TRADING_HEADINGS, trading_rows(metrics, baselines), right=(1, 2, 3, 4, 5, 6), folds=(0,)),
    ]


def answer(metrics: Plain) -> str:
    """State in one line whether the model forecast better than the market's price."""
    beside = mapping(nested(metrics, "scores", "all", "against", PRICE))
    if not beside.get("calls"):
        return "no call with a confidence has settled: there is no comparison with the market's price"
    reach = pair(beside.get("skill_ci"))
    skill = figures.share(beside.get("skill"), signed=True)
    if reach is None:
        return f"too few markets for a comparison with the market's price (skill {skill}, no interval)"
    low, high = (figures.share(value, signed=True) for value in reach)
    comparison = (
        "better than the market's price"
        if reach[0] > 0
        else "worse than the market's price"
        if reach[1] < 0
        else "not significantly different from the market's price"
    )
    return f"the model was {comparison}: skill {skill}, 95 % interval {low} to {high}"


def rows(metrics: Plain, baselines: Plain) -> list[tuple[str, str, str, str, str]]:
    """Return the metrics of the run; a score is followed by those of the other forecasters on the same calls."""
    forecasters = ("market", "coin", "always_no")
    all_calls = mapping(nested(baselines, "forecasts", "all"))
    minted = mapping(nested(baselines, "forecasts", "minted"))

    def scored(name: str, group: Plain, key: str) -> tuple[str, str, str, str, str]:
        market, coin, never = (figures.plain(nested(group, forecaster, key), 4) for forecaster in forecasters)
        return name, figures.plain(nested(group, "model", key), 4), market, coin, never

    def alone(name: str, value: str) -> tuple[str, str, str, str, str]:
        return name, value, "", "", ""

    edge = mapping(nested(metrics, "edge", "minted"))
    spread = mapping(metrics.get("spread_cost"))
    return [
        alone("Return", _around(_percent(metrics.get("total_return_pct")), metrics.get("total_return_ci"), _percent)),
        alone("Final equity", figures.usd(metrics.get("final_equity_usd"))),
        alone("Max drawdown", figures.percent(metrics.get("max_drawdown_pct"))),
        scored("Brier score, all calls", all_calls, "brier"),
        scored("Log loss, all calls", all_calls, "log_loss"),
        scored("Brier score, minted", minted, "brier"),
        scored("Log loss, minted", minted, "log_loss"),
        alone("Skill against the price", _skill(metrics)),
        alone("Hit rate", _around(figures.share(metrics.get("hit_rate")), metrics.get("hit_rate_ci"), figures.share)),
        alone("Edge promised, realised", f"{cents(edge.get('promised_per_contract'))}, {cents(edge.get('realised_per_contract'))}"),
        alone("Mints, redeems, settled", ", ".join(figures.count(metrics.get(name)) for name in ("mints", "redeems", "payouts"))),
        alone("Spent", figures.usd(metrics.get("total_spend_usd"))),
        alone("Cost of the spread", f"{figures.usd(spread.get('total_usd'))}, {figures.share(spread.get('share_of_spend'))} of it"),
        alone("Calls", _calls(metrics)),
        alone("Proposals", proposals(metrics)),
        alone("Refused by rule", counts(metrics.get("rejections_by_rule")) or "none"),
    ]  # fmt: skip


def trading_rows(metrics: Plain, baselines: Plain) -> list[tuple[str, ...]]:
    """Return the trading metrics of the run and of the heuristics over the same prices."""
    traders = {"this run": metrics, **mapping(baselines.get("trading"))}
    return [
        (
            name.replace("_", " "),
            _percent(trader.get("total_return_pct")),
            figures.usd(trader.get("pnl_usd"), signed=True),
            figures.count(trader.get("mints")),
            figures.share(trader.get("hit_rate")),
            figures.usd(nested(trader, "spread_cost", "total_usd")),
            cents(nested(trader, "edge", "minted", "realised_per_contract")),
        )
        for name, trader in ((name, mapping(trader)) for name, trader in traders.items())
    ]


def _percent(value: object) -> str:
    return figures.percent(value, signed=True)


def _around(value: str, reach: object, form: Any) -> str:
    bounds = pair(reach)
    return value if bounds is None else f"{value} ({form(bounds[0])} to {form(bounds[1])})"


def _skill(metrics: Plain) -> str:
    beside = mapping(nested(metrics, "scores", "all", "against", PRICE))
    return _around(
        figures.share(beside.get("skill"), signed=True),
        beside.get("skill_ci"),
        lambda value: figures.share(value, signed=True),
    )


def _calls(metrics: Plain) -> str:
    parts = [figures.count(metrics.get("calls"))]
    for key, label in (("calls_unresolved", "unresolved"), ("calls_without_confidence", "without a confidence")):
        if metrics.get(key):
            parts.append(f"{figures.count(metrics.get(key))} {label}")
    return ", ".join(parts)
