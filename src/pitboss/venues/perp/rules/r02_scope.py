"""The proposal concerns a symbol, position or order that the agent may act on.

An open needs a symbol of the skill's `context.symbols` that is on `allowed_symbols` when that list is not empty, is
listed by the venue, and has no opposite position or working open (that must be closed first; an open never reverses a
position). A close or reduce needs a position, a cancel needs a working order.
"""

from pitboss.core.rule_message import Symbols, rule_message
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
            working = ", ".join(order_ids) or "none"
            message = "no working order {order_id!r}; working: {working}"
            return Finding(rule_message(message, order_id=proposal.order_id, working=working))
        return PASS
    position = world.positions.get(symbol)
    if not proposal.opens:
        if position is None:
            return _refuse("no position in {symbol}", symbol)
        return (
            PASS
            if position.size.is_finite()
            else _refuse("the size of the position in {symbol} is not a number", symbol)
        )
    if symbol not in case.caps.symbols:
        message = "{symbol} is not one of this skill's symbols ({symbols})"
        return _refuse(message, symbol, symbols=Symbols(case.caps.symbols))
    if not case.caps.opens_allowed(symbol):
        message = "{symbol} is not on allowed_symbols ({symbols})"
        return _refuse(message, symbol, symbols=Symbols(case.caps.allowed_symbols))
    if symbol not in case.terms.assets:
        return _refuse("the venue does not list {symbol}", symbol)
    if symbol in case.caps.unlisted:
        return _refuse("the venue does not list {symbol} at this time", symbol)
    if position is not None and position.size.is_finite() and position.side != proposal.side:
        return _refuse("{symbol} is held the other way: close first", symbol)
    for order in world.orders:
        if order.opens and order.symbol == symbol and order.side != proposal.side:
            return _refuse(
                "order {order_id} works the other way in {symbol}: cancel it first", symbol, order_id=order.id
            )
    return PASS


def _refuse(template: str, symbol: str, **values: object) -> Finding:
    return Finding(rule_message(template, symbol=Symbols((symbol,)), **values))
