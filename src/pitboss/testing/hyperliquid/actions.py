"""Signed actions: `carry_out` turns one action of one account into changes and the reply of `/exchange`."""

from decimal import Decimal
from typing import Any

from pitboss.core.instant import DAY_MS, SECOND_MS
from pitboss.core.money import ZERO
from pitboss.testing.hyperliquid import refusals
from pitboss.testing.hyperliquid.account import FakeAccount
from pitboss.testing.hyperliquid.agenda import MOST_SCHEDULE_TRIGGERS
from pitboss.testing.hyperliquid.margin import leverage_of, reserved, summary
from pitboss.testing.hyperliquid.matching import cancel, place
from pitboss.testing.hyperliquid.orders import CLOID, MalformedRequest, PlacedOrder, WireOrder, read_order
from pitboss.testing.hyperliquid.replies import err, ok, venue_text
from pitboss.testing.hyperliquid.signatures import KEYS
from pitboss.testing.hyperliquid.state import ExchangeState

LEAST_AHEAD_MS = 5 * SECOND_MS
OPTIONAL = {"builder", "time"}
GROUPINGS = ("na", "normalTpsl", "positionTpsl")


def check_shape(action: dict[str, Any]) -> None:
    """Refuse an action of an unknown type, or with other keys than its type has."""
    keys = KEYS.get(action["type"])
    if keys is None or not set(keys) - OPTIONAL <= set(action) <= set(keys):
        raise MalformedRequest(f"unknown action {action['type']!r}, or other keys than it has")


def carry_out(state: ExchangeState, account: FakeAccount, action: dict[str, Any]) -> dict[str, Any]:
    """Carry out an action that was signed by an address that may; MalformedRequest where it cannot be read."""
    kind = action.get("type")
    if kind == "order":
        return _orders(state, account, action)
    if kind == "cancel":
        return ok("cancel", [cancel(state, _by_oid(account, one)) for one in _batch(action, "cancels", {"a", "o"})])
    if kind == "cancelByCloid":
        wanted = _batch(action, "cancels", {"asset", "cloid"})
        return ok("cancel", [cancel(state, _newest_open(account, _cloid(one["cloid"]))) for one in wanted])
    if kind == "batchModify":
        wanted = _batch(action, "modifies", {"oid", "order"})
        return ok("order", [_modify(state, account, one) for one in wanted])
    if kind == "modify":
        status = _modify(state, account, action)
        return err(status["error"]) if "error" in status else ok("default")
    if kind == "updateLeverage":
        return _update_leverage(state, account, action)
    if kind == "updateIsolatedMargin":
        return _update_isolated_margin(state, account, action)
    if kind == "scheduleCancel":
        return _schedule_cancel(state, account, action)
    if kind == "noop":
        return ok("default")
    raise MalformedRequest(f"unknown action {kind!r}")


def _batch(action: dict[str, Any], name: str, keys: set[str]) -> list[dict[str, Any]]:
    batch = action.get(name)
    if not isinstance(batch, list) or not all(isinstance(one, dict) and set(one) == keys for one in batch):
        raise MalformedRequest(f"{name} is a list of {sorted(keys)}")
    return batch


def _orders(state: ExchangeState, account: FakeAccount, action: dict[str, Any]) -> dict[str, Any]:
    grouping, batch = action.get("grouping"), action.get("orders")
    if grouping not in GROUPINGS or not isinstance(batch, list):
        raise MalformedRequest("an order action has orders and grouping")
    if not batch:
        return err("Empty batch of orders.")
    requests = [read_order(one) for one in batch]
    if grouping == "normalTpsl":
        return ok("order", _with_children(state, account, requests))
    if grouping == "positionTpsl" and not all(one.reduce_only and one.tpsl for one in requests):
        return err("TP/SL orders must be reduce-only.")
    return ok("order", [place(state, account, one, grouping) for one in requests])


def _with_children(state: ExchangeState, account: FakeAccount, requests: list[WireOrder]) -> list[Any]:
    """A parent, and stops and take-profits that begin to wait for their trigger when it is filled."""
    statuses = [place(state, account, requests[0])]
    parent = account.orders[-1]
    for request in requests[1:]:
        if "error" in statuses[0]:
            statuses.append({"error": statuses[0]["error"]})
        elif not parent.is_open:
            statuses.append(place(state, account, request))
        else:
            child = PlacedOrder(state.new_oid(), account.address, parent.coin, request, state.now)
            child.parent = parent
            child.was_accepted = True
            parent.children.append(child)
            account.keep(child)
            account.open_orders[child.oid] = child
            statuses.append("waitingForFill")
    return statuses


def _by_oid(account: FakeAccount, fields: dict[str, Any]) -> PlacedOrder | None:
    if not isinstance(fields["o"], int):
        raise MalformedRequest("o is an order id")
    return account.by_oid.get(fields["o"])


