"""`Truth`: what really happened at the exchange, for checks of what a client believes. No fault touches it."""

from decimal import Decimal
from typing import Any

from pitboss.core.noun import noun
from pitboss.testing.hyperliquid.orders import PlacedOrder
from pitboss.testing.hyperliquid.state import ActionReceived, ExchangeState


@noun
class OrderFact:
    """One order that the exchange accepted: it rested, waited or traded."""

    oid: int
    cloid: str | None
    coin: str
    is_buy: bool
    size: Decimal
    filled: Decimal
    status: str
    reduce_only: bool
    is_trigger: bool
    placed_at: int

    @property
    def is_live(self) -> bool:
        """Whether it rests, or has traded."""
        return self.status == "open" or self.filled > 0


@noun
class Truth:
    """The facts of one account."""

    account: str
    orders: tuple[OrderFact, ...]
    positions: dict[str, Decimal]
    fills: int
    actions: tuple[ActionReceived, ...]
    identity_gap: Decimal

    def by_cloid(self) -> dict[str, list[OrderFact]]:
        """Every accepted order by its cloid; more than one under a cloid is a duplicate."""
        grouped: dict[str, list[OrderFact]] = {}
        for order in self.orders:
            if order.cloid:
                grouped.setdefault(order.cloid, []).append(order)
        return grouped

    def live_cloids(self) -> set[str]:
        """The cloids of orders that rest or have traded."""
        return {order.cloid for order in self.orders if order.cloid and order.is_live}

    def duplicates(self) -> dict[str, int]:
        """Cloids under which more than one order was accepted, with their number."""
        return {cloid: len(orders) for cloid, orders in self.by_cloid().items() if len(orders) > 1}

    def ghosts(self, believed_dead: set[str]) -> set[str]:
        """Of the cloids that a client takes for dead, those that live."""
        return believed_dead & self.live_cloids()

    def phantoms(self, believed_live: set[str]) -> set[str]:
        """Of the cloids that a client takes for live, those that the exchange never accepted."""
        return believed_live - set(self.by_cloid())


def _fact(order: PlacedOrder) -> OrderFact:
    request = order.request
    return OrderFact(
        order.oid,
        order.cloid,
        order.coin,
        request.is_buy,
        order.size,
        order.filled,
        order.status,
        request.reduce_only,
        request.trigger_price is not None,
        order.placed_at,
    )


def truth_of(state: ExchangeState, address: str) -> Truth:
    """The facts of an account at this moment."""
    account = state.accounts[address]
    return Truth(
        account.address,
        tuple(_fact(order) for order in account.orders if order.was_accepted),
        {coin: position.size for coin, position in account.positions.items()},
        len(account.fills),
        tuple(state.received),
        account.identity_gap(),
    )


def dump(truth: Truth) -> dict[str, Any]:
    """The facts as JSON, for the control endpoint."""
    return {
        "account": truth.account,
        "positions": {coin: str(size) for coin, size in truth.positions.items()},
        "orders": [
            {
                "oid": order.oid,
                "cloid": order.cloid,
                "coin": order.coin,
                "side": "B" if order.is_buy else "A",
                "size": str(order.size),
                "filled": str(order.filled),
                "status": order.status,
                "reduce_only": order.reduce_only,
                "trigger": order.is_trigger,
                "placed_at": order.placed_at,
            }
            for order in truth.orders
        ],
        "duplicates": truth.duplicates(),
        "fills": truth.fills,
        "actions": len(truth.actions),
        "identity_gap": str(truth.identity_gap),
    }
