"""What the run shows in plain words, computed from its numbers. No hype: chance, luck and cost are named."""

from pitboss.core.instant import DAY_MS
from pitboss.report import figures
from pitboss.report.equity import halt_name
from pitboss.report.funnel import Funnel
from pitboss.report.meaning import FLAGS
from pitboss.report.source import RunReport, model_cost, number, pair


def paragraphs(report: RunReport, funnel: Funnel) -> list[str]:
    """What came out, then how it came about."""
    if funnel.total_fills:
        first = [_result(report), _chance(report), _against_holding(report), _caveat(report)]
        second = [_risk(report), _trading(report), _refusals(funnel), _halts(report), _costs(report, funnel)]
    else:
        first = [_result(report), _nothing(funnel), _caveat(report)]
        second = [_against_holding(report), _refusals(funnel), _halts(report), _costs(report, funnel)]
    return [" ".join(filter(None, sentences)) for sentences in (first, second) if any(sentences)]


def _result(report: RunReport) -> str:
    start = figures.day(report.from_at)
    last = figures.day(report.equity[-1][0]) if len(report.equity) else start
    change = number(report.metrics.get("total_return_pct"))
    if change is None:
        change = 100.0 * (report.final_usd / report.initial_usd - 1.0) if report.initial_usd else 0.0
    partly = "" if report.finished else "The run did not finish, so this covers only its first part. "
    return (
        f"{partly}From {start} to {last} the account went from {figures.usd(report.initial_usd)} to "
        f"{figures.usd(report.final_usd)}, a return of {figures.percent(change, signed=True)}."
    )


def _nothing(funnel: Funnel) -> str:
    if funnel.proposals == 0:
        flag = next(iter(funnel.flags), "plain")
        why = f" The agent never proposed an order; most often {FLAGS.get(flag, f'the tick was flagged {flag}')}."
    elif funnel.accepted == 0:
        why = " Every proposal was refused; the table of refusals says by which rule and how far it was from the limit."
    else:
        why = " Orders were accepted but none of them filled, so look at their prices and at what the venue answered."
    return f"Nothing was traded. The funnel: {funnel.said()}.{why}"


def _chance(report: RunReport) -> str:
    interval = pair(report.metrics.get("total_return_ci"))
    if interval is None:
        short = len(report.equity) < 2 or report.equity[-1][0] - report.equity[0][0] < 20 * DAY_MS
        why = "The run is too short for an interval (20 days are needed)" if short else "No interval could be computed"
        return f"{why}, so read the return as an anecdote."
    low, high = (figures.percent(value, signed=True) for value in interval)
    said = f"The 95% interval of that return runs from {low} to {high}"
    if interval[0] <= 0 <= interval[1]:
        return f"{said}. It includes zero: this result cannot be told from luck."
    side = "above" if interval[0] > 0 else "below"
    return f"{said}, wholly {side} zero; that speaks for this period only and promises nothing for another."


def _against_holding(report: RunReport) -> str:
    own = number(report.metrics.get("total_return_pct"))
    holding = number(report.baseline("buy_and_hold").get("total_return_pct"))
    if own is None or holding is None:
        return ""
    gap = abs(own - holding)
    said = f"Buying and holding the same symbols would have returned {figures.percent(holding, signed=True)}: "
    if gap < 0.005:
        return said + "the agent did the same."
    return said + f"the agent did {'better' if own > holding else 'worse'} by {figures.plain(gap)} percentage points."


def _risk(report: RunReport) -> str:
    fall = number(report.metrics.get("max_drawdown_pct"))
    if fall is None:
        return ""
    holding = number(report.baseline("buy_and_hold").get("max_drawdown_pct"))
    beside = "" if holding is None else f" (buy and hold: {figures.percent(holding)})"
    said = f"At its worst it stood {figures.percent(fall)} below an earlier peak{beside}."
    liquidations = number(report.metrics.get("liquidations"))
    if liquidations:
        said += f" It was liquidated {'once' if liquidations == 1 else figures.count(liquidations) + ' times'}."
    deficit = number(report.metrics.get("deficit_usd"))
    if deficit:
        said += f" Losses went {figures.usd(deficit)} beyond the account, which a real venue might claim."
    return said


def _trading(report: RunReport) -> str:
    trades = number(report.metrics.get("total_trades"))
    if not trades:
        return "No position was closed again, so there is no finished trade to judge."
    wins = number(report.metrics.get("win_rate"))
    said = f"It finished {figures.plural(trades, 'trade')}"
    if wins is not None:
        said += f", {figures.share(wins, 0)} of them at a profit"
    if trades < 30:
        said += "; so few say little about the next one"
    return said + "."


def _refusals(funnel: Funnel) -> str:
    if not funnel.refused:
        return "The engine refused nothing." if funnel.proposals else ""
    code = next(iter(funnel.refused))
    most = "most often " if len(funnel.refused) > 1 else ""
    return (
        f"The engine refused {figures.count(funnel.total_refused)} of {figures.plural(funnel.proposals, 'proposal')}, "
        f"{most}by {code} ({funnel.rule_names[code].lower()})."
    )


def _halts(report: RunReport) -> str:
    if not report.halts:
        return ""
    kinds = sorted({halt_name(halt) for halt in report.halts})
    times = "once" if len(report.halts) == 1 else f"{len(report.halts)} times"
    return f"Trading was halted {times} ({', '.join(kinds)})."


def _costs(report: RunReport, funnel: Funnel) -> str:
    metrics = report.metrics
    parts = [number(metrics.get(f"total_{name}_usd")) or 0.0 for name in ("fees", "funding", "slippage", "penalties")]
    said: list[str] = []
    if funnel.total_fills and report.initial_usd:
        whole = sum(parts)
        said.append(
            f"Fees, funding, slippage and penalties took {figures.usd(whole)}, "
            f"{figures.percent(100 * whole / report.initial_usd)} of the starting equity."
        )
    spent, wasted = model_cost(report.document)
    if spent:
        vain = f" ({figures.usd(wasted)} of it for questions asked ahead in vain)" if wasted else ""
        left = 100.0 * ((report.final_usd - spent) / report.initial_usd - 1.0) if report.initial_usd else 0.0
        said.append(
            f"The model cost {figures.usd(spent)}{vain}, which the account does not pay; "
            f"with it the return would be {figures.percent(left, signed=True)}."
        )
    return " ".join(said)


def _caveat(report: RunReport) -> str:
    if report.synthetic and report.standin:
        return "The market is generated and the agent is a program, so this shows how pitboss works and nothing about markets or models."
    if report.synthetic:
        return "The market is generated, so this says nothing about a real one."
    if report.standin:
        return "The agent is a program with fixed rules, so this says nothing about what a language model would do."
    return ""