def _cloid(value: Any) -> str:
    if not (isinstance(value, str) and CLOID.fullmatch(value)):
        raise MalformedRequest("a cloid is 0x and 32 hex digits")
    return value.lower()


def _newest_open(account: FakeAccount, cloid: str) -> PlacedOrder | None:
    orders = account.by_cloid.get(cloid, [])
    return next((order for order in reversed(orders) if order.is_open), orders[-1] if orders else None)


def _modify(state: ExchangeState, account: FakeAccount, fields: dict[str, Any]) -> Any:
    """Replace an order: cancel it and place the other one. Both have the same cloid if the request says so."""
    request = read_order(fields["order"])
    name = fields["oid"]
    old = account.by_oid.get(name) if isinstance(name, int) else _newest_open(account, _cloid(name))
    if old is None or not old.is_open:
        return {"error": refusals.MODIFY_MISSING}
    cancel(state, old)
    return place(state, account, request)


def _asset(state: ExchangeState, action: dict[str, Any]) -> str:
    asset = action.get("asset")
    if not isinstance(asset, int) or isinstance(asset, bool) or not 0 <= asset < len(state.coins):
        raise MalformedRequest("asset is the number of a coin")
    return state.coins[asset]


def _update_leverage(state: ExchangeState, account: FakeAccount, action: dict[str, Any]) -> dict[str, Any]:
    coin, cross, leverage = _asset(state, action), action.get("isCross"), action.get("leverage")
    if not isinstance(cross, bool) or not isinstance(leverage, int) or isinstance(leverage, bool):
        raise MalformedRequest("updateLeverage has asset, isCross, leverage")
    market = state.markets[coin]
    if cross and market.perp.only_isolated:
        return err(refusals.CROSS_NOT_ALLOWED)
    position = account.positions.get(coin)
    notional = abs(position.size) * market.mark if position else ZERO
    if not 1 <= leverage <= market.perp.tier(notional).max_leverage:
        return err(refusals.LEVERAGE)
    before = leverage_of(account, market)
    if position and before[0] != cross:
        return err(refusals.SWITCH_MARGIN_MODE)
    account.leverage[coin] = (cross, leverage)
    value = summary(account, state.markets, cross_only=True).account_value
    too_little = cross and leverage < before[1] and reserved(account, state.markets) > value
    if position and not cross:
        missing = notional / leverage - (position.isolated_margin + position.unrealised(market.mark))
        too_little = leverage < before[1] and missing > 0
    if too_little:
        account.leverage[coin] = before
        return err(refusals.LEVERAGE_CROSS if cross else refusals.LEVERAGE_ISOLATED)
    return ok("default")


def _update_isolated_margin(state: ExchangeState, account: FakeAccount, action: dict[str, Any]) -> dict[str, Any]:
    coin, ntli = _asset(state, action), action.get("ntli")
    if not isinstance(ntli, int) or isinstance(ntli, bool) or not isinstance(action.get("isBuy"), bool):
        raise MalformedRequest("updateIsolatedMargin has asset, isBuy, ntli")
    position, market = account.positions.get(coin), state.markets[coin]
    amount = Decimal(ntli) / 1_000_000
    cross, leverage = leverage_of(account, market)
    if position is None or cross:
        return err(refusals.ISOLATED_MARGIN)
    after = position.isolated_margin + amount + position.unrealised(market.mark)
    free = summary(account, state.markets, cross_only=True).account_value - reserved(account, state.markets)
    if amount > free or (amount < 0 and after < abs(position.size) * market.mark / leverage):
        return err(refusals.ISOLATED_MARGIN)
    position.isolated_margin += amount
    account.cash -= amount
    return ok("default")


def _schedule_cancel(state: ExchangeState, account: FakeAccount, action: dict[str, Any]) -> dict[str, Any]:
    time = action.get("time")
    if account.volume < state.rules.schedule_cancel_volume:
        return err(refusals.SCHEDULE_VOLUME.format(volume=_dollars(account.volume)))
    if time is None:
        account.scheduled_cancel = None
        return ok("default")
    if not isinstance(time, int) or isinstance(time, bool):
        raise MalformedRequest("time is milliseconds")
    if time < state.now + LEAST_AHEAD_MS:
        return err(refusals.SCHEDULE_TOO_SOON)
    if account.schedule_triggers.get(state.now // DAY_MS, 0) >= MOST_SCHEDULE_TRIGGERS:
        return err(refusals.SCHEDULE_TOO_MANY)
    account.scheduled_cancel = time
    return ok("default")


def _dollars(amount: Decimal) -> str:
    return venue_text(round(amount, 2)).removesuffix(".0")
