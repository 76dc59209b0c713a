"""`AccountReader`: the account as the exchange reports it, read whole or not at all.

A failed or incomplete read raises `TransientError`, so that an absent reply is never taken for an absent position. The parts are
read one after the other, and fills happen between them; `live_world` notices that, because sizes and fills must agree.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from pitboss.core.errors import TransientError
from pitboss.core.instant import HOUR_MS, MINUTE_MS, SECOND_MS, Instant
from pitboss.core.noun import noun
from pitboss.venues.perp.hyperliquid.info_client import TIMEOUT_S, HyperliquidInfo
from pitboss.venues.perp.hyperliquid.rate_budget import RequestClass
from pitboss.venues.perp.hyperliquid.strict_json import (
    UnreadableReply,
    amount_of,
    fields_of,
    flag_of,
    int_of,
    list_of,
    positive_of,
    text_of,
)
from pitboss.venues.perp.hyperliquid.universe import ListedAsset, is_listed_here

MOST_FILLS = 2_000
"""The exchange returns at most as many fills at once; a longer history is read in pages."""
MOST_PAYMENTS = 500
"""The exchange returns at most as many funding payments at once."""
FILL_OVERLAP_MS = MINUTE_MS
"""Fills are read again from so long before the newest one: they are not indexed in their order."""
MOST_PAGES = 10
MOST_EXIT_GAP = Decimal("0.2")
"""Beyond this gap from the oracle price, as a share of it, a mark is not believed; exits are bounded by the oracle then."""
PRICE_DIGITS = Context(prec=10, rounding=ROUND_HALF_EVEN)
"""A price that follows from a reported value is rounded to what prices have at most."""


@noun
class ReportedPosition:
    """One position; `size` is signed."""

    symbol: str
    size: Decimal
    entry: Decimal
    value: Decimal
    margin: Decimal
    liquidation: Decimal | None
    leverage: int
    is_cross: bool


@noun
class ReportedOrder:
    """One order in the book, or waiting for its trigger. `side` is +1 buy, −1 sell."""

    symbol: str
    oid: int
    cloid: str
    side: int
    price: Decimal
    size: Decimal
    reduce_only: bool
    trigger: Decimal | None
    placed_at: Instant


@noun
class ReportedFill:
    """One fill. `position_before` is signed; `is_liquidation` is set if the exchange closed the position."""

    id: int
    symbol: str
    side: int
    size: Decimal
    price: Decimal
    at: Instant
    position_before: Decimal
    fee: Decimal
    is_taker: bool
    oid: int
    cloid: str
    is_liquidation: bool


@noun
class ReportedFunding:
    """One funding payment; `usd` is positive if it was received."""

    symbol: str
    at: Instant
    usd: Decimal
    size: Decimal
    rate: Decimal


@noun
class VenueAccount:
    """The whole account at one time of the exchange. Amounts are read, never computed."""

    at: Instant
    value: Decimal
    margin_used: Decimal
    maintenance: Decimal
    withdrawable: Decimal
    positions: Mapping[str, ReportedPosition]
    orders: tuple[ReportedOrder, ...] = ()
    fills: tuple[ReportedFill, ...] = ()
    """Fills since the requested instant, oldest first."""
    funding: tuple[ReportedFunding, ...] = ()


class VenueClock:
    """The exchange's time, and how far the clock of this machine is from it."""

    def __init__(self, info: HyperliquidInfo, now: Callable[[], Instant]) -> None:
        self._info = info
        self._now = now
        self.newest: Instant = 0
        """The newest time of the exchange that was read."""
        self._ahead_ms = 0
        self._uncertain_ms = 0
        self._measured_at: Instant | None = None

    async def read(self) -> Instant:
        """Read the exchange's time."""
        before = self._now()
        reply = fields_of(await self._info.post({"type": "exchangeStatus"}, "resolve"), "exchangeStatus")
        return self.observe(int_of(reply, "time"), before, self._now())

    def observe(self, venue_at: Instant, asked_at: Instant, answered_at: Instant) -> Instant:
        """Take a time that the exchange told between two readings of the local clock."""
        self.newest = max(self.newest, venue_at)
        self._ahead_ms = venue_at - (asked_at + answered_at) // 2
        self._uncertain_ms = max(0, answered_at - asked_at) // 2
        self._measured_at = answered_at
        return venue_at

    def estimate(self) -> Instant:
        """Return the exchange's present time as far as known."""
        return self._now() + self._ahead_ms

    def problem(self, most_skew_ms: int, most_age_ms: int) -> str:
        """Say why the time cannot be relied on for an open; empty if it can."""
        measured = self._measured_at
        if measured is None or not 0 <= self._now() - measured <= most_age_ms:
            return "the exchange's time was not read lately"
        if abs(self._ahead_ms) - self._uncertain_ms > most_skew_ms:
            return f"the clock is {abs(self._ahead_ms) / SECOND_MS:g} s off the exchange's"
        return "the exchange answers too slowly" if self._uncertain_ms > most_skew_ms else ""


