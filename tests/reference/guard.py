"""The rules of the reference: PERP §4 (what a valid proposal is) and §5 (R1 … R11), one function a rule.

Reads the account, changes nothing. R12 (seen intent keys) and R13 (a broker's refusal) have no meaning here.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from reference.account import (
    HOUR,
    Account,
    decimal,
    direction,
    equity,
    free_margin,
    working_opens,
)
from reference.assets import lot, round_limit, round_size_down, round_toward_mark

INTERVAL_S = {"1m": 60, "5m": 300, "15m": 900, "1h": 3600, "4h": 14_400, "1d": 86_400}
ACTIONS = ("open_long", "open_short", "close", "reduce", "cancel", "no_op")
NUMBERS = ("size_usd", "leverage", "limit_price", "stop_loss", "take_profit", "reduce_pct", "confidence")
TEXTS = ("action", "symbol", "order_type", "order_id", "reason")


@dataclass
class Plan:
    """A valid proposal made exact: what would be submitted if every rule agrees."""

    action: str  # open | close | reduce | cancel
    symbol: str
    side: int = 0
    size: Decimal | None = None
    leverage: Decimal = Decimal(1)
    limit: Decimal | None = None
    stop: Decimal | None = None
    take_profit: Decimal | None = None
    order_id: str | None = None


def is_number(value: Any) -> bool:
    """§4 "numbers are finite JSON numbers (no strings, no booleans)"."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return False
    return decimal(value).is_finite()


def shape_is_valid(proposal: Any) -> bool:
    """§4 "Validated strictly". A key that is present with the value null is present, and null is no number and no text."""
    if not isinstance(proposal, dict):
        return False
    for key, value in proposal.items():
        if key in NUMBERS:
            if not is_number(value):
                return False
        elif key in TEXTS:
            if not isinstance(value, str):
                return False
        else:
            return False  # "unknown keys are an error"
    action = proposal.get("action")
    if action not in ACTIONS:
        return False
    if "reason" not in proposal:
        return False
    # `no_op` may omit `symbol`; every other action needs it
    if action != "no_op" and "symbol" not in proposal:
        return False
    order_type = proposal.get("order_type", "market")
    if order_type not in ("market", "limit"):
        return False
    # "`limit` needs `limit_price` and is for opens only"
    if order_type == "limit" and ("limit_price" not in proposal or action not in ("open_long", "open_short")):
        return False
    # "`open_*` needs `size_usd`"
    if action in ("open_long", "open_short") and "size_usd" not in proposal:
        return False
    # "`reduce` needs exactly one of `size_usd`, `reduce_pct` in (0, 100]"
    if action == "reduce":
        if ("size_usd" in proposal) == ("reduce_pct" in proposal):
            return False
        if "size_usd" in proposal and decimal(proposal["size_usd"]) <= 0:
            return False
        if "reduce_pct" in proposal and not 0 < decimal(proposal["reduce_pct"]) <= 100:
            return False
    # "`cancel` needs `order_id`"
    return not (action == "cancel" and "order_id" not in proposal)


def plan_open(account: Account, proposal: dict[str, Any]) -> Plan:
    """Sizes and prices of an open, rounded; without a mark there is nothing to size by (R10 will refuse)."""
    symbol = proposal["symbol"]
    side = 1 if proposal["action"] == "open_long" else -1
    plan = Plan("open", symbol, side, leverage=decimal(proposal.get("leverage", 1)))
    mark = account.marks.get(symbol)
    asset = account.assets.get(symbol)
    if mark is None or asset is None:
        return plan
    # §6 step 2 "size_usd / mark rounded down to the lot"
    plan.size = round_size_down(asset, decimal(proposal["size_usd"]) / mark)
    # a limit_price beside a market order is without effect
    if proposal.get("order_type", "market") == "limit":
        plan.limit = round_limit(asset, side, decimal(proposal["limit_price"]))
    if "stop_loss" in proposal:
        plan.stop = round_toward_mark(asset, decimal(proposal["stop_loss"]), mark)
    if "take_profit" in proposal:
        plan.take_profit = round_toward_mark(asset, decimal(proposal["take_profit"]), mark)
    return plan


