"""`FakeAccount`: money, positions, fills and agents of one address, to the micro-dollar.

Identity that tests check: cash + margin of isolated positions = deposits + realised - fees + funding + liquidation transfers, exactly. A position keeps
its entry notional, not an average price, so that nothing is ever rounded twice.
"""

from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from pitboss.core.instant import Instant
from pitboss.core.money import ZERO
from pitboss.core.noun import noun
from pitboss.testing.hyperliquid.orders import PlacedOrder
from pitboss.testing.hyperliquid.universe import MICRO

INITIAL_REQUESTS = 10_000


def micro(amount: Decimal) -> Decimal:
    """An amount to the micro-dollar."""
    return amount.quantize(MICRO, ROUND_HALF_EVEN)


class OpenPosition:
    """What an account has of one coin. `entry_notional` has the sign of `size`."""

    __slots__ = ("entry_notional", "funding_since_change", "funding_since_open", "isolated_margin", "size")

    def __init__(self) -> None:
        self.size = ZERO
        self.entry_notional = ZERO
        self.isolated_margin = ZERO
        self.funding_since_open = ZERO
        self.funding_since_change = ZERO

    @property
    def entry_price(self) -> Decimal:
        """The average price of what is open."""
        return self.entry_notional / self.size if self.size else ZERO

    def unrealised(self, mark: Decimal) -> Decimal:
        """Profit at a mark price."""
        return self.size * mark - self.entry_notional


@noun
class VenueFill:
    """One trade of an account, as `userFills` shows it."""

    coin: str
    price: Decimal
    size: Decimal
    is_buy: bool
    at: Instant
    start_position: Decimal
    direction: str
    closed_pnl: Decimal
    fee: Decimal
    oid: int
    tid: int
    crossed: bool
    cloid: str | None
    liquidation: tuple[str, Decimal, str] | None = None


@noun
class FundingPayment:
    """One hourly payment of one position; `usdc` is negative if it was paid."""

    at: Instant
    coin: str
    usdc: Decimal
    size: Decimal
    rate: Decimal


@noun
class ApprovedAgent:
    """A wallet that may sign for an account."""

    name: str
    address: str
    valid_until: Instant


