"""`## Your account`: cash, equity, positions at their bid, and orders that wait for a price."""

from pitboss.prompt import render as written
from pitboss.venues.predict import formatting as words
from pitboss.venues.predict.observation import PredictObservation
from pitboss.venues.predict.portfolio import ContractView

PLACE = 40
MOST = 30


def render(observation: PredictObservation) -> str:
    """Return the section; it is always present."""
    account = observation.portfolio()
    lines = ["## Your account", f"cash {written.size(account.cash)} DUSDC, equity {written.size(account.equity)} DUSDC"]
    lines += [position_line(held, observation) for held in account.positions[:MOST]]
    if len(account.positions) > MOST:
        lines.append(f"and {len(account.positions) - MOST} more positions (get_my_positions)")
    if not account.positions:
        lines.append("no positions")
    for ticket in observation.desk.waiting:
        contract = ticket.order.contract
        what = f"{ticket.order.action} {contract.side} {words.strike(contract.strikes[0])}"
        lines.append(f"waits for the next price: {what} in {words.name(contract.market_id)}")
    return "\n".join(lines)


def position_line(held: ContractView, observation: PredictObservation) -> str:
    """Format one position with its cost and current value."""
    strikes = " to ".join(written.size(strike) for strike in held.strikes)
    bid = words.price(held.bid) if held.quoted else f"{words.price(held.bid)} (not quoted now)"
    return (
        f"{held.side} {strikes} in {words.name(held.market_id)}: {written.size(held.quantity)} contracts, "
        f"cost {written.size(held.cost)}, bid {bid}, value {written.size(held.value)}, "
        f"{held.status}, {words.left(held.expiry_at, observation.at)}"
    )