def plan_reduce(account: Account, proposal: dict[str, Any]) -> Plan:
    """§6 step 2 "a reduce takes size_usd / mark or reduce_pct of the position, rounded down to the lot, at least one
    lot, at most the position", fixed when decided.
    """
    symbol = proposal["symbol"]
    position = account.positions[symbol]
    asset = account.assets[symbol]
    if "size_usd" in proposal:
        size = decimal(proposal["size_usd"]) / account.marks[symbol]
    else:
        size = abs(position.size) * decimal(proposal["reduce_pct"]) / 100
    size = round_size_down(asset, size)
    size = max(size, lot(asset))
    size = min(size, abs(position.size))
    return Plan("reduce", symbol, -direction(position.size), size)


def r2_open(skill: dict[str, Any], account: Account, plan: Plan) -> bool:
    if plan.symbol not in skill["context"]["symbols"]:
        return True
    allowed = account.risk["allowed_symbols"]
    if allowed and plan.symbol not in allowed:
        return True
    if plan.symbol not in account.assets:
        return True
    position = account.positions.get(plan.symbol)
    if position is not None and direction(position.size) != plan.side:
        return True
    return any(order.symbol == plan.symbol and order.side != plan.side for order in working_opens(account))


def notionals(account: Account, plan: Plan) -> dict[str, Decimal]:
    """R3 "position at mark + working opens + this, each open at max(mark, limit price)", per symbol."""
    result: dict[str, Decimal] = {}
    for symbol, position in account.positions.items():
        result[symbol] = abs(position.size) * account.marks[symbol]
    opens = [(order.symbol, order.size, order.limit) for order in working_opens(account)]
    opens.append((plan.symbol, plan.size, plan.limit))
    for symbol, size, limit in opens:
        assert size is not None
        mark = account.marks[symbol]
        price = mark if limit is None else max(mark, limit)
        result[symbol] = result.get(symbol, Decimal(0)) + size * price
    return result


def r3_position_cap(account: Account, plan: Plan) -> bool:
    if plan.size is None:
        return False
    cap = equity(account, account.marks) * account.risk["max_position_pct"] / 100
    return notionals(account, plan)[plan.symbol] > cap


def r4_exposure_cap(account: Account, plan: Plan) -> bool:
    if plan.size is None:
        return False
    cap = equity(account, account.marks) * account.risk["max_total_exposure_pct"] / 100
    return sum(notionals(account, plan).values(), Decimal(0)) > cap


def r5_leverage_cap(account: Account, plan: Plan) -> bool:
    asked = plan.leverage
    return (
        asked < 1
        or asked > account.risk["max_leverage"]
        or asked > account.assets[plan.symbol].max_leverage
        or asked != asked.to_integral_value()
    )


def r6_order_size(account: Account, plan: Plan) -> bool:
    if plan.size is None:
        return False
    value = plan.size * account.marks[plan.symbol]
    most = account.risk["max_order_usd"]
    return (
        plan.size <= 0 or value < max(account.risk["min_order_usd"], Decimal(10)) or (most is not None and value > most)
    )


def r7_order_rate(account: Account, now: int) -> bool:
    recent = [at for at in account.opens_accepted_at if at > now - HOUR]
    return len(recent) >= account.risk["max_orders_per_hour"]


def r8_halted(account: Account) -> bool:
    return bool(account.halts_on) or equity(account, account.marks) <= 0


def r9_margin(account: Account, plan: Plan) -> bool:
    if plan.size is None:
        return False
    notional = plan.size * account.marks[plan.symbol]
    needed = notional / plan.leverage + account.taker_rate * notional
    return free_margin(account, account.marks) < needed


