"""The price is recent and valid.

The newest closed bar of the symbol (live: its mark) may not be older than `max_data_age_s`, and its price must be a
positive finite number. On live data the broker adds, under the same code and whatever the cap is: no open on a mark older than
5 s, on a newest one-minute bar that closed more than 2 minutes ago, on a crossed or empty book, or on implausible prices.
"""

from decimal import Decimal
from functools import lru_cache

from pitboss.core.rule_message import Symbols, rule_message
from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.perp.case import PerpCase, Scope

CODE = "R10_STALE_DATA"
SCOPE: Scope = "opens"


def check(case: PerpCase) -> Finding | Margin:
    """Refuse an open on an old or missing price."""
    if case.proposal is None:
        return PASS
    symbol = case.proposal.symbol
    marked_at = case.world.marked_at.get(symbol)
    if case.mark is None or marked_at is None:
        return Finding(rule_message("no usable price of {symbol} yet", symbol=Symbols((symbol,))))
    age, most = case.now - marked_at, case.caps.max_data_age_ms
    margin = Margin(CODE, _seconds(most), _seconds(age), _seconds(most - age), "s")
    if age > most:
        message = rule_message(
            "the last price of {symbol} is {age_s:g} s old, the cap is {cap_s:g} s",
            symbol=Symbols((symbol,)),
            age_s=age / 1000,
            cap_s=most / 1000,
        )
        return Finding(message, margin)
    return margin


@lru_cache(maxsize=1_024)  # in a backtest the age is the same at almost every tick
def _seconds(ms: int) -> Decimal:
    return Decimal(ms).scaleb(-3)
