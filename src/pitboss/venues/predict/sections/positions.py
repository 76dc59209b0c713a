"""`## Your account`: cash, equity, positions at their bid, and orders that wait for a price."""

from pitboss.prompt import render as written
from pitboss.venues.predict import formatting
from pitboss.venues.predict.observation import PredictObservation
from pitboss.venues.predict.portfolio import ContractView

PLACE = 40
MOST = 30


def render(observation: PredictObservation) -> str:
    """Return the section; it is always present."""
    account = observation.portfolio()
    lines = ["## Your account", f"cash {written.size(account.cash)} DUSDC, equity {written.size(account.equity)} DUSDC"]
    lines += [position_line(position, observation) for position in account.positions[:MOST]]
    if len(account.positions) > MOST:
        lines.append(f"and {len(account.positions) - MOST} more positions (get_my_positions)")
    if not account.positions:
        lines.append("no positions")
    for ticket in observation.desk.waiting:
        contract = ticket.order.contract
        text = f"{ticket.order.action} {contract.side} {formatting.strike(contract.strikes[0])}"
        lines.append(f"waits for the next price: {text} in {formatting.name(contract.market_id)}")
    return "\n".join(lines)


def position_line(position: ContractView, observation: PredictObservation) -> str:
    """Format one position with its cost and current value."""
    strikes = " to ".join(written.size(strike) for strike in position.strikes)
    bid = formatting.price(position.bid) if position.quoted else f"{formatting.price(position.bid)} (not quoted now)"
    return (
        f"{position.side} {strikes} in {formatting.name(position.market_id)}: {written.size(position.quantity)} contracts, "
        f"cost {written.size(position.cost)}, bid {bid}, value {written.size(position.value)}, "
        f"{position.status}, {formatting.time_left(position.expiry_at, observation.at)}"
    )