class AccountReader:
    """Reads one account. `user` is the address that owns it, never that of an agent."""

    def __init__(self, info: HyperliquidInfo, user: str, clock: VenueClock, now: Callable[[], Instant]) -> None:
        self._info = info
        self._user = user
        self._clock = clock
        self._now = now

    async def read(self, fills_from: Instant, funding_from: Instant, purpose: RequestClass = "read") -> VenueAccount:
        """Read the whole account with its fills and funding since these instants."""
        account = await self.summary(purpose)  # first, because it is the cheapest: where it fails, the rest is not read
        return await self.with_history(account, fills_from, funding_from, purpose)

    async def with_history(
        self, account: VenueAccount, fills_from: Instant, funding_from: Instant, purpose: RequestClass = "read"
    ) -> VenueAccount:
        """Add open orders, and fills and funding since these instants, to an account of which the summary was read."""
        orders = await self.orders(purpose)
        fills = await self._fills(fills_from, purpose)
        funding: tuple[ReportedFunding, ...] = ()
        if funding_from and account.at // HOUR_MS > funding_from // HOUR_MS:
            with suppress(TransientError):  # it changes no size, and is read again at the next pass
                funding = await self._funding(funding_from)
        return replace(account, orders=orders, fills=fills, funding=funding)

    async def summary(self, purpose: RequestClass = "read", timeout_s: float = TIMEOUT_S) -> VenueAccount:
        """Read value, margin and positions alone, which is a twentieth of the weight of the whole."""
        asked_at, body = self._now(), {"type": "clearinghouseState", "user": self._user}
        state = fields_of(await self._info.post(body, purpose, timeout_s), "clearinghouseState")
        at = int_of(state, "time")
        self._clock.observe(at, asked_at, self._now())
        margin = fields_of(state.get("marginSummary"), "marginSummary")
        return VenueAccount(
            at,
            amount_of(margin, "accountValue"),
            amount_of(margin, "totalMarginUsed"),
            amount_of(state, "crossMaintenanceMarginUsed"),
            amount_of(state, "withdrawable"),
            _positions(state),
        )

    async def orders(self, purpose: RequestClass = "resolve") -> tuple[ReportedOrder, ...]:
        """Read the open orders."""
        rows = list_of(await self._post("frontendOpenOrders", purpose), "orders")
        return tuple(_order(fields_of(row, "an order")) for row in rows)

    async def status(self, cloid: str) -> tuple[str, int | None] | None:
        """Return what the exchange says about one order, with its id; None if it does not know the order."""
        reply = fields_of(await self._post("orderStatus", "resolve", oid=cloid), "orderStatus")
        kind = text_of(reply, "status")
        if kind == "unknownOid":
            return None
        if kind != "order":
            raise UnreadableReply("orderStatus is neither an order nor unknownOid")
        outer = fields_of(reply.get("order"), "order")
        order = fields_of(outer.get("order"), "order")
        if order.get("cloid") != cloid:
            raise UnreadableReply("orderStatus is about another order")
        return text_of(outer, "status"), int_of(order, "oid")

    async def leverage(self, symbol: str) -> tuple[int, bool]:
        """Return the leverage that the account has set for a symbol, and whether it is cross."""
        reply = fields_of(await self._post("activeAssetData", "open", coin=symbol), "activeAssetData")
        return _leverage(reply)

    async def fee_rates(self) -> tuple[Decimal, Decimal]:
        """Return the account's maker and taker rates as fractions."""
        reply = fields_of(await self._post("userFees"), "userFees")
        return amount_of(reply, "userAddRate"), amount_of(reply, "userCrossRate")

    async def actions_left(self) -> int:
        """Return how many more actions the account may send."""
        reply = fields_of(await self._post("userRateLimit"), "userRateLimit")
        return int_of(reply, "nRequestsCap") - int_of(reply, "nRequestsUsed")

    async def agents(self) -> frozenset[str]:
        """Return the addresses of the account's agents, apart from one without a name, which the exchange does not list."""
        rows = list_of(await self._post("extraAgents"), "extraAgents")
        return frozenset(text_of(fields_of(row, "an agent"), "address").lower() for row in rows)

    async def _post(self, kind: str, purpose: RequestClass = "read", **fields: object) -> Any:
        return await self._info.post({"type": kind, "user": self._user, **fields}, purpose)

    async def _fills(self, since: Instant, purpose: RequestClass) -> tuple[ReportedFill, ...]:
        fills: dict[int, ReportedFill] = {}
        start = since
        for _ in range(MOST_PAGES):
            reply = list_of(await self._post("userFillsByTime", purpose, startTime=start), "fills")
            rows = [fields_of(row, "a fill") for row in reply]
            fills |= {fill.id: fill for row in rows if (fill := _fill(row)) is not None}
            if len(rows) < MOST_FILLS:
                return tuple(sorted(fills.values(), key=lambda fill: (fill.at, fill.id)))
            start = max(int_of(row, "time") for row in rows)
        raise TransientError("the account has more fills than can be read at once")

    async def _funding(self, since: Instant) -> tuple[ReportedFunding, ...]:
        reply = list_of(await self._post("userFunding", startTime=since + 1), "funding")
        rows = [fields_of(row, "a payment") for row in reply]
        if (
            len(rows) >= MOST_PAYMENTS
        ):  # the newest instant may be cut off between two symbols: the next page has it whole
            newest = max(int_of(row, "time") for row in rows)
            rows = [row for row in rows if int_of(row, "time") < newest]
        payments = [payment for row in rows if (payment := _payment(row)) is not None]
        return tuple(sorted(payments, key=lambda payment: (payment.at, payment.symbol)))


