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
from pitboss.live.world_source import WorldUpdate
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.data.spot import Spot, Update
from pitboss.venues.predict.desk import Desk, WaitingOrder
from pitboss.venues.predict.execution import apply_update
from pitboss.venues.predict.portfolio import equity
from pitboss.venues.predict.ports import may_trade
from pitboss.venues.predict.state import ACCOUNT, NO_ACCOUNT, contracts, oracle_of
from pitboss.venues.predict.svi import FLOAT
from pitboss.venues.predict.trade import WorldStep
from pitboss.venues.predict.world import feed

PATIENCE_MS = MINUTE_MS
"""How long a settlement waits for its exact price; after that, the first price received settles it."""

NO_FEED, STALE = "no_feed", "stale_prices"


def outside_strikes(desk: Desk, underlying: str, account_id: str = ACCOUNT) -> str:
    """Say that the price lies outside the strikes of every market; empty unless it does."""
    if may_trade(desk, underlying, account_id):
        return ""
    grids = [oracle.grid for oracle in desk.world.oracles.values()]
    low, high = min(grid.min_strike for grid in grids), max(grid.max_strike for grid in grids)
    return (
        f"the price of {underlying} lies outside the strikes {low // FLOAT:,} to {high // FLOAT:,}: nothing is quoted, "
        "and the model is not asked"
    )


class DecisionTimes:
    """When waiting orders were decided. An order is executed at the first price after that, not after its tick."""

    def __init__(self) -> None:
        self._decided_at: dict[str, Instant] = {}

    def note(self, desk: Desk, now: Instant) -> None:
        """Record new waiting orders. One first appears right after its tick, so this is the time of its decision."""
        self._decided_at = {order.id: self._decided_at.get(order.id, now) for order in desk.waiting}

    def apply_update(
        self, desk: Desk, step: WorldStep, caps: PredictCaps, at: Instant, account_id: str
    ) -> tuple[Desk, tuple[Receipt, ...]]:
        """Apply an update of the world to the desk. Orders decided after the price of their market keep waiting."""
        later = {order.id for order in desk.waiting if self._is_early(step, order, at)}
        if not later:
            return apply_update(desk, step, caps, at, account_id)
        ready = tuple(order for order in desk.waiting if order.id not in later)
        kept = tuple(order for order in desk.waiting if order.id in later)
        after, receipts = apply_update(replace(desk, waiting=ready), step, caps, at, account_id)
        return replace(after, waiting=(*after.waiting, *kept)), receipts

    def _is_early(self, step: WorldStep, order: WaitingOrder, at: Instant) -> bool:
        market = oracle_of(step.world, order.order.contract.market_id)
        priced_at = at if market is None or market.settlement is not None else market.priced_at or 0
        return self._decided_at.get(order.id, priced_at) > priced_at


class PredictSource:
    """Implements `live.world_source.WorldSource` for the markets of the schedule on the paper venue."""

    def __init__(
        self,
        spot: Spot,
        caps: PredictCaps,
        tiers: tuple[str, ...],
        now: Callable[[], Instant],
        notify: Callable[[str], None] = lambda message: None,
        account_id: str = ACCOUNT,
    ) -> None:
        self.spot = spot
        self._caps = caps
        self._tiers = tiers
        self._now = now
        self._notify = notify
        self._account_id = account_id
        self._decisions = DecisionTimes()
        self._outside = ""
        self._since: dict[Instant, Instant] = {}

    async def update(self, world: Desk, before: Instant) -> WorldUpdate:
        """Apply every price published before an instant to the world. Makes no requests, so it does not block."""
        now = self._now()
        self._decisions.note(world, now)
        receipts: list[Receipt] = []
        used = 0
        for update in self.spot.before(before):
            last_price = world.world.feeds.get(self.spot.symbol)
            if last_price is not None and update.at <= last_price.at:
                used += 1  # already applied by an earlier process
                continue
            settlement_prices = self._settlement_prices(world, update, now)
            if settlement_prices is None:
                break
            for price in (*settlement_prices, update):
                world, happened = self._apply(world, price)
                receipts += happened
            used += 1
        self.spot.remove(used)
        self._outside = outside_strikes(world, self.spot.symbol, self._account_id)
        return WorldUpdate(world, tuple(receipts))

    def hold_flag(self, world: Desk, at: Instant) -> str:
        """Return the flag for missing or stale prices; empty if the prices are fit to decide on."""
        last_price = world.world.feeds.get(self.spot.symbol)
        if last_price is None or self.spot.candles_at is None:
            return NO_FEED
        oldest = min(self._caps.max_price_age_ms, world.world.terms.freshness_ms)
        return STALE if at - last_price.at > oldest or not self.spot.fresh_candles(at) else ""

    def pending(self, world: Desk) -> bool:
        """Whether an order waits for its price."""
        return bool(world.waiting)

    def equity(self, world: Desk, at: Instant, period_ms: int) -> Curve:
        """Return the equity: cash plus every position at its bid."""
        return ((at, period_ms, text(contracts(equity(world.world, self._account_id))), 1),)

    def trouble(self) -> str:
        """Describe the current problem with the prices; empty if there is none."""
        return self.spot.trouble() or self._outside

    def _apply(self, desk: Desk, update: Update) -> tuple[Desk, tuple[Receipt, ...]]:
        step = feed(desk.world, self.spot.symbol, update.spot, update.at, update.volatility, tiers=self._tiers)
        return self._decisions.apply_update(desk, step, self._caps, update.at, self._account_id)

    def _settlement_prices(self, desk: Desk, update: Update, now: Instant) -> tuple[Update, ...] | None:
        """Return the exact prices for expiries between the last price and this one; None while a request is pending."""
        last_price = desk.world.feeds.get(self.spot.symbol)
        since = None if last_price is None else last_price.at
        positions = desk.world.accounts.get(self._account_id, NO_ACCOUNT).positions.values()
        due = sorted(
            {
                position.expiry_at
                for position in positions
                if position.expiry_at < update.at and (since is None or position.expiry_at > since)
            }
        )
        prices: list[Update] = []
        for expiry_at in due:
            exact = self.spot.past_price(expiry_at)
            is_requesting = exact is None and self.spot.is_requesting(expiry_at)
            if is_requesting and now - self._since.setdefault(expiry_at, now) < PATIENCE_MS:
                return None
            if exact is None or not expiry_at <= exact.at <= update.at:
                self._notify(
                    f"the price at {iso(expiry_at)} is not available: the next price received settles its market"
                )
            elif not prices or exact.at > prices[-1].at:
                prices.append(replace(exact, volatility=update.volatility))
        for expiry_at in due:
            self.spot.forget(expiry_at)
            self._since.pop(expiry_at, None)
        return tuple(prices)
