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
    for held in account.positions:
        lines.append(_line(held, observation.at))
        if held.thesis:
            # A model that may have read hostile text wrote the thesis, so it is fenced as data.
            lines.append(f"  thesis at entry: {fenced(held.thesis)}")
    if not account.positions:
        lines.append("no open positions")
    return "\n".join(lines)


def _line(held: PositionView, at: int) -> str:
    return (
        f"- {held.symbol} {held.side}: size {size(held.size)} ({cents(held.notional_usd)} USD at {held.leverage}x), "
        f"entry {price(held.entry)}, mark {price(held.mark)}, unrealised {signed(held.unrealised_usd)} USD, "
        f"liquidation {price_or(held.liquidation, 'unreachable')}, stop {price_or(held.stop, 'none')}, "
        f"take-profit {price_or(held.take_profit, 'none')}, open for {age(at - held.opened_at)}"
    )