def _positions(state: Mapping[str, Any]) -> dict[str, ReportedPosition]:
    positions: dict[str, ReportedPosition] = {}
    for row in list_of(state.get("assetPositions"), "assetPositions"):
        fields = fields_of(fields_of(row, "a position").get("position"), "position")
        size = amount_of(fields, "szi")
        if not size:
            continue
        symbol = text_of(fields, "coin")
        if symbol in positions:
            raise UnreadableReply("a position is reported twice")
        leverage, is_cross = _leverage(fields)
        positions[symbol] = ReportedPosition(
            symbol,
            size,
            positive_of(fields, "entryPx"),
            positive_of(fields, "positionValue"),
            amount_of(fields, "marginUsed"),
            None if fields.get("liquidationPx") is None else amount_of(fields, "liquidationPx"),
            leverage,
            is_cross,
        )
    return positions


def _leverage(fields: Mapping[str, Any]) -> tuple[int, bool]:
    leverage = fields_of(fields.get("leverage"), "leverage")
    kind, value = text_of(leverage, "type"), int_of(leverage, "value")
    if kind not in ("cross", "isolated") or value < 1:
        raise UnreadableReply("the leverage cannot be read")
    return value, kind == "cross"


def _side(fields: Mapping[str, Any]) -> int:
    side = text_of(fields, "side")
    if side not in ("A", "B"):
        raise UnreadableReply("the side is neither A nor B")
    return 1 if side == "B" else -1


