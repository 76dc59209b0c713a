"""The summary of a run in sentences computed from its numbers, including significance and cost."""

from decimal import Decimal

from pitboss.core.instant import DAY_MS
from pitboss.report import figures
from pitboss.report.equity import halt_name
from pitboss.report.funnel import Funnel
from pitboss.report.meaning import FLAGS
from pitboss.report.source import RunReport, model_cost, number, pair
from pitboss.venues.perp.meaning import CAPPED
from pitboss.venues.perp.panels.costs import cents


def paragraphs(report: RunReport, funnel: Funnel) -> list[str]:
    """The result, then how it came about."""
    if funnel.total_fills:
        first = [_result(report), _chance(report), _against_holding(report), _caveat(report)]
        second = [_risk(report), _trading(report), funnel.refusals("proposal"), _halts(report), _costs(report, funnel)]
    else:
        first = [_result(report), _nothing(funnel), _caveat(report)]
        second = [_against_holding(report), funnel.refusals("proposal"), _halts(report), _costs(report, funnel)]
    return [" ".join(filter(None, sentences)) for sentences in (first, second) if any(sentences)]


def _result(report: RunReport) -> str:
    start = figures.day(report.from_at)
    last = figures.day(report.equity[-1][0]) if len(report.equity) else start
    change = number(report.metrics.get("total_return_pct"))
    if change is None:
        change = 100.0 * (report.final_usd / report.initial_usd - 1.0) if report.initial_usd else 0.0
    partial = "" if report.finished else "The run did not finish, so this covers only its first part. "
    return (
        f"{partial}From {start} to {last} the account went from {figures.usd(report.initial_usd)} to "
        f"{figures.usd(report.final_usd)}, a return of {figures.percent(change, signed=True)}."
    )


def _nothing(funnel: Funnel) -> str:
    if funnel.proposals == 0:
        flag = next(iter(funnel.flags), "plain")
        why = f" The agent never proposed an order; most often {FLAGS.get(flag, f'the tick was flagged {flag}')}."
    elif funnel.accepted == 0:
        why = " Every proposal was refused; the table of refusals shows the rule and the distance to its limit."
    else:
        why = " Orders were accepted but none was filled; check their prices and the replies of the venue."
    return f"Nothing was traded. The funnel: {funnel.summary()}.{why}"


def _chance(report: RunReport) -> str:
    interval = pair(report.metrics.get("total_return_ci"))
    if interval is None:
        short = len(report.equity) < 2 or report.equity[-1][0] - report.equity[0][0] < 20 * DAY_MS
        why = "The run is too short for an interval (20 days are needed)" if short else "No interval could be computed"
        return f"{why}, so the return has no statistical significance."
    low, high = (figures.percent(value, signed=True) for value in interval)
    text = f"The 95% interval of that return is {low} to {high}"
    if interval[0] <= 0 <= interval[1]:
        return f"{text}. It includes zero: this result is not distinguishable from chance."
    side = "above" if interval[0] > 0 else "below"
    return f"{text}, entirely {side} zero; this holds for this period only and predicts nothing for another."


def _against_holding(report: RunReport) -> str:
    own = report.metrics.get("total_return_pct")
    holding = report.baseline("buy_and_hold").get("total_return_pct")
    gap = figures.difference(own, holding)
    if gap is None:
        return ""
    text = f"Buying the same symbols with all equity and holding them would have returned {figures.percent(holding, signed=True)}: "
    text += f"the agent {_compared(gap)}."
    capped = report.baseline(CAPPED).get("total_return_pct")
    gap = figures.difference(own, capped)
    if gap is None:
        return text
    return f"{text} Holding no more than the caps of the skill allow would have returned {figures.percent(capped, signed=True)}: it {_compared(gap)}."


def _compared(gap: Decimal) -> str:
    if not gap:
        return "returned the same"
    return f"did {'better' if gap > 0 else 'worse'} by {figures.plain(abs(gap))} percentage points"


def _risk(report: RunReport) -> str:
    fall = number(report.metrics.get("max_drawdown_pct"))
    if fall is None:
        return ""
    holding = number(report.baseline("buy_and_hold").get("max_drawdown_pct"))
    baseline = "" if holding is None else f" (buy and hold with all equity: {figures.percent(holding)})"
    text = f"The largest fall from a peak was {figures.percent(fall)}{baseline}."
    liquidations = number(report.metrics.get("liquidations"))
    if liquidations:
        text += f" It was liquidated {'once' if liquidations == 1 else figures.count(liquidations) + ' times'}."
    deficit = number(report.metrics.get("deficit_usd"))
    if deficit:
        text += f" Losses went {figures.usd(deficit)} beyond the account, which a real venue might claim."
    return text


def _trading(report: RunReport) -> str:
    trades = number(report.metrics.get("total_trades"))
    if not trades:
        return "No position was closed, so there is no completed trade."
    wins = number(report.metrics.get("win_rate"))
    text = f"It completed {figures.plural(trades, 'trade')}"
    if wins is not None:
        text += f", {figures.share(wins, 0)} of them at a profit"
    if trades < 30:
        text += "; too few to generalise"
    return text + "."


def _halts(report: RunReport) -> str:
    if not report.halts:
        return ""
    kinds = sorted({halt_name(halt) for halt in report.halts})
    times = "once" if len(report.halts) == 1 else f"{len(report.halts)} times"
    return f"Trading was halted {times} ({', '.join(kinds)})."


def _costs(report: RunReport, funnel: Funnel) -> str:
    metrics = report.metrics
    parts = [cents(metrics.get(f"total_{name}_usd")) for name in ("fees", "funding", "slippage", "penalties")]
    sentences: list[str] = []
    if funnel.total_fills and report.initial_usd:
        total = sum(parts)
        sentences.append(
            f"Fees, funding, slippage and penalties cost {figures.usd(total)}, "
            f"{figures.percent(100 * total / report.initial_usd)} of the starting equity."
        )
    cost_usd, wasted_usd = model_cost(report.document)
    if cost_usd:
        unused = f" ({figures.usd(wasted_usd)} of it for unused speculative calls)" if wasted_usd else ""
        net_pct = 100.0 * ((report.final_usd - cost_usd) / report.initial_usd - 1.0) if report.initial_usd else 0.0
        sentences.append(
            f"The model cost {figures.usd(cost_usd)}{unused}, which the account does not pay; "
            f"with it the return would be {figures.percent(net_pct, signed=True)}."
        )
    return " ".join(sentences)


def _caveat(report: RunReport) -> str:
    if report.synthetic and report.standin:
        return "The market is generated and the agent is a program, so this shows how pitboss works and allows no conclusion about markets or models."
    if report.synthetic:
        return "The market is generated, so this allows no conclusion about a real one."
    if report.standin:
        return "The agent is a program with fixed rules, so this allows no conclusion about language models."
    return ""