def r10_stale_data(skill: dict[str, Any], account: Account, plan: Plan, now: int) -> bool:
    """Age runs from the close of the newest closed base bar. §2 "max_data_age_s: null = 2 × bars_interval"."""
    mark = account.marks.get(plan.symbol)
    if mark is None or not mark.is_finite() or mark <= 0:
        return True
    limit_s = account.risk["max_data_age_s"]
    if limit_s is None:
        limit_s = Decimal(2 * INTERVAL_S[skill["context"]["bars_interval"]])
    return now - account.newest_bar_closed_at[plan.symbol] > limit_s * 1000


def r11_price_band(account: Account, plan: Plan) -> bool:
    mark = account.marks[plan.symbol]
    band = account.risk["price_band_pct"] / 100
    if plan.limit is not None:
        if plan.side > 0 and plan.limit > mark * (1 + band):
            return True
        if plan.side < 0 and plan.limit < mark * (1 - band):
            return True
    # "of mark (limit order: of min(mark, limit) for a long, max for a short)"
    reference = mark
    if plan.limit is not None:
        reference = min(mark, plan.limit) if plan.side > 0 else max(mark, plan.limit)
    if plan.side > 0:
        if plan.stop is not None and not plan.stop < reference:
            return True
        return plan.take_profit is not None and not plan.take_profit > reference
    if plan.stop is not None and not plan.stop > reference:
        return True
    return plan.take_profit is not None and not plan.take_profit < reference


def judge_open(skill: dict[str, Any], account: Account, plan: Plan, now: int) -> str | None:
    """§5 "Rules in this order; the first that refuses names the verdict". Rules that need a mark cannot refuse
    without one; R10 then does.
    """
    if r2_open(skill, account, plan):
        return "R2_SCOPE"
    if r3_position_cap(account, plan):
        return "R3_POSITION_CAP"
    if r4_exposure_cap(account, plan):
        return "R4_EXPOSURE_CAP"
    if r5_leverage_cap(account, plan):
        return "R5_LEVERAGE_CAP"
    if r6_order_size(account, plan):
        return "R6_ORDER_SIZE"
    if r7_order_rate(account, now):
        return "R7_ORDER_RATE"
    if r8_halted(account):
        return "R8_HALTED"
    if r9_margin(account, plan):
        return "R9_MARGIN"
    if r10_stale_data(skill, account, plan, now):
        return "R10_STALE_DATA"
    if r11_price_band(account, plan):
        return "R11_PRICE_BAND"
    return None


def judge_open_unguarded(account: Account, plan: Plan) -> str | None:
    """ "no guard": only what cannot be submitted at all is refused."""
    if plan.symbol not in account.assets:
        return "R2_SCOPE"
    if plan.size is None:
        return "R10_STALE_DATA"
    if plan.size <= 0:
        return "R6_ORDER_SIZE"
    return None


def judge(
    skill: dict[str, Any], account: Account, proposal: Any, now: int, guarded: bool
) -> tuple[str, str | None, Plan | None]:
    """(outcome, code, plan). §5 "`null` or `no_op` → noop"; "`close`, `reduce`, `cancel` are subject to R1, R2, R12,
    R13 only".
    """
    if proposal is None:
        return "noop", None, None
    if not shape_is_valid(proposal):
        return "refused", "R1_SHAPE", None
    action = proposal["action"]
    if action == "no_op":
        return "noop", None, None
    if action == "cancel":
        # the order must exist; its symbol is not compared
        order_id = proposal["order_id"]
        if not any(f"o{order.number}" == order_id for order in account.orders):
            return "refused", "R2_SCOPE", None
        return "allowed", None, Plan("cancel", proposal["symbol"], order_id=order_id)
    if action in ("close", "reduce"):
        symbol = proposal["symbol"]
        if symbol not in account.positions:
            return "refused", "R2_SCOPE", None
        if action == "reduce":
            return "allowed", None, plan_reduce(account, proposal)
        return "allowed", None, Plan("close", symbol, -direction(account.positions[symbol].size))
    plan = plan_open(account, proposal)
    code = judge_open(skill, account, plan, now) if guarded else judge_open_unguarded(account, plan)
    if code is not None:
        return "refused", code, None
    return "allowed", None, plan
