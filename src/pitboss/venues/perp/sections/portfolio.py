"""`## Portfolio`: equity, margin, and every position with the thesis it was opened on."""

from pitboss.prompt.render import age, cents, price, size
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.portfolio import PositionView
from pitboss.venues.perp.sections import Memo, fenced, price_or, signed

PLACE = 50


def render(observation: Observation, memo: Memo) -> str:
    """Return the section; it is always present."""
    account = memo.account(observation)
    lines = [
        "## Portfolio",
        f"equity {cents(account.equity_usd)} USD, free margin {cents(account.free_margin_usd)} USD",
    ]
    for position in account.positions:
        lines.append(_line(position, observation.at))
        if position.thesis:
            # A model that may have read hostile text wrote the thesis, so it is fenced as data.
            lines.append(f"  thesis at entry: {fenced(position.thesis)}")
    if not account.positions:
        lines.append("no open positions")
    return "\n".join(lines)


def _line(position: PositionView, at: int) -> str:
    return (
        f"- {position.symbol} {position.side}: size {size(position.size)} ({cents(position.notional_usd)} USD at {position.leverage}x), "
        f"entry {price(position.entry)}, mark {price(position.mark)}, unrealised {signed(position.unrealised_usd)} USD, "
        f"liquidation {price_or(position.liquidation, 'unreachable')}, stop {price_or(position.stop, 'none')}, "
        f"take-profit {price_or(position.take_profit, 'none')}, open for {age(at - position.opened_at)}"
    )
