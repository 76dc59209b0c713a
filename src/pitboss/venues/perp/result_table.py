"""The result table of a perp run for the terminal: the run next to buy and hold."""

from pitboss.report import figures
from pitboss.report.meaning import METRICS as SHARED
from pitboss.report.source import mapping
from pitboss.runs.result_table import Plain, ResultTable, cost_rows, counts, percent, proposals, with_interval
from pitboss.store.runs import Run
from pitboss.venues.perp.meaning import METRICS


def result_table(run: Run) -> ResultTable:
    """Return the most important metrics of a run, with those of buy and hold."""
    metrics = mapping(run.metrics)
    holding = mapping(mapping(run.baselines).get("buy_and_hold"))
    labels = {**SHARED, **METRICS}
    rows = [
        ("Return", with_interval(metrics, "total_return_pct", percent), percent(holding.get("total_return_pct"))),
        ("Sharpe", with_interval(metrics, "sharpe", figures.plain), figures.plain(holding.get("sharpe"))),
        *(
            (labels[name].label, format_value(metrics.get(name)), format_value(holding.get(name)))
            for name, format_value in (
                ("final_equity_usd", figures.usd),
                ("max_drawdown_pct", figures.percent),
                ("total_fees_usd", figures.usd),
                ("total_funding_usd", figures.usd),
                ("total_slippage_usd", figures.usd),
            )
        ),
        ("Round trips", _trips(metrics), figures.count(holding.get("total_trades"))),
        ("Ticks", figures.count(metrics.get("total_ticks")), ""),
        ("Proposals", proposals(metrics), ""),
        ("Refused by rule", counts(metrics.get("rejections_by_rule")) or "none", ""),
        *[(*row, "") for row in cost_rows(run)],
    ]
    return ResultTable(("", "this run (95 % interval)", "buy and hold"), rows, right=(2,), folds=(1,))


def _trips(metrics: Plain) -> str:
    wins = metrics.get("win_rate")
    return figures.count(metrics.get("total_trades")) + (f", {figures.share(wins)} won" if wins is not None else "")
