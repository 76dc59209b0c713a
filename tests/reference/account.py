"""The account of the reference: cash, positions, working orders, margin, halts, and what has happened so far.

One mutable object on purpose: the plainest way to say it. It knows no bars; `world` moves it along bars and
`guard` only reads it.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from reference.assets import Asset

Side = list[tuple[Decimal, Decimal]]  # (price, size), the best price first

HOUR = 3_600_000
DAY = 24 * HOUR

# §2 "all optional, these are the defaults"
RISK_DEFAULTS: dict[str, Any] = {
    "max_position_pct": 25,
    "max_total_exposure_pct": 100,
    "max_leverage": 3,
    "min_order_usd": 10,
    "max_order_usd": None,
    "max_orders_per_hour": 12,
    "daily_loss_halt_pct": 5,
    "drawdown_halt_pct": 15,
    "price_band_pct": 5,
    "max_data_age_s": None,
    "allowed_symbols": [],
}


def decimal(value: Any) -> Decimal:
    """§1 "floats from files enter as Decimal(repr(x)), JSON numbers from their text"."""
    if isinstance(value, Decimal):
        return value
    if isinstance(value, float):
        return Decimal(repr(float(value)))
    return Decimal(str(value))


def risk_of(skill: dict[str, Any]) -> dict[str, Any]:
    """The risk block with defaults, numbers as Decimal."""
    merged = {**RISK_DEFAULTS, **skill.get("risk", {})}
    return {
        key: value if value is None or isinstance(value, (list, tuple)) else decimal(value)
        for key, value in merged.items()
    }


@dataclass
class Position:
    """§6 "A position stores size and cost" (both signed: negative for a short)."""

    size: Decimal
    cost: Decimal
    stop: Decimal | None = None
    take_profit: Decimal | None = None
    stopping: bool = False  # a touched stop that the volume of its bar was too small for


@dataclass
class Order:
    """A working order. `size` is None for a close (the whole position, whatever it is then)."""

    number: int
    action: str  # open | close | reduce
    symbol: str
    side: int  # +1 buy, −1 sell
    size: Decimal | None
    limit: Decimal | None  # None = market
    stop: Decimal | None
    take_profit: Decimal | None
    active_at: int  # first base bar opening at or after this instant
    first_bar: bool = True  # its first bar (of its own symbol) has not passed yet


@dataclass
class Account:
    assets: dict[str, Asset]
    risk: dict[str, Any]
    initial_equity: Decimal
    maker_rate: Decimal
    taker_rate: Decimal
    slippage_k: Decimal  # bps per 1 M USD
    penalty_rate: Decimal
    halts_apply: bool
    margin_applies: bool
    # realism, docs/adr/0015-fills.md; None = off
    max_volume_pct: Decimal | None = None
    book_max_age_ms: int | None = None
    books: dict[str, list[tuple[int, Side, Side]]] = field(default_factory=dict)  # (instant, bids, asks), oldest first
    cash: Decimal = Decimal(0)
    positions: dict[str, Position] = field(default_factory=dict)  # no flat entries
    orders: list[Order] = field(default_factory=list)  # working, in submission order
    orders_accepted: int = 0
    opens_accepted_at: list[int] = field(default_factory=list)
    leverage: dict[str, Decimal] = field(default_factory=dict)
    marks: dict[str, Decimal] = field(default_factory=dict)
    newest_bar_closed_at: dict[str, int] = field(default_factory=dict)
    newest_bar_opened_at: dict[str, int] = field(default_factory=dict)
    halts_on: dict[str, int] = field(default_factory=dict)  # kind → since
    # what has happened
    fills: list[dict[str, Any]] = field(default_factory=list)
    cancels: list[tuple[int, int, str]] = field(default_factory=list)
    halts: list[tuple[int, str]] = field(default_factory=list)
    points: list[tuple[int, Decimal]] = field(default_factory=list)
    held: list[bool] = field(default_factory=list)
    funding_rows: list[dict[str, Any]] = field(default_factory=list)
    funding_paid: Decimal = Decimal(0)
    peak: Decimal = Decimal(0)  # of the initial equity and all points so far
    deficit: Decimal = Decimal(0)
    liquidations: int = 0


def direction(size: Decimal) -> int:
    return 1 if size > 0 else -1


def leverage_of(account: Account, symbol: str) -> Decimal:
    """§6 "Leverage is one value per symbol … Default 1"."""
    return account.leverage.get(symbol, Decimal(1))


def working_opens(account: Account) -> list[Order]:
    return [order for order in account.orders if order.action == "open"]


def equity(account: Account, prices: dict[str, Decimal]) -> Decimal:
    """§6 "Equity = cash + Σ (size × mark − cost)"."""
    total = account.cash
    for symbol in sorted(account.positions):
        position = account.positions[symbol]
        total += position.size * prices[symbol] - position.cost
    return total


def margin_used(account: Account, prices: dict[str, Decimal], without: Order | None = None) -> Decimal:
    """§6 "Margin used = Σ |size| × mark / leverage over positions, plus size × mark / leverage for working opens
    (at mark, also for limits)"; `without` is the order whose own reservation is excluded.
    """
    total = Decimal(0)
    for symbol in sorted(account.positions):
        total += abs(account.positions[symbol].size) * prices[symbol] / leverage_of(account, symbol)
    for order in working_opens(account):
        if order is not without:
            assert order.size is not None
            total += order.size * prices[order.symbol] / leverage_of(account, order.symbol)
    return total


def free_margin(account: Account, prices: dict[str, Decimal], without: Order | None = None) -> Decimal:
    """§6 "free margin = equity − margin used"."""
    return equity(account, prices) - margin_used(account, prices, without)


def fill(
    account: Account,
    at: int,
    symbol: str,
    side: int,
    size: Decimal,
    price: Decimal,
    liquidity: str,
    reason: str,
    slippage_usd: Decimal = Decimal(0),
    penalty_usd: Decimal = Decimal(0),
) -> None:
    """One fill: fee, penalty, position, record. §6 "Fee = rate × size × fill price. Penalty is never part of a fee"."""
    rate = account.maker_rate if liquidity == "maker" else account.taker_rate
    fee = rate * size * price
    account.cash -= fee
    account.cash -= penalty_usd
    position = account.positions.get(symbol)
    if position is None:
        account.positions[symbol] = Position(side * size, side * size * price)
    elif direction(position.size) == side:
        # §6 "Opens add to both"
        position.size += side * size
        position.cost += side * size * price
    else:
        # §6 "reductions take cost in proportion and realise the difference into cash"
        assert size <= abs(position.size)
        cost_taken = position.cost if size == abs(position.size) else position.cost * size / abs(position.size)
        account.cash += -side * size * price - cost_taken
        position.size += side * size
        position.cost -= cost_taken
        if position.size == 0:
            del account.positions[symbol]  # stop and take-profit vanish with it
    account.fills.append(
        {
            "at": at,
            "symbol": symbol,
            "side": "buy" if side > 0 else "sell",
            "size": size,
            "price": price,
            "fee_usd": fee,
            "slippage_usd": slippage_usd,
            "penalty_usd": penalty_usd,
            "liquidity": liquidity,
            "reason": reason,
        }
    )


def cancel(account: Account, order: Order, at: int, reason: str) -> None:
    account.orders.remove(order)
    account.cancels.append((at, order.number, reason))


def day_reference(account: Account, midnight: int) -> Decimal:
    """§6 "the day's reference is the last equity point at or before 00:00 UTC (the initial equity on the first day)"."""
    for at, value in reversed(account.points):
        if at <= midnight:
            return value
    return account.initial_equity


def evaluate_halts(account: Account, now: int) -> None:
    """§5 "Halts trigger when the loss is ≥ the threshold, in the same step; the daily-loss halt ends at 00:00 UTC, all
    others only by a person". §6 "evaluated at every equity point and at every verdict".
    The point at exactly 00:00 is the reference of the day that begins: no daily-loss halt at that instant.
    """
    if not account.halts_apply:
        return
    value = equity(account, account.marks)
    midnight = now - now % DAY
    triggered = []
    if account.halts_on.get("daily_loss", now) < midnight:
        del account.halts_on["daily_loss"]
    if "daily_loss" not in account.halts_on and now != midnight:
        reference = day_reference(account, midnight)
        if reference - value >= reference * account.risk["daily_loss_halt_pct"] / 100:
            triggered.append("daily_loss")
    if "drawdown" not in account.halts_on:
        # §2 "from the run's peak equity"
        peak = max(account.peak, value)
        if peak - value >= peak * account.risk["drawdown_halt_pct"] / 100:
            triggered.append("drawdown")
    for kind in triggered:
        account.halts_on[kind] = now
        account.halts.append((now, kind))
    if triggered:
        # §6 "a halt cancels working opens at once and leaves stops and take-profits alone"
        for order in working_opens(account):
            cancel(account, order, now, "halt")
