"""The stored orders of a deployment without a database, for long tests."""

from collections.abc import Sequence
from dataclasses import replace

from pitboss.core.instant import Instant
from pitboss.venues.perp.hyperliquid.order_fence import FencedOrder
from pitboss.venues.perp.hyperliquid.order_store import LATEST_ENTRIES, LiveOrder


class MemoryOrders:
    """`OrderStore` in memory."""

    def __init__(self) -> None:
        self._orders: dict[str, LiveOrder] = {}
        self._open: dict[str, None] = {}
        self._entries: dict[str, list[str]] = {}

    def add(self, orders: Sequence[LiveOrder]) -> bool:
        """Keep new orders, all or none; False if one of them is there already."""
        if any(order.cloid in self._orders for order in orders):
            return False
        for order in orders:
            if order.leg == "entry":
                self._entries.setdefault(order.symbol, []).append(order.cloid)
        self._keep(orders)
        return True

    def change(self, order: LiveOrder, fence: FencedOrder) -> LiveOrder:
        """Keep what has become known of an order."""
        return self.change_all((order,), (fence,))[0]

    def change_all(
        self, orders: Sequence[LiveOrder], fences: Sequence[FencedOrder], nonce: int | None = None
    ) -> tuple[LiveOrder, ...]:
        """Keep what has become known of several orders."""
        after = tuple(
            replace(order, fence=fence, nonce=order.nonce if nonce is None else nonce)
            for order, fence in zip(orders, fences, strict=True)
        )
        self._keep(after)
        return after

    def get(self, cloid: str) -> LiveOrder | None:
        """Return an order."""
        return self._orders.get(cloid)

    def open_orders(self) -> tuple[LiveOrder, ...]:
        """Return the orders that may still fill."""
        return tuple(self._orders[cloid] for cloid in self._open)

    def recent(self, since: Instant) -> tuple[LiveOrder, ...]:
        """Return all orders of ticks at or after an instant."""
        recent: list[LiveOrder] = []
        for order in reversed(self._orders.values()):
            if order.created_at < since:
                break
            recent.append(order)
        return tuple(recent[::-1])

    def entries(self, symbol: str) -> tuple[LiveOrder, ...]:
        """Return the newest entries in a symbol, newest first."""
        newest = self._entries.get(symbol, [])[: -LATEST_ENTRIES - 1 : -1]
        return tuple(self._orders[cloid] for cloid in newest)

    def _keep(self, orders: Sequence[LiveOrder]) -> None:
        for order in orders:
            self._orders[order.cloid] = order
            if order.is_open:
                self._open[order.cloid] = None
            else:
                self._open.pop(order.cloid, None)
