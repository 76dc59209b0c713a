"""The predict venue's world while a run is live: prices of this moment put into the paper venue, in their order.

Two things are done more exactly than by taking every price as it comes. An order is carried out at the first price that
was published after it was really decided, not after the tick's own instant: a model that thought for twenty seconds gets
no price of twenty seconds ago. And a market in which something is held is settled by the first price published at or after
its expiry, which is asked for by its time, also after the process was away: not by the first that happened to be seen.
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
"""So long a settlement waits for its exact price; then the first price that was seen settles it."""

NO_FEED, STALE = "no_feed", "stale_prices"


class PredictSource:
    """`live.runner.Source` of the paper venue."""

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

    async def bring(self, world: Desk, before: Instant) -> WorldUpdate:
        """Everything published before an instant, put into the world. Asks nobody, so it takes no time."""
        now = self._now()
        waiting = {ticket.id for ticket in world.waiting}
        # An order is first met here right after its tick: that is when it was decided.
        self._decided_at = {ticket: self._decided_at.get(ticket, now) for ticket in waiting}
        receipts: list[Receipt] = []
        used = 0
        for update in self.spot.before(before):
            known = world.world.feeds.get(self.spot.symbol)
            if known is not None and update.at <= known.at:
                used += 1  # seen by the process before this one
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

    def unfit(self, world: Desk, at: Instant) -> str:
        """Whether the prices are too old to decide on."""
        known = world.world.feeds.get(self.spot.symbol)
        if known is None or self.spot.candles_at is None:
            return NO_FEED
        oldest = min(self._caps.max_price_age_ms, world.world.terms.freshness_ms)
        return STALE if at - known.at > oldest or not self.spot.fresh_candles(at) else ""

    def pending(self, world: Desk) -> bool:
        """Whether an order waits for its price."""
        return bool(world.waiting)

    def equity(self, world: Desk, at: Instant, period_ms: int) -> Curve:
        """Cash and every position at its bid."""
        return ((at, period_ms, text(contracts(equity(world.world, at, self._account_id))), 1),)

    def trouble(self) -> str:
        """What is wrong with the prices."""
        return self.spot.trouble()

    def _put(self, desk: Desk, update: Update) -> tuple[Desk, tuple[Receipt, ...]]:
        """One price into the world. Orders that were decided after it wait on."""
        step = feed(desk.world, self.spot.symbol, update.spot, update.at, update.volatility, tiers=self._tiers)
        later = tuple(one for one in desk.waiting if self._decided_at.get(one.id, update.at) > update.at)
        if not later:
            return bring(desk, step, self._caps, update.at, self._account_id)
        kept = {one.id for one in later}
        ready = tuple(one for one in desk.waiting if one.id not in kept)
        after, receipts = bring(replace(desk, waiting=ready), step, self._caps, update.at, self._account_id)
        return replace(after, waiting=(*after.waiting, *later)), receipts

    def _settling(self, desk: Desk, update: Update, now: Instant) -> tuple[Update, ...] | None:
        """The exact prices of expiries that lie between the last price and this one; None while one is asked for."""
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
