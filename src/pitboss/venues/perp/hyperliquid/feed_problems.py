"""The problems of the feed in words: those that are reported, and those because of which nothing is opened.

The texts stay the same while a problem lasts, because a remark is written for each change.
"""

from collections.abc import Collection

from pitboss.core.instant import MINUTE_MS, SECOND_MS, interval_ms, iso
from pitboss.venues.perp.hyperliquid.feed_state import BASE_INTERVAL, FeedState

CLOCK_PROBLEM = "the machine's clock differs from the exchange's by more than a second"
OVERDUE_MS = 15 * SECOND_MS
"""A bar that is not there so long after its end is a problem worth a remark."""
OLD_MARK_MS = 5 * SECOND_MS
"""No position is opened on a mark that is older."""
OLD_BAR_MS = 2 * interval_ms(BASE_INTERVAL)
"""No position is opened if the newest bar closed longer ago."""
NOTICE_MS = 10 * MINUTE_MS


def feed_problems(
    state: FeedState, stream_problem: str, request_problem: str, symbols: Collection[str] | None
) -> list[str]:
    """Return the problems of the connection, and those of symbols (None for all)."""
    problems: list[str] = []
    if stream_problem:
        problems.append(f"{stream_problem}; prices are requested instead")
    if request_problem:
        problems.append(f"requests fail: {request_problem}")
    if state.clock.is_skewed():
        problems.append(CLOCK_PROBLEM)
    problems += [problem for notice in state.notices if (problem := notice())]
    for symbol in sorted(state.prices):
        if symbols is None or symbol in symbols:
            problems += [f"{symbol}: {problem}" for problem in _symbol_problems(state, symbol)]
    return problems


def opening_problem(state: FeedState, symbol: str) -> str:
    """Return why no position in a symbol may be opened on the data of this moment; empty if one may."""
    if state.clock.is_skewed():
        return CLOCK_PROBLEM
    now, prices, bars = state.clock.now(), state.prices.get(symbol), state.series.get((symbol, BASE_INTERVAL))
    if prices is None or prices.mark is None or bars is None:
        return f"there are no prices of {symbol}"
    if problem := prices.problem(now):
        return f"{symbol}: {problem}"
    if now - prices.mark[1] > OLD_MARK_MS:
        return f"the mark of {symbol} is older than {OLD_MARK_MS // SECOND_MS} s"
    if now - bars.last_bar_at > OLD_BAR_MS:
        return f"the newest bar of {symbol} closed more than {OLD_BAR_MS // SECOND_MS} s ago"
    return ""


def _symbol_problems(state: FeedState, symbol: str) -> list[str]:
    now, prices = state.clock.now(), state.prices[symbol]
    problems: list[str] = []
    if problem := prices.problem(now):
        problems.append(f"{problem}; its mark is not used")
    elif prices.mark is None or now - prices.mark[1] > OLD_MARK_MS:
        problems.append("its mark is old")
    for (name, interval), series in sorted(state.series.items()):
        if name != symbol:
            continue
        if series.hold_reason:
            problems.append(f"{interval} {series.hold_reason}; it is held back")
        elif series.is_lacking:
            problems.append(f"the exchange has no {interval} bars since {iso(series.last_bar_at)}")
        elif now > series.complete_before + OVERDUE_MS:
            problems.append(f"a {interval} bar is overdue")
        if series.contradicted_at is not None and now - series.contradicted_at < NOTICE_MS:
            problems.append(f"the exchange sent different values for a {interval} bar")
    funding = state.funding[symbol]
    if funding.missing is not None:
        problems.append(f"the exchange has no funding rate for {iso(funding.missing)}")
    return problems
