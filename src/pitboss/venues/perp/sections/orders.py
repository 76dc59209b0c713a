"""`## Open orders`: the working orders, with the ids that `cancel` needs."""

from pitboss.prompt.render import age, size
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.portfolio import OrderView
from pitboss.venues.perp.sections import Memo, price_or

PLACE = 70


def render(observation: Observation, memo: Memo) -> str | None:
    """Return the section if there are working orders."""
    orders = memo.account(observation).orders
    if not orders:
        return None
    return "\n".join(["## Open orders", *(_line(order, observation.at) for order in orders)])


def _line(order: OrderView, at: int) -> str:
    text = f"- {order.id}: {order.kind} {order.side} {size(order.size)} {order.symbol}"
    if order.kind == "limit":
        text += f" at {price_or(order.limit, 'none')}"
    if order.kind in ("limit", "market"):
        text += f", stop {price_or(order.stop, 'none')}, take-profit {price_or(order.take_profit, 'none')}"
    return f"{text}, placed {age(at - order.submitted_at)} ago"
