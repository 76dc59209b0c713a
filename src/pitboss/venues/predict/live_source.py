"""Live price source of the predict venue: applies published prices to the paper world in order.

Two points are more exact than applying every price as it arrives. An order is executed at the first price published
after the decision was actually made, not after the tick's instant: a model that took twenty seconds does not get a
price from twenty seconds ago. A market with an open position is settled by the first price published at or after its
expiry, requested by that time, even if the process was down then; not by the first price that happened to be received.
"""

from collections.abc import Callable
from dataclasses import replace

from pitboss.core.curve import Curve
from pitboss.core.instant import MINUTE_MS, Instant, iso
from pitboss.core.money import text
from pitboss.core.receipt import Receipt
from pitboss.live.runner import WorldUpdate
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.data.spot import Spot, Update
from pitboss.venues.predict.desk import Desk
from pitboss.venues.predict.execution import bring
from pitboss.venues.predict.portfolio import equity
from pitboss.venues.predict.state import ACCOUNT, NO_ACCOUNT, contracts
from pitboss.venues.predict.world import feed

PATIENCE_MS = MINUTE_MS
"""How long a settlement waits for its exact price; after that, the first price received settles it."""

NO_FEED, STALE = "no_feed", "stale_prices"


class PredictSource:
    """Implements `live.runner.WorldSource` for the paper venue."""

    def __init__(
        self,
        spot: Spot,
        caps: PredictCaps,
        tiers: tuple[str, ...],
        now: Callable[[], Instant],
        told: Callable[[str], None] = lambda words: None,
        account_id: str = ACCOUNT,
    ) -> None:
        self.spot = spot
        self._caps = caps
        self._tiers = tiers
        self._now = now
        self._told = told
        self._account_id = account_id
        self._decided_at: dict[str, Instant] = {}
        self._since: dict[Instant, Instant] = {}

    async def update(self, world: Desk, before: Instant) -> WorldUpdate:
        """Apply every price published before an instant to the world. Makes no requests, so it does not block."""
        now = self._now()
        waiting = {ticket.id for ticket in world.waiting}
        # A waiting order first appears here right after its tick, so this is the time of its decision.
        self._decided_at = {ticket: self._decided_at.get(ticket, now) for ticket in waiting}
        receipts: list[Receipt] = []
        used = 0
        for update in self.spot.before(before):
            known = world.world.feeds.get(self.spot.symbol)
            if known is not None and update.at <= known.at:
                used += 1  # already applied by an earlier process
                continue
            settling = self._settling(world, update, now)
            if settling is None:
                break
            for one in (*settling, update):
                world, happened = self._put(world, one)
                receipts += happened
            used += 1
        self.spot.taken(used)
        return WorldUpdate(world, tuple(receipts))

    def hold_flag(self, world: Desk, at: Instant) -> str:
        """Return the flag for missing or stale prices; empty if the prices are fit to decide on."""
        known = world.world.feeds.get(self.spot.symbol)
        if known is None or self.spot.candles_at is None:
            return NO_FEED
        oldest = min(self._caps.max_price_age_ms, world.world.terms.freshness_ms)
        return STALE if at - known.at > oldest or not self.spot.fresh_candles(at) else ""

    def pending(self, world: Desk) -> bool:
        """Whether an order waits for its price."""
        return bool(world.waiting)

    def equity(self, world: Desk, at: Instant, period_ms: int) -> Curve:
        """Return the equity: cash plus every position at its bid."""
        return ((at, period_ms, text(contracts(equity(world.world, at, self._account_id))), 1),)

    def trouble(self) -> str:
        """Describe the current problem with the prices; empty if there is none."""
        return self.spot.trouble()

    def _put(self, desk: Desk, update: Update) -> tuple[Desk, tuple[Receipt, ...]]:
        """Apply one price to the world. Orders decided after it keep waiting."""
        step = feed(desk.world, self.spot.symbol, update.spot, update.at, update.volatility, tiers=self._tiers)
        later = tuple(one for one in desk.waiting if self._decided_at.get(one.id, update.at) > update.at)
        if not later:
            return bring(desk, step, self._caps, update.at, self._account_id)
        kept = {one.id for one in later}
        ready = tuple(one for one in desk.waiting if one.id not in kept)
        after, receipts = bring(replace(desk, waiting=ready), step, self._caps, update.at, self._account_id)
        return replace(after, waiting=(*after.waiting, *later)), receipts

    def _settling(self, desk: Desk, update: Update, now: Instant) -> tuple[Update, ...] | None:
        """Return the exact prices for expiries between the last price and this one; None while a request is pending."""
        known = desk.world.feeds.get(self.spot.symbol)
        since = None if known is None else known.at
        held = desk.world.accounts.get(self._account_id, NO_ACCOUNT).positions.values()
        due = sorted(
            {one.expiry_at for one in held if one.expiry_at < update.at and (since is None or one.expiry_at > since)}
        )
        found: list[Update] = []
        for expiry_at in due:
            exact = self.spot.recalled(expiry_at)
            asking = exact is None and self.spot.recalling(expiry_at)
            if asking and now - self._since.setdefault(expiry_at, now) < PATIENCE_MS:
                return None
            if exact is None or not expiry_at <= exact.at <= update.at:
                self._told(f"the price at {iso(expiry_at)} is not to be had: the next one that was seen settles")
            elif not found or exact.at > found[-1].at:
                found.append(replace(exact, volatility=update.volatility))
        for expiry_at in due:
            self.spot.forget(expiry_at)
            self._since.pop(expiry_at, None)
        return tuple(found)