def _order(fields: Mapping[str, Any]) -> ReportedOrder:
    cloid = fields.get("cloid")
    return ReportedOrder(
        text_of(fields, "coin"),
        int_of(fields, "oid"),
        cloid if isinstance(cloid, str) else "",
        _side(fields),
        amount_of(fields, "limitPx"),
        amount_of(fields, "sz"),
        flag_of(fields, "reduceOnly"),
        positive_of(fields, "triggerPx") if flag_of(fields, "isTrigger") else None,
        int_of(fields, "timestamp"),
    )


def _fill(fields: Mapping[str, Any]) -> ReportedFill | None:
    """Read a fill; None for one of the spot market or of builders' markets, which have accounts of their own."""
    symbol, cloid = text_of(fields, "coin"), fields.get("cloid")
    if not is_listed_here(symbol):
        return None
    if text_of(fields, "feeToken") != "USDC":
        raise UnreadableReply("the fee of a fill is not in USDC")
    return ReportedFill(
        int_of(fields, "tid"),
        symbol,
        _side(fields),
        positive_of(fields, "sz"),
        positive_of(fields, "px"),
        int_of(fields, "time"),
        amount_of(fields, "startPosition"),
        amount_of(fields, "fee"),
        flag_of(fields, "crossed"),
        int_of(fields, "oid"),
        cloid if isinstance(cloid, str) else "",
        fields.get("liquidation") is not None,
    )


def _payment(fields: Mapping[str, Any]) -> ReportedFunding | None:
    delta = fields_of(fields.get("delta"), "delta")
    if text_of(delta, "type") != "funding" or not is_listed_here(text_of(delta, "coin")):
        return None
    return ReportedFunding(
        text_of(delta, "coin"),
        int_of(fields, "time"),
        amount_of(delta, "usdc"),
        amount_of(delta, "szi"),
        amount_of(delta, "fundingRate"),
    )


@noun
class Mark:
    """The mark and oracle price of one symbol, and the local time before they were read."""

    price: Decimal
    oracle: Decimal
    at: Instant


def read_marks(
    reply: Any, universe: Mapping[str, ListedAsset], symbols: Sequence[str], asked_at: Instant
) -> dict[str, Mark]:
    """Read the marks of `metaAndAssetCtxs`. A symbol whose prices are not usable has none."""
    parts = list_of(reply, "metaAndAssetCtxs")
    if len(parts) != 2:
        raise UnreadableReply("metaAndAssetCtxs does not have two parts")
    names = [
        text_of(fields_of(row, "an asset"), "name")
        for row in list_of(fields_of(parts[0], "meta").get("universe"), "universe")
    ]
    contexts = list_of(parts[1], "contexts")
    if len(names) != len(contexts):
        raise UnreadableReply("metaAndAssetCtxs has more assets than contexts")
    marks: dict[str, Mark] = {}
    for symbol in symbols:
        listed = universe.get(symbol)
        if listed is None or listed.index >= len(names) or names[listed.index] != symbol:
            continue
        try:
            fields = fields_of(contexts[listed.index], "a context")
            marks[symbol] = Mark(positive_of(fields, "markPx"), positive_of(fields, "oraclePx"), asked_at)
        except UnreadableReply:
            continue
    return marks


async def agent_problem(info: HyperliquidInfo, agent: str, user: str) -> str:
    """Say why a key must not be used for an account: it is the account's own, or not its agent on this network."""
    if agent.lower() == user.lower():
        return "the key is that of the account itself, and not of an agent"
    reply = fields_of(await info.post({"type": "userRole", "user": agent}), "userRole")
    role = text_of(reply, "role")
    if role != "agent":
        return f"the exchange knows the key's address as {role!r} and not as an agent: it may be of another network"
    owner = text_of(fields_of(reply.get("data"), "data"), "user")
    return "" if owner.lower() == user.lower() else "the key is an agent of another account"
