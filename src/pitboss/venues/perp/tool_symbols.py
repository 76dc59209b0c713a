"""Checks the symbols and bars that a tool reads: the skill's symbols, closed bars only.

A wrong argument gets an error that lists the valid ones. All data comes from the view.
"""

from typing import Any

from pitboss.core.errors import ToolFailed
from pitboss.core.instant import iso
from pitboss.core.market import Bars
from pitboss.core.suggestion import suggestion
from pitboss.venues.perp.observation import Observation

INTERVALS = ("1m", "5m", "15m", "1h", "4h", "1d")

SYMBOL: dict[str, Any] = {
    "type": "string",
    "minLength": 1,
    "maxLength": 64,
    "description": "One of the symbols you trade, such as BTC.",
}
INTERVAL: dict[str, Any] = {"type": "string", "enum": list(INTERVALS), "description": "Length of one bar."}


def one_of_yours(observation: Observation, symbol: str) -> str:
    """Return the symbol if the skill trades it."""
    symbols = observation.skill.context.sorted_symbols
    if symbol not in symbols:
        offer = suggestion(symbol, symbols, "symbols:")
        raise ToolFailed(f"{symbol!r} is not one of your symbols; {offer}")
    return symbol


def listed(observation: Observation, symbol: str) -> str:
    """Return the symbol if the skill trades it and the venue lists it now; an unlisted symbol has no data."""
    if not observation.view.listed(one_of_yours(observation, symbol)):
        raise ToolFailed(f"{symbol} is not listed at this time")
    return symbol


def closed_bars(observation: Observation, symbol: str, interval: str, lookback: int) -> Bars:
    """Return the newest closed bars of one of the skill's symbols, oldest first; possibly none."""
    listed(observation, symbol)
    view = observation.view
    if not view.has_bars(symbol, interval):
        available = [name for name in INTERVALS if view.has_bars(symbol, name)]
        offer = f"available: {', '.join(available)}" if available else "there are none at any interval"
        raise ToolFailed(f"there are no {interval} bars of {symbol}; {offer}")
    return view.bars(symbol, interval, lookback)


def none_closed(observation: Observation, symbol: str, interval: str) -> str:
    """Return the text that is shown instead of an empty table."""
    return f"{symbol} {interval}: no bar has closed by {iso(observation.view.at)}"
