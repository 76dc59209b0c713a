"""The stored orders of one deployment: a row is committed before the bytes of its order leave, and after every change.

A row holds what was ordered (`OrderTerms`) and what is known of it (`FencedOrder`). A restart continues from these rows alone.
`store/outbox.py` is not used: it lets one order of an account be open at a time, and voids what is not sent; here orders rest
for days, and stops and exits must leave while an open is in doubt.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Literal, Protocol

from sqlalchemy.exc import IntegrityError

from pitboss.core import codec
from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.schema import live_orders
from pitboss.venues.perp.hyperliquid.order_fence import FencedOrder, OrderState

LiveOrderKind = Literal["market", "limit", "close", "reduce", "stop", "take_profit"]
Leg = Literal["entry", "exit", "stop", "take_profit"]
TRIGGERS: tuple[Leg, ...] = ("stop", "take_profit")
LATEST_ENTRIES = 20
"""How many entries of a symbol are searched for the one that a position comes from."""
OPEN_STATES: tuple[OrderState, ...] = ("new", "sent", "resting", "unresolved")


def cloid_of(deployment: str, tick_at: Instant, intent: str, leg: str) -> str:
    """Return the client order id of one leg of an intent: 128 bits that follow from the decision alone."""
    parts = "\n".join((deployment, str(tick_at), intent, leg))
    return "0x" + hashlib.sha256(parts.encode()).hexdigest()[:32]


@noun
class OrderTerms:
    """What was ordered. `side` is +1 buy, −1 sell; `price` is the limit or the bound; `trigger` is set for triggers."""

    kind: LiveOrderKind
    asset: int
    side: int
    size: Decimal
    price: Decimal
    reduce_only: bool
    tif: str
    trigger: Decimal | None = None
    reference: Decimal | None = None
    """The mark at which the order was decided; slippage is measured from it."""
    leverage: int | None = None
    stop: Decimal | None = None
    take_profit: Decimal | None = None
    thesis: str = ""


@noun
class LiveOrder:
    """One stored order. `order_id` is the short id that agents and receipts see."""

    cloid: str
    deployment: str
    symbol: str
    leg: Leg
    intent: str
    tick_at: Instant
    terms: OrderTerms
    fence: FencedOrder
    created_at: Instant = 0
    nonce: int | None = None

    @property
    def state(self) -> OrderState:
        """What became of it."""
        return self.fence.state

    @property
    def order_id(self) -> str:
        """The short id of the order."""
        return "o" + self.cloid[2:14]

    @property
    def is_open(self) -> bool:
        """Whether it may still fill."""
        return self.state in OPEN_STATES

    @property
    def opens(self) -> bool:
        """Whether it can add exposure."""
        return not self.terms.reduce_only

    @property
    def is_trigger(self) -> bool:
        """Whether it waits for a trigger price."""
        return self.leg in TRIGGERS


class OrderStore(Protocol):
    """The orders of one deployment. Every method that changes something has committed when it returns."""

    def add(self, orders: Sequence[LiveOrder]) -> bool:
        """Store new orders, all or none; False if one of them is there already."""
        ...

    def change(self, order: LiveOrder, fence: FencedOrder) -> LiveOrder:
        """Store what has become known of an order."""
        ...

    def change_all(
        self, orders: Sequence[LiveOrder], fences: Sequence[FencedOrder], nonce: int | None = None
    ) -> tuple[LiveOrder, ...]:
        """Store what has become known of several orders, all or none."""
        ...

    def get(self, cloid: str) -> LiveOrder | None:
        """Return an order."""
        ...

    def open_orders(self) -> tuple[LiveOrder, ...]:
        """Return the orders that may still fill, oldest first."""
        ...

    def recent(self, since: Instant) -> tuple[LiveOrder, ...]:
        """Return all orders of ticks at or after an instant, oldest first."""
        ...

    def entries(self, symbol: str) -> tuple[LiveOrder, ...]:
        """Return the newest entries in a symbol, newest first."""
        ...


class StoredOrders:
    """`OrderStore` in a database. `now` is the clock for its timestamps."""

    def __init__(self, database: Database, deployment: str, now: Callable[[], Instant]) -> None:
        self._database = database
        self._deployment = deployment
        self._now = now

    def add(self, orders: Sequence[LiveOrder]) -> bool:
        """Store new orders, all or none; False if one of them is there already."""
        now = self._now()
        try:
            with self._database.write() as connection:
                if any(rows.fetch(connection, live_orders, {"cloid": order.cloid}) for order in orders):
                    return False
                for order in orders:
                    rows.add(connection, live_orders, _row(order, now))
        except IntegrityError:  # another process was faster, on a database with concurrent transactions
            return False
        return True

    def change(self, order: LiveOrder, fence: FencedOrder) -> LiveOrder:
        """Store what has become known of an order."""
        return self.change_all((order,), (fence,))[0]

    def change_all(
        self, orders: Sequence[LiveOrder], fences: Sequence[FencedOrder], nonce: int | None = None
    ) -> tuple[LiveOrder, ...]:
        """Store what has become known of several orders, all or none. Nothing is written if nothing has changed."""
        after = tuple(_changed(order, fence, nonce) for order, fence in zip(orders, fences, strict=True))
        if after == tuple(orders):
            return after
        with self._database.write() as connection:
            for order in after:
                row = rows.fetch(connection, live_orders, {"cloid": order.cloid}, lock=True)
                assert row is not None, "an order is stored before it changes"
                changes = {"state": order.state, "outcome": codec.dumps(order.fence), "nonce": order.nonce}
                rows.change(connection, live_orders, row, {**changes, "changed_at": self._now()})
        return after

    def get(self, cloid: str) -> LiveOrder | None:
        """Return an order of this deployment."""
        with self._database.read() as connection:
            row = rows.fetch(connection, live_orders, {"cloid": cloid})
        return None if row is None or row["deployment"] != self._deployment else _order(row)

    def open_orders(self) -> tuple[LiveOrder, ...]:
        """Return the orders that may still fill, oldest first."""
        return self._fetch(live_orders.c.state.in_(OPEN_STATES))

    def recent(self, since: Instant) -> tuple[LiveOrder, ...]:
        """Return all orders of ticks at or after an instant, oldest first."""
        return self._fetch(live_orders.c.tick_at >= since)

    def entries(self, symbol: str) -> tuple[LiveOrder, ...]:
        """Return the newest entries in a symbol, newest first."""
        return self._fetch(live_orders.c.leg == "entry", live_orders.c.symbol == symbol, newest=LATEST_ENTRIES)

    def _fetch(self, *conditions: Any, newest: int | None = None) -> tuple[LiveOrder, ...]:
        query = rows.raw(live_orders).where(live_orders.c.deployment == self._deployment, *conditions)
        if newest is None:
            query = query.order_by(live_orders.c.created_at, live_orders.c.cloid)
        else:
            query = query.order_by(live_orders.c.created_at.desc(), live_orders.c.cloid).limit(newest)
        with self._database.read() as connection:
            return tuple(_order(row) for row in rows.fetch_all(connection, query))


def _changed(order: LiveOrder, fence: FencedOrder, nonce: int | None) -> LiveOrder:
    return replace(order, fence=fence, nonce=order.nonce if nonce is None else nonce)


def _row(order: LiveOrder, now: Instant) -> dict[str, Any]:
    return {
        "cloid": order.cloid,
        "deployment": order.deployment,
        "symbol": order.symbol,
        "leg": order.leg,
        "state": order.state,
        "order_id": order.order_id,
        "intent": order.intent,
        "tick_at": order.tick_at,
        "created_at": order.created_at or now,
        "changed_at": now,
        "nonce": order.nonce,
        "terms": codec.dumps(order.terms),
        "outcome": codec.dumps(order.fence),
    }


def _order(row: dict[str, Any]) -> LiveOrder:
    rows.require_intact(live_orders, row)
    return LiveOrder(
        cloid=row["cloid"],
        deployment=row["deployment"],
        symbol=row["symbol"],
        leg=row["leg"],
        intent=row["intent"],
        tick_at=row["tick_at"],
        terms=codec.parse(OrderTerms, codec.loads(row["terms"])),
        fence=codec.parse(FencedOrder, codec.loads(row["outcome"])),
        created_at=row["created_at"],
        nonce=row["nonce"],
    )
