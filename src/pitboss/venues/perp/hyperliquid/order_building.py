"""Builds the orders of a live account: the legs of a decision, its stops, and exits. Pure; nothing is sent or stored here."""

from collections.abc import Mapping
from decimal import Decimal

from pitboss.core.instant import Instant
from pitboss.core.money import HUNDRED, ZERO, exact
from pitboss.core.noun import noun
from pitboss.signer.hyperliquid.verdict_terms import SignedVerdict, VerdictKind, VerdictTerms
from pitboss.venues.perp.hyperliquid import precision
from pitboss.venues.perp.hyperliquid.order_fence import FencedOrder
from pitboss.venues.perp.hyperliquid.order_store import Leg, LiveOrder, OrderTerms, cloid_of
from pitboss.venues.perp.hyperliquid.universe import ListedAsset
from pitboss.venues.perp.state import PerpWorld, TradingTerms, equity
from pitboss.venues.perp.world import OrderRequest

LEAST_STOP_DISTANCE = Decimal("0.005")
"""A default stop is at least so far from the mark, as a share of it: nearer it would fire at once."""
MOST_STOP_DISTANCE = Decimal("0.9")
LIQUIDATION_SHARE = Decimal("0.8")
"""A default stop is at most so far of the way to liquidation."""
DEFAULT_LOSS_PCT = Decimal(5)
"""The loss that a default stop allows where the skill sets no daily loss cap."""


@noun
class AccountSetup:
    """What identifies a live account: its deployment, the symbols it trades, the listed assets, costs and thresholds."""

    deployment: str
    symbols: tuple[str, ...]
    universe: Mapping[str, ListedAsset]
    terms: TradingTerms

    def order(self, symbol: str, leg: Leg, intent: str, tick_at: Instant, terms: OrderTerms, now: Instant) -> LiveOrder:
        """Return a new order. Its client id follows from the decision and the leg."""
        immediate = terms.tif == "Ioc" and terms.trigger is None
        cloid = cloid_of(self.deployment, tick_at, intent, leg)
        fence = FencedOrder(terms.size, immediate)
        return LiveOrder(cloid, self.deployment, symbol, leg, intent, tick_at, terms, fence, now)

    def verdict(self, kind: VerdictKind, order: LiveOrder) -> SignedVerdict:
        """Return the bounds under which an order may be signed."""
        terms = order.terms
        bounds = VerdictTerms(kind, terms.asset, terms.side > 0, terms.size, terms.price, terms.leverage or 0)
        return SignedVerdict(self.deployment, order.tick_at, f"{order.intent}:{order.leg}", bounds)


def entry_terms(listed: ListedAsset, request: OrderRequest, judged_mark: Decimal) -> OrderTerms:
    """Return the terms of an open: its limit, or for a market order a bound around the mark at which it was judged."""
    asset = listed.asset
    size = precision.order_size(asset, request.size)
    if request.limit is not None:
        price, tif = precision.limit_price(asset, request.side, request.limit), "Gtc"
    else:
        price = precision.market_bound(asset, request.side, judged_mark, precision.OPEN_SLIPPAGE)
        tif = "Ioc"
    return OrderTerms(
        request.kind, listed.index, request.side, size, price, False, tif, None, judged_mark,
        request.leverage, request.stop, request.take_profit, request.thesis,
    )  # fmt: skip


def exit_terms(listed: ListedAsset, kind: str, side: int, size: Decimal, mark: Decimal) -> OrderTerms:
    """Return the terms of a close or reduce: reduce-only, immediate, within a bound around the mark."""
    price = precision.market_bound(listed.asset, side, mark, precision.EXIT_SLIPPAGE)
    exact_size = precision.order_size(listed.asset, size)
    return OrderTerms(
        "reduce" if kind == "reduce" else "close", listed.index, side, exact_size, price, True, "Ioc", None, mark
    )


def trigger_terms(
    listed: ListedAsset, leg: Leg, position_side: int, size: Decimal, trigger: Decimal, mark: Decimal | None
) -> OrderTerms:
    """Return the terms of a stop or take-profit for a position of this side and size."""
    asset = listed.asset
    rounded = precision.stop_trigger if leg == "stop" else precision.take_profit_trigger
    price = rounded(asset, position_side, trigger)
    bound = precision.trigger_bound(asset, position_side, price)
    kind = "stop" if leg == "stop" else "take_profit"
    return OrderTerms(kind, listed.index, -position_side, size, bound, True, "", price, mark)


@exact
def default_stop(
    world: PerpWorld, terms: TradingTerms, side: int, size: Decimal, mark: Decimal, liquidation: Decimal | None
) -> Decimal:
    """Return the stop of a position whose decision named none.

    The price at which its loss from here would use up what is left of the day's loss cap, at most four fifths of the way to
    liquidation, and never so near that it fires at once.
    """
    pct = terms.daily_loss_halt_pct if terms.daily_loss_halt_pct is not None else DEFAULT_LOSS_PCT
    lost = world.day_reference - equity(world)
    left = max(ZERO, pct * world.day_reference / HUNDRED - max(ZERO, lost))
    distance = max(left / size, LEAST_STOP_DISTANCE * mark)
    if liquidation is not None and side * (mark - liquidation) > 0:
        distance = min(distance, abs(mark - liquidation) * LIQUIDATION_SHARE)
    return mark - side * min(distance, MOST_STOP_DISTANCE * mark)
