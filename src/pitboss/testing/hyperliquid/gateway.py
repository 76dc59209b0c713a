"""`Gateway`: the way of a request to the exchange and of its answer back, with the faults of a plan on it.

The HTTP server and the in-process transport both use it. What it returns says what the client gets and when; it never waits itself.
"""

from collections.abc import Callable
from typing import Any

import orjson

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.testing.hyperliquid import refusals
from pitboss.testing.hyperliquid.conditions import Conditions
from pitboss.testing.hyperliquid.exchange import FakeExchange
from pitboss.testing.hyperliquid.faults import FaultPlan, FaultRule
from pitboss.testing.hyperliquid.matching import fill
from pitboss.testing.hyperliquid.orders import MalformedRequest, PlacedOrder
from pitboss.testing.hyperliquid.replies import err, ok
from pitboss.testing.hyperliquid.request_limits import IpWeight, action_count, info_weight

HTML = "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>"
PORTAL = "<!DOCTYPE html><html><body>Please accept the terms of this network to continue.</body></html>"
UNLISTED = ("Internal error", "Unable to process request", "Unknown error")
UNREADABLE = "Failed to deserialize the JSON body into the target type"
NO_CONNECTION = ("connection_refused", "dns_failure", "tls_failure")

Body = dict[str, Any]


@noun
class Delivery:
    """What a client gets: an answer after `delay_ms`, or nothing (`lost`: `timeout` or `connection`)."""

    status: int
    text: str
    delay_ms: int = 0
    lost: str = ""


