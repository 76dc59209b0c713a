"""The headline numbers of a perp run."""

from pitboss.report import figures
from pitboss.report.equity import NAMES
from pitboss.report.funnel import Funnel
from pitboss.report.headline import interval, note, sharpe_flag, tile
from pitboss.report.markup import Html, tag
from pitboss.report.source import Plain, RunReport, model_cost, number
from pitboss.venues.perp.meaning import CAPPED


def tiles(report: RunReport, funnel: Funnel) -> Html:
    """The headline numbers."""
    metrics, holding, capped = report.metrics, report.baseline("buy_and_hold"), report.baseline(CAPPED)
    trades = number(metrics.get("total_trades"))
    cost, wasted = model_cost(report.document)
    unused = f"; {figures.usd(wasted)} of it for unused speculative calls" if wasted else ""
    own = metrics.get("total_return_pct")
    return tag(
        "div",
        tile(
            "Return",
            figures.percent(own, signed=True),
            interval(metrics.get("total_return_ci"), own, percent=True),
            own,
            "lead first" if capped else "lead",
        ),
        _holding("buy_and_hold", own, holding, "lead part" if capped else "lead"),
        *([_holding(CAPPED, own, capped, "lead part")] if capped else []),
        tile("Max drawdown", figures.drawdown(metrics.get("max_drawdown_pct")), note(_deep(metrics, holding))),
        tile("Sharpe", figures.plain(metrics.get("sharpe")), _sharpe_interval(metrics)),
        tile("Round trips", figures.count(trades or 0), note(_wins(metrics.get("win_rate"), trades))),
        tile(
            "Orders refused",
            figures.count(funnel.total_refused),
            note(f"of {figures.plural(funnel.proposals, 'proposal')}"),
        ),
        tile("Cost of the model", figures.usd(cost), note(_each(cost, metrics) + unused)),
        class_="tiles",
    )


def _holding(name: str, own: object, holding: Plain, style: str) -> Html:
    change = holding.get("total_return_pct")
    return tile(NAMES[name], figures.percent(change, signed=True), note(_gap(own, change)), change, style)


def _sharpe_interval(metrics: Plain) -> Html:
    if number(metrics.get("sharpe")) is not None and figures.has_few_days(metrics):
        return sharpe_flag(few_days=True)
    return interval(metrics.get("sharpe_ci"), metrics.get("sharpe"))


def _gap(own: object, holding: object) -> str:
    gap = figures.difference(own, holding)
    if gap is None:
        return "no baseline"
    if not gap:
        return "this run returned the same"
    return f"this run did {'better' if gap > 0 else 'worse'} by {figures.plain(abs(gap))} points"


def _deep(metrics: Plain, holding: Plain) -> str:
    baseline = figures.drawdown(holding.get("max_drawdown_pct"))
    days = number(metrics.get("max_drawdown_duration_days"))
    return f"buy and hold, all equity: {baseline}" + (f"; longest {figures.plain(days, 1)} days" if days else "")


def _wins(rate: object, trades: float | None) -> str:
    return f"{figures.share(rate, 0)} won" if trades and number(rate) is not None else "none finished"


def _each(cost: object, metrics: Plain) -> str:
    if number(cost) is None:
        return "unknown: no price for this model"
    each = number(metrics.get("cost_per_decision_usd"))
    return f"{figures.usd(each)} per decision" if each else "nothing paid"
