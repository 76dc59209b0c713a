"""The account of a live deployment as a `WorldSource`: one pass of reconciliation at every update.

It halts the deployment where the reconciler raises an alarm: sizes that no fill explains, an order that contradicts itself, or
an exchange that does not accept this process.
"""

from collections.abc import Callable

from pitboss.core.curve import Curve
from pitboss.core.errors import TransientError
from pitboss.core.instant import Instant
from pitboss.core.money import text
from pitboss.core.receipt import Receipt
from pitboss.live.world_source import WorldUpdate
from pitboss.venues.perp.hyperliquid.account_stream import AccountStream
from pitboss.venues.perp.hyperliquid.broker import HyperliquidBroker
from pitboss.venues.perp.live_market import MarketFeed
from pitboss.venues.perp.state import PerpWorld, ReportedWorld

UNREAD = "account_unread"
NO_DATA = "no_feed"
RECONCILE = "reconcile"


class ReportedSource:
    """Implements `live.world_source.WorldSource` over the reconciler of an account."""

    def __init__(
        self,
        broker: HyperliquidBroker,
        feed: MarketFeed,
        stream: AccountStream | None,
        halt: Callable[[str, str], None],
    ) -> None:
        self._broker = broker
        self._feed = feed
        self._stream = stream
        self._halt = halt

    async def update(self, world: PerpWorld, before: Instant) -> WorldUpdate:
        """Read the account. What happened is returned with it, so a cancelled call is made up for by the next."""
        del before
        reconciled = await self._broker.resolve(world if isinstance(world, ReportedWorld) else None)
        self._check_alarm()
        return WorldUpdate(reconciled.world, reconciled.receipts)

    async def reread(self, world: PerpWorld) -> tuple[PerpWorld, tuple[Receipt, ...]]:
        """Read the account once more, when a decision has been made. If it cannot be read, nothing is opened (`open_problem`)."""
        try:
            update = await self.update(world, 0)
        except TransientError:
            return world, ()
        return update.world, update.receipts

    def _check_alarm(self) -> None:
        alarm = self._broker.alarm()
        if alarm:
            self._halt(RECONCILE, alarm)

    def hold_flag(self, world: PerpWorld, at: Instant) -> str:
        """Return why no decision is made: the account could not be read, or bars are missing."""
        del world
        if self._broker.reconciler.problem:
            return UNREAD
        return "" if self._feed.complete_until() >= at else NO_DATA

    def pending(self, world: PerpWorld) -> bool:
        """Whether an order has no known outcome yet."""
        return bool(world.orders) and any(not order.rested for order in world.orders)

    def equity(self, world: PerpWorld, at: Instant, period_ms: int) -> Curve:
        """Return the account's value as the exchange reported it."""
        return ((at, period_ms, text(world.last_equity), 1),)

    def trouble(self) -> str:
        """Return the current problem of the account, of its streams or of the feed."""
        stream_problem = "" if self._stream is None else self._stream.problem
        problems = (self._broker.reconciler.problem, stream_problem, self._feed.trouble())
        return "; ".join(each for each in problems if each)