class Gateway:
    """Requests in the order in which they arrive. `handle` acts at the present time of the exchange."""

    def __init__(self, exchange: FakeExchange, plan: FaultPlan | None = None) -> None:
        self.exchange = exchange
        self.plan = plan or FaultPlan()
        self.conditions = Conditions(exchange, self.plan)
        self.weight = IpWeight(exchange.state.rules.ip_weight)
        self.requests = 0
        self.rate_limited = 0
        self._start: Instant = exchange.now

    def elapsed(self) -> int:
        """Milliseconds since the gateway began."""
        return self.exchange.now - self._start

    def handle(self, path: str, body: Any) -> Delivery:
        """Take one request at `/info` or `/exchange`."""
        self.requests += 1
        if path not in ("/info", "/exchange"):
            return Delivery(404, "Not Found")
        if not isinstance(body, dict):
            return Delivery(422, UNREADABLE)
        outage = self.conditions.outage()
        if outage is not None:
            return self._during_outage(outage, path, body)
        if not self.weight.allows(self.exchange.now):
            self.rate_limited += 1
            return Delivery(429, "null")
        rule = self.plan.pick(_names(path, body), self.elapsed()) if self.plan.rules else None
        if rule is None:
            return self._answer(path, body)
        return self._faulted(rule, path, body)

    def _answer(self, path: str, body: Body) -> Delivery:
        """The truthful answer."""
        try:
            reply = self._reply(path, body)
        except (MalformedRequest, KeyError, TypeError, ValueError, AttributeError) as error:
            return Delivery(422, f"{UNREADABLE}: {error}")
        return Delivery(200, orjson.dumps(reply).decode())

    def _reply(self, path: str, body: Body) -> Any:
        if path == "/info":
            reply = self.exchange.info(body)
            self.weight.add(self.exchange.now, info_weight(str(body.get("type")), reply))
            return reply
        self.weight.add(self.exchange.now, 1 + action_count(body.get("action") or {}) // 40)
        return self.exchange.exchange(body)

    def _during_outage(self, rule: FaultRule, path: str, body: Body) -> Delivery:
        """During an outage nothing is answered, and some actions are carried out all the same."""
        if path == "/exchange" and self.plan.numbers.chance(rule.executed):
            self._answer(path, body)
        kind = self.plan.numbers.below(3)
        return (Delivery(502, HTML), Delivery(0, "", lost="timeout"), Delivery(0, "", lost="connection"))[kind]

    def _faulted(self, rule: FaultRule, path: str, body: Body) -> Delivery:
        kind = rule.kind
        if kind == "never_received":
            return Delivery(0, "", lost="timeout")
        if kind == "lands_late":
            delay = self._between(rule)
            self.exchange.agenda.at(self.exchange.now + delay, lambda: self._quietly(path, body))
            return Delivery(0, "", lost="timeout")
        if kind in NO_CONNECTION:
            return Delivery(0, "", lost="connection")
        if kind == "captive_portal":
            return Delivery(200, PORTAL)
        if kind == "rate_limited":
            self.rate_limited += 1
            return Delivery(429, "null")
        if kind in ("slow_answer", "executed_no_answer", "leverage_answer_lost"):
            delivery = self._answer(path, body)
            if kind == "slow_answer":
                return Delivery(delivery.status, delivery.text, self._between(rule))
            return Delivery(0, "", lost="timeout")
        broken: dict[str, Callable[[str], Delivery]] = {
            "connection_reset": lambda text: Delivery(0, "", lost="connection"),
            "http_500": lambda text: Delivery(500, "Internal Server Error"),
            "http_502_html": lambda text: Delivery(502, HTML),
            "empty_body": lambda text: Delivery(200, ""),
            "truncated_json": lambda text: Delivery(200, text[: len(text) * 2 // 3]),
            "status_err": lambda text: self._json(err(self._unlisted())),
            "open_orders_fail": lambda text: Delivery(500, "null"),
        }
        if kind in broken:
            was_executed = path == "/info" or self.plan.numbers.chance(rule.executed)
            text = self._answer(path, body).text if was_executed else orjson.dumps(ok("order", [])).decode()
            return broken[kind](text)
        if path == "/info":
            return self._wrong_info(rule, body)
        return self._wrong_action(rule, body)

    def _wrong_info(self, rule: FaultRule, body: Body) -> Delivery:
        delivery = self._answer("/info", body)
        if delivery.status != 200:
            return delivery
        reply = orjson.loads(delivery.text)
        if rule.kind == "open_orders_empty":
            return self._json([])
        if rule.kind == "account_empty":
            empty = self.exchange.info({"type": "clearinghouseState", "user": "0x" + "00" * 20})
            return self._json(empty)
        if rule.kind == "unknown_oid":
            order = reply.get("order")
            is_young = order is not None and self.exchange.now - order["statusTimestamp"] <= rule.high_ms
            return self._json({"status": "unknownOid"}) if is_young else delivery
        if rule.kind == "doubled_fills":
            return self._json([row for row in reply for _ in range(2)])
        if rule.kind == "fills_out_of_order":
            return self._json(reply[1::2] + reply[::2])
        if rule.kind == "late_fills":
            newest = self.exchange.now - rule.high_ms
            return self._json([row for row in reply if row["time"] <= newest])
        return delivery

    def _wrong_action(self, rule: FaultRule, body: Body) -> Delivery:
        action, kind = body["action"], rule.kind
        refused = {
            "nonce_refused": refusals.DUPLICATE_NONCE.format(nonce=body.get("nonce")),
            "agent_refused": refusals.UNKNOWN_SIGNER.format(address=self.exchange.ready.agent_address),
            "address_budget_gone": refusals.ADDRESS_BUDGET.format(used=10_001, cap=10_000, volume="0.0"),
            "leverage_refused": refusals.LEVERAGE,
        }
        if kind in refused:
            return self._json(err(refused[kind]))
        if kind == "order_error":
            if self.plan.numbers.below(2):
                return self._refused_orders(action, refusals.MARGIN)
            if self.plan.numbers.chance(rule.executed):
                self._answer("/exchange", body)
            return self._refused_orders(action, self._unlisted())
        if kind == "stop_refused":
            return self._refused_orders(action, refusals.TRIGGER_PRICE)
        state = self.exchange.state
        if kind == "overfill":
            state.overfill = True
        if kind == "fill_after_cancel":
            self.exchange.do_now(lambda: self._fill_first(body))
        delivery = self._answer("/exchange", body)
        state.overfill = False
        if kind == "reduce_only_auto_cancel":
            self._cancel_older(action)
        if kind == "missing_status" and delivery.status == 200:
            reply = orjson.loads(delivery.text)
            if reply["status"] == "ok":
                statuses = reply["response"]["data"]["statuses"]
                statuses.pop()
                return self._json(reply)
        return delivery

    def _refused_orders(self, action: Body, text: str) -> Delivery:
        orders = action.get("orders") or []
        return self._json(ok("order", [{"error": refusals.of_asset(text, one["a"])} for one in orders]))

    def _fill_first(self, body: Body) -> None:
        """Fill half of what a cancel is about to take away: the fill is told after the cancel is."""
        account = self.exchange.account()
        for one in body["action"].get("cancels", []):
            order = self._order_of(one)
            if order is None or not order.is_open or order.is_trigger:
                continue
            perp = self.exchange.market(order.coin).perp
            size = perp.size_down(order.remaining / 2)
            if size:
                fill(self.exchange.state, account, order, size, order.request.price, crossed=False)

    def _order_of(self, fields: Body) -> PlacedOrder | None:
        account = self.exchange.account()
        if "o" in fields:
            return account.by_oid.get(fields["o"])
        return (account.by_cloid.get(str(fields.get("cloid")).lower()) or [None])[-1]

    def _cancel_older(self, action: Body) -> None:
        """Cancel the older reduce-only orders of the coins of an action, as the exchange does with more than the position."""
        coins = {self.exchange.state.coins[one["a"]] for one in action.get("orders", [])}
        for coin in coins:
            orders = [
                order
                for order in self.exchange.account().open_orders.values()
                if order.coin == coin and order.request.reduce_only
            ]
            for order in orders[:-1]:
                self.exchange.state.set_status(order, "reduceOnlyCanceled")

    def _quietly(self, path: str, body: Body) -> None:
        self._answer(path, body)

    def _between(self, rule: FaultRule) -> int:
        return self.plan.numbers.between(rule.low_ms, rule.high_ms)

    def _unlisted(self) -> str:
        return UNLISTED[self.plan.numbers.below(len(UNLISTED))]

    def _json(self, reply: Any) -> Delivery:
        return Delivery(200, orjson.dumps(reply).decode())


def _names(path: str, body: Body) -> tuple[str, ...]:
    """What a request goes by in a plan: its path, its type, and whether it has triggers or reduce-only orders."""
    if path == "/info":
        return "info", str(body.get("type"))
    action = body.get("action")
    if not isinstance(action, dict):
        return ("exchange",)
    names = ["exchange", str(action.get("type"))]
    orders = action.get("orders")
    if isinstance(orders, list):
        orders = [one for one in orders if isinstance(one, dict)]
        if any("trigger" in (one.get("t") or {}) for one in orders):
            names.append("trigger")
        if any(one.get("r") is True for one in orders):
            names.append("reduce_only")
    return tuple(names)