class FakeAccount:
    """Everything of one address."""

    def __init__(self, address: str, deposit: Decimal) -> None:
        self.address = address.lower()
        self.deposits = deposit
        self.cash = deposit
        self.realised = ZERO
        self.fees = ZERO
        self.funding = ZERO
        self.liquidation_transfers = ZERO
        self.volume = ZERO
        self.volume_by_day: dict[int, Decimal] = {}
        self.requests_used = 0
        self.requests_cap_base = INITIAL_REQUESTS
        self.last_trickle: Instant = 0
        self.positions: dict[str, OpenPosition] = {}
        self.leverage: dict[str, tuple[bool, int]] = {}
        self.funding_all_time: dict[str, Decimal] = {}
        self.open_orders: dict[int, PlacedOrder] = {}
        self.orders: list[PlacedOrder] = []
        self.by_oid: dict[int, PlacedOrder] = {}
        self.by_cloid: dict[str, list[PlacedOrder]] = {}
        self.fills: list[VenueFill] = []
        self.fill_rows: list[dict[str, Any]] = []
        self.fundings: list[FundingPayment] = []
        self.agents: dict[str, ApprovedAgent] = {}
        self.scheduled_cancel: Instant | None = None
        self.schedule_triggers: dict[int, int] = {}
        self.cool_down_until: Instant = 0

    def position(self, coin: str) -> Decimal:
        """The signed size of a coin."""
        position = self.positions.get(coin)
        return position.size if position is not None else ZERO

    def leverage_of(self, coin: str, max_leverage: int, only_isolated: bool) -> tuple[bool, int]:
        """Whether a coin is on cross margin, and its leverage; 20 at most unless it was set."""
        return self.leverage.get(coin) or (not only_isolated, min(20, max_leverage))

    def keep(self, order: PlacedOrder) -> None:
        """Remember an order for ever."""
        self.orders.append(order)
        self.by_oid[order.oid] = order
        if order.cloid:
            self.by_cloid.setdefault(order.cloid, []).append(order)

    def trade(
        self, coin: str, signed: Decimal, price: Decimal, fee: Decimal, leverage: tuple[bool, int], day: int
    ) -> tuple[Decimal, Decimal, str]:
        """Book a trade: the position before it, the profit it closed, and the name of its direction."""
        position = self.positions.get(coin)
        if position is None:
            position = self.positions[coin] = OpenPosition()
        start = position.size
        closing = min(abs(start), abs(signed)) if start * signed < 0 else ZERO
        closed_pnl = ZERO
        if closing:
            closed_pnl = self._close(position, closing, price)
        opening = abs(signed) - closing
        if opening:
            self._open(position, opening if signed > 0 else -opening, price, leverage)
        position.funding_since_change = ZERO
        self.cash -= fee
        self.fees += fee
        notional = abs(signed) * price
        self.volume += notional
        self.volume_by_day[day] = self.volume_by_day.get(day, ZERO) + notional
        if not position.size:
            self.cash += position.isolated_margin
            del self.positions[coin]
        return start, closed_pnl, _direction(start, signed)

    def _close(self, position: OpenPosition, size: Decimal, price: Decimal) -> Decimal:
        share = size / abs(position.size)
        whole = size == abs(position.size)
        removed = position.entry_notional if whole else micro(position.entry_notional * share)
        released = position.isolated_margin if whole else micro(position.isolated_margin * share)
        signed = size if position.size > 0 else -size
        pnl = signed * price - removed
        position.entry_notional -= removed
        position.isolated_margin -= released
        position.size -= signed
        self.cash += released + pnl
        self.realised += pnl
        if whole:
            position.funding_since_open = ZERO
        return pnl

    def _open(self, position: OpenPosition, signed: Decimal, price: Decimal, leverage: tuple[bool, int]) -> None:
        position.size += signed
        position.entry_notional += signed * price
        if not leverage[0]:
            margin = micro(abs(signed) * price / leverage[1])
            position.isolated_margin += margin
            self.cash -= margin

    def pay_funding(self, coin: str, oracle: Decimal, rate: Decimal, at: Instant) -> FundingPayment | None:
        """Book the funding of an hour."""
        position = self.positions.get(coin)
        if position is None:
            return None
        usdc = micro(-position.size * oracle * rate)
        if self.leverage.get(coin, (True, 0))[0] or not position.isolated_margin:
            self.cash += usdc
        else:
            position.isolated_margin += usdc
        self.funding += usdc
        position.funding_since_open += usdc
        position.funding_since_change += usdc
        self.funding_all_time[coin] = self.funding_all_time.get(coin, ZERO) + usdc
        payment = FundingPayment(at, coin, usdc, position.size, rate)
        self.fundings.append(payment)
        return payment

    def identity_gap(self) -> Decimal:
        """Zero while money is conserved."""
        margins = sum((position.isolated_margin for position in self.positions.values()), ZERO)
        parts = self.deposits + self.realised - self.fees + self.funding + self.liquidation_transfers
        return self.cash + margins - parts

    def facts(self) -> dict[str, Any]:
        """The amounts in one dictionary, for tests and the control endpoint."""
        return {
            "cash": self.cash,
            "deposits": self.deposits,
            "realised": self.realised,
            "fees": self.fees,
            "funding": self.funding,
            "liquidation_transfers": self.liquidation_transfers,
            "positions": {coin: position.size for coin, position in sorted(self.positions.items())},
        }


def _direction(start: Decimal, signed: Decimal) -> str:
    end = start + signed
    if start * end < 0:
        return "Long > Short" if start > 0 else "Short > Long"
    if abs(end) > abs(start):
        return "Open Long" if end > 0 else "Open Short"
    return "Close Long" if start > 0 else "Close Short"
