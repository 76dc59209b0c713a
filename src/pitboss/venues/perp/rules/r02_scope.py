"""The proposal concerns a symbol, position or order that the agent may act on.

An open needs a symbol of the skill's `context.symbols` that is on `allowed_symbols` when that list is not empty, is
listed by the venue, and has no opposite position or working open (that must be closed first; an open never reverses a
position). A close or reduce needs a position, a cancel needs a working order.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.perp.case import PerpCase, Scope

CODE = "R2_SCOPE"
SCOPE: Scope = "every"


def check(case: PerpCase) -> Finding:
    """Refuse a proposal that is out of scope."""
    proposal, world = case.proposal, case.world
    if proposal is None:
        return PASS
    symbol = proposal.symbol
    if proposal.action == "cancel":
        order_ids = [order.id for order in world.orders]
        if proposal.order_id not in order_ids:
            return Finding(f"no working order {proposal.order_id!r}; working: {', '.join(order_ids) or 'none'}")
        return PASS
    position = world.positions.get(symbol)
    if not proposal.opens:
        if position is None:
            return Finding(f"no position in {symbol}")
        return PASS if position.size.is_finite() else Finding(f"the size of the position in {symbol} is not a number")
    if symbol not in case.caps.symbols:
        return Finding(f"{symbol} is not one of this skill's symbols ({', '.join(case.caps.symbols)})")
    if not case.caps.opens_allowed(symbol):
        return Finding(f"{symbol} is not on allowed_symbols ({', '.join(case.caps.allowed_symbols)})")
    if symbol not in case.terms.assets:
        return Finding(f"the venue does not list {symbol}")
    if symbol in case.caps.unlisted:
        return Finding(f"the venue does not list {symbol} at this time")
    if position is not None and position.size.is_finite() and position.side != proposal.side:
        return Finding(f"{symbol} is held the other way: close first")
    for order in world.orders:
        if order.opens and order.symbol == symbol and order.side != proposal.side:
            return Finding(f"order {order.id} works the other way in {symbol}: cancel it first")
    return PASS
