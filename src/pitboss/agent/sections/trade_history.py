"""`## Trade history`: the last closed round trips, newest first."""

from decimal import Decimal

from pitboss.agent.observation import Observation
from pitboss.agent.sections import Memo, fenced, signed
from pitboss.core.state import ClosedTrade
from pitboss.prompt.render import age, time

PLACE = 90


def render(observation: Observation, memo: Memo) -> str | None:
    """Only with memory, and if there is any."""
    if not memo.memory_enabled or not memo.memory_trades or not observation.memory.trades:
        return None
    newest = sorted(observation.memory.trades, key=lambda trade: (-trade.closed_at, trade.symbol, trade.opened_at))
    shown = newest[: memo.memory_trades]
    return "\n".join([f"## Trade history\nlast {len(shown)}, newest first", *(_line(trade) for trade in shown)])


def _line(trade: ClosedTrade) -> str:
    return (
        f"- {trade.symbol} {trade.side}: closed {time(trade.closed_at)} after {age(trade.closed_at - trade.opened_at)}, "
        f"result {signed(Decimal(trade.pnl_usd))} USD, ended by {fenced(trade.reason, 80)}"
    )
