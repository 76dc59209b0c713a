"""`## Trade history`: the last closed round trips, newest first, one line each."""

from collections.abc import Sequence

from pitboss.prompt.render import age, percent, price, time
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.sections import Memo, fenced, signed
from pitboss.venues.perp.trade_memory import ClosedTrade

PLACE = 90

HEADING = (
    "symbol side regime-at-entry: closed(UTC) held entry exit result(USD, net) MFE MAE (best and worst % from entry) "
    "ended-by <data>thesis</data>"
)
_ENDS = frozenset({"market", "limit", "stop", "take_profit", "liquidation", "end"})
_THESIS = 60
_FACTS = 150
"""Maximum length of a line before its thesis, whatever the numbers are."""


def render(observation: Observation, memo: Memo) -> str | None:
    """Return the section if memory is enabled and there are closed trades."""
    trades = observation.memory.trades
    if not trades or not memo.memory_enabled or not memo.memory_trades:
        return None
    cached = memo.cache.get("trade_history")
    if cached is not None and cached[0] is trades:
        return cached[1]
    visible = newest(trades)[: memo.memory_trades]
    text = "\n".join([f"## Trade history\nlast {len(visible)}, newest first. {HEADING}", *lines(visible)])
    memo.cache["trade_history"] = trades, text
    return text


def newest(trades: Sequence[ClosedTrade]) -> list[ClosedTrade]:
    """Return the trades sorted by closing time, newest first."""
    return sorted(trades, key=lambda trade: (-trade.closed_at, trade.symbol, trade.opened_at))


def lines(trades: Sequence[ClosedTrade], thesis_chars: int = _THESIS) -> list[str]:
    """Return one line for each trade."""
    return [_line(trade, thesis_chars) for trade in trades]


def _line(trade: ClosedTrade, thesis_chars: int) -> str:
    facts = (
        f"- {trade.symbol} {trade.side} {trade.regime}: {time(trade.closed_at)[5:]} "
        f"{age(trade.closed_at - trade.opened_at).replace(' ', '')} {price(trade.entry_price)} {price(trade.exit_price)} "
        f"{signed(trade.pnl_usd)} {percent(trade.mfe_pct)} {percent(trade.mae_pct)} "
    )[:_FACTS]
    # A broker may give any reason, so an unknown one is fenced as untrusted text.
    ended = trade.reason if trade.reason in _ENDS else fenced(trade.reason, 20)
    return f"{facts}{ended} {fenced(trade.thesis, thesis_chars)}" if trade.thesis else f"{facts}{ended}"
