"""Live source of the protocol's own markets: applies what the indexer reports to the account, in order.

A tick sees only what was read before its slot. An order on paper is executed at the first price of its market that was
pushed after the decision, by the protocol's own pricing; a market settles at the price the protocol settled it at.
"""

from collections.abc import Callable

from pitboss.core.curve import Curve
from pitboss.core.instant import Instant
from pitboss.core.money import text
from pitboss.core.receipt import Receipt
from pitboss.live.world_source import WorldUpdate
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.data.market_watch import MarketSnapshot, MarketWatch
from pitboss.venues.predict.desk import Desk
from pitboss.venues.predict.live_source import NO_FEED, STALE, DecisionTimes, outside_strikes
from pitboss.venues.predict.observed_world import observe_markets
from pitboss.venues.predict.portfolio import equity
from pitboss.venues.predict.state import ACCOUNT, NO_ACCOUNT, contracts, open_markets


def unsettled_markets(desk: Desk, account_id: str = ACCOUNT) -> frozenset[str]:
    """Return the ids of markets whose settlement matters: those seen, and those with an open position."""
    world = desk.world
    positions = world.accounts.get(account_id, NO_ACCOUNT).positions.values()
    unseen = {position.contract.market_id for position in positions} - set(world.oracles)
    return frozenset(unseen | {name for name, oracle in world.oracles.items() if oracle.settlement is None})


class IndexerSource:
    """Implements `live.world_source.WorldSource` for the protocol's markets and a paper account."""

    def __init__(
        self, watch: MarketWatch, caps: PredictCaps, now: Callable[[], Instant], account_id: str = ACCOUNT
    ) -> None:
        self.watch = watch
        self.caps = caps
        self.now = now
        self.account_id = account_id
        self._decisions = DecisionTimes()
        self._outside = ""

    async def update(self, world: Desk, before: Instant) -> WorldUpdate:
        """Apply everything read before an instant. Makes no requests, so it does not block."""
        self._decisions.note(world, self.now())
        receipts: list[Receipt] = []
        snapshots = self.watch.before(before)
        for snapshot in snapshots:
            world, happened = self.apply_snapshot(world, snapshot)
            receipts += happened
        self.watch.remove(len(snapshots))
        self.watch.unsettled = unsettled_markets(world, self.account_id)
        self._outside = outside_strikes(world, self.watch.underlying, self.account_id)
        return WorldUpdate(world, tuple(receipts))

    def apply_snapshot(self, desk: Desk, snapshot: MarketSnapshot) -> tuple[Desk, tuple[Receipt, ...]]:
        """Apply one snapshot to an account on paper."""
        at = snapshot.at
        step = observe_markets(desk.world, snapshot.oracles, snapshot.terms, snapshot.vault, at)
        return self._decisions.apply_update(desk, step, self.caps, at, self.account_id)

    def hold_flag(self, world: Desk, at: Instant) -> str:
        """Return the flag for missing or stale prices; empty if at least one market can be decided on."""
        markets = open_markets(world.world, at, self.watch.underlying)
        oldest = min(self.caps.max_price_age_ms, world.world.terms.freshness_ms)
        ages = [at - market.priced_at for market in markets if market.priced_at is not None]
        if not ages:
            return NO_FEED
        return "" if any(age <= oldest for age in ages) else STALE

    def pending(self, world: Desk) -> bool:
        """Whether an order waits for its price."""
        return bool(world.waiting)

    def equity(self, world: Desk, at: Instant, period_ms: int) -> Curve:
        """Return the equity: cash plus every position at its bid."""
        return ((at, period_ms, text(contracts(equity(world.world, self.account_id))), 1),)

    def trouble(self) -> str:
        """Describe the current problem with the markets; empty if there is none."""
        return self.watch.trouble() or self._outside
