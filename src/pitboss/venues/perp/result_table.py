"""The result table of a perp run for the terminal: the run next to buy and hold."""

from pitboss.report import figures
from pitboss.report.meaning import METRICS as SHARED
from pitboss.report.source import mapping
from pitboss.runs.result_table import Plain, ResultTable, cost_rows, counts, percent, proposals, sharpe, with_interval
from pitboss.store.runs import Run
from pitboss.venues.perp.meaning import CAPPED, METRICS


def result_table(run: Run) -> ResultTable:
    """Return the most important metrics of a run, with those of buy and hold."""
    metrics = mapping(run.metrics)
    holding, capped = (mapping(mapping(run.baselines).get(name)) for name in ("buy_and_hold", CAPPED))
    baselines = [holding, *([capped] if capped else [])]
    few_days = figures.has_few_days(metrics)  # that of the baselines is of the same days
    labels = {**SHARED, **METRICS}
    rows = [
        (
            "Return",
            with_interval(metrics, "total_return_pct", percent),
            *(percent(each.get("total_return_pct")) for each in baselines),
        ),
        ("Sharpe", sharpe(metrics), *(figures.sharpe(each.get("sharpe"), few_days) for each in baselines)),
        *(
            (labels[name].label, format_value(metrics.get(name)), *(format_value(each.get(name)) for each in baselines))
            for name, format_value in (
                ("final_equity_usd", figures.usd),
                ("max_drawdown_pct", figures.percent),
                ("total_fees_usd", figures.usd),
                ("total_funding_usd", figures.usd),
                ("total_slippage_usd", figures.usd),
            )
        ),
        ("Round trips", _trips(metrics), *(figures.count(each.get("total_trades")) for each in baselines)),
        *(
            (label, value, *[""] * len(baselines))
            for label, value in (
                ("Ticks", figures.count(metrics.get("total_ticks"))),
                ("Proposals", proposals(metrics)),
                ("Refused by rule", counts(metrics.get("rejections_by_rule")) or "none"),
                *cost_rows(run),
            )
        ),
    ]
    headings = ("", "this run (95 % interval)", "buy and hold", "same, capped")[: 2 + len(baselines)]
    return ResultTable(headings, rows, right=tuple(range(2, len(headings))), folds=(1,))


def _trips(metrics: Plain) -> str:
    wins = metrics.get("win_rate")
    return figures.count(metrics.get("total_trades")) + (f", {figures.share(wins)} won" if wins is not None else "")
