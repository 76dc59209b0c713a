"""`StreamHub`: WebSocket sessions of the fake exchange without the sockets. Subscriptions, messages, and the faults of streams.

A session is given a function that sends a text and one that closes; the server connects these to a socket, tests to a list.
Messages of an account leave at the moment of the event, hence before the answer to the request that caused it.
"""

from collections.abc import Callable
from typing import Any

import orjson

from pitboss.core.instant import SECOND_MS, Instant
from pitboss.testing.hyperliquid import shapes
from pitboss.testing.hyperliquid.gateway import Gateway
from pitboss.testing.hyperliquid.info import account_of, interval_length, market_of
from pitboss.testing.hyperliquid.orders import MalformedRequest, PlacedOrder
from pitboss.testing.hyperliquid.replies import venue_text
from pitboss.testing.hyperliquid.state import (
    FillMade,
    FundingMade,
    LiquidationStarted,
    OrderChanged,
    PricesMoved,
    VenueEvent,
)

IDLE_MS = 60 * SECOND_MS
OF_COIN = ("candle", "l2Book", "bbo", "trades", "activeAssetCtx")
OF_USER = ("userFills", "orderUpdates", "userEvents", "userFundings")
KINDS = ("allMids", *OF_COIN, *OF_USER)
STRANGER = "0x" + "5a" * 20
MOST_SNAPSHOT = 2_000

Message = dict[str, Any]


class StreamSession:
    """One connection: its subscriptions in the order they were made, by their canonical text."""

    def __init__(self, send: Callable[[str], None], close: Callable[[bool], None], now: Instant) -> None:
        self._send = send
        self._close = close
        self.subscriptions: dict[str, Message] = {}
        self.last_sent: Instant = now
        self.is_open = True
        self.is_half_open = False

    def send(self, message: Message, now: Instant) -> None:
        """Send a message, unless the connection is half open: nothing arrives, and the client does not know."""
        if self.is_open and not self.is_half_open:
            self.last_sent = now
            self._send(orjson.dumps(message).decode())

    def close(self, is_abrupt: bool = False) -> None:
        """End the connection: with a close frame, or abruptly."""
        if self.is_open:
            self.is_open = False
            self._close(is_abrupt)


class StreamHub:
    """All sessions of one exchange."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._exchange = gateway.exchange
        self._state = gateway.exchange.state
        self.sessions: list[StreamSession] = []
        self._out_of_order: Message | None = None
        self._state.listeners.append(self._on_event)

    def connect(self, send: Callable[[str], None], close: Callable[[bool], None]) -> StreamSession:
        """Open a session."""
        session = StreamSession(send, close, self._state.now)
        self.sessions.append(session)
        return session

    def disconnect(self, session: StreamSession) -> None:
        """Forget a session."""
        session.is_open = False
        if session in self.sessions:
            self.sessions.remove(session)

    def receive(self, session: StreamSession, text: str) -> None:
        """Act on a message of the client."""
        try:
            message = orjson.loads(text)
            method = message["method"]
            if method == "ping":
                session.send({"channel": "pong"}, self._state.now)
            elif method == "post":
                self._post(session, message)
            elif method in ("subscribe", "unsubscribe"):
                self._subscribe(session, method, message["subscription"])
            else:
                raise MalformedRequest(f"unknown method {method!r}")
        except (MalformedRequest, ValueError, KeyError, TypeError) as error:
            problem = f"Error parsing JSON into valid websocket request: {error}"
            session.send({"channel": "error", "data": problem}, self._state.now)

    def _post(self, session: StreamSession, message: Message) -> None:
        request = message["request"]
        path = {"info": "/info", "action": "/exchange"}[request["type"]]
        delivery = self._gateway.handle(path, request["payload"])
        if delivery.lost:
            return
        response: Message = {"type": "error", "payload": delivery.text}
        if delivery.status == 200 and path == "/exchange":
            response = {"type": "action", "payload": orjson.loads(delivery.text)}
        elif delivery.status == 200:
            data = orjson.loads(delivery.text)
            response = {"type": "info", "payload": {"type": request["payload"]["type"], "data": data}}
        session.send({"channel": "post", "data": {"id": message["id"], "response": response}}, self._state.now)

    def _subscribe(self, session: StreamSession, method: str, wanted: Message) -> None:
        kind = wanted.get("type")
        if kind not in KINDS:
            raise MalformedRequest(f"unknown subscription {kind!r}")
        if kind in OF_COIN:
            market_of(self._state, wanted.get("coin"))
        if kind in OF_USER:
            account_of(self._state, wanted)
        if kind == "candle":
            interval_length(wanted.get("interval"))
        name = orjson.dumps(wanted, option=orjson.OPT_SORT_KEYS).decode().lower()
        now = self._state.now
        if method == "unsubscribe":
            if session.subscriptions.pop(name, None) is None:
                session.send({"channel": "error", "data": f"Already unsubscribed: {name}"}, now)
                return
        elif name in session.subscriptions:
            session.send({"channel": "error", "data": f"Already subscribed: {name}"}, now)
            return
        else:
            session.subscriptions[name] = wanted
        answer = {"method": method, "subscription": wanted}
        session.send({"channel": "subscriptionResponse", "data": answer}, now)
        if method == "subscribe":
            self._first_messages(session, wanted)

    def _first_messages(self, session: StreamSession, wanted: Message) -> None:
        """Snapshots of what an account has, and the present state of a coin."""
        kind = wanted["type"]
        if kind in ("userFills", "userFundings"):
            snapshot = self._snapshot(wanted)
            for _ in range(2 if self._fault("ws_duplicate_snapshot") else 1):
                session.send(snapshot, self._state.now)
        elif kind not in OF_USER:
            self._send_prices(session, wanted)

    def _snapshot(self, wanted: Message) -> Message:
        account = account_of(self._state, wanted)
        data: Message = {"isSnapshot": True, "user": account.address}
        if wanted["type"] == "userFills":
            data["fills"] = [shapes.fill_row(fill) for fill in reversed(account.fills[-MOST_SNAPSHOT:])]
        else:
            data["fundings"] = [{"time": one.at} | shapes.funding_delta(one) for one in account.fundings]
        return {"channel": wanted["type"], "data": data}

    def _fault(self, kind: str) -> bool:
        plan = self._gateway.plan
        return bool(plan.rules) and plan.stream_fault(kind, self._gateway.elapsed()) is not None

    def _on_event(self, event: VenueEvent) -> None:
        if not self.sessions:
            return
        if isinstance(event, PricesMoved):
            self._on_prices()
        elif isinstance(event, FillMade):
            self._on_fill(event)
        elif isinstance(event, OrderChanged):
            update = order_update(event.order, event.status, event.at)
            self._to_user(event.account, "orderUpdates", {"channel": "orderUpdates", "data": [update]})
            if event.status.endswith("Canceled") and event.status != "canceled":
                cancelled = [{"coin": event.order.coin, "oid": event.order.oid}]
                self._to_user(event.account, "userEvents", {"channel": "user", "data": {"nonUserCancel": cancelled}})
        elif isinstance(event, FundingMade):
            row = {"time": event.payment.at} | shapes.funding_delta(event.payment)
            data = {"user": event.account, "fundings": [row]}
            self._to_user(event.account, "userFundings", {"channel": "userFundings", "data": data})
            self._to_user(event.account, "userEvents", {"channel": "user", "data": {"funding": row}})
        else:
            self._on_liquidation(event)

    def _on_liquidation(self, event: LiquidationStarted) -> None:
        liquidation = {
            "lid": event.lid,
            "liquidator": STRANGER,
            "liquidated_user": event.account,
            "liquidated_ntl_pos": venue_text(event.notional),
            "liquidated_account_value": venue_text(event.account_value),
        }
        self._to_user(event.account, "userEvents", {"channel": "user", "data": {"liquidation": liquidation}})

    def _on_fill(self, event: FillMade) -> None:
        row = shapes.fill_row(event.fill)
        wrong = STRANGER if self._fault("ws_wrong_user") else event.account
        message = {"channel": "userFills", "data": {"user": wrong, "fills": [row]}}
        if self._fault("ws_gap"):
            return  # the message is lost, and nothing says so
        plan = self._gateway.plan
        rule = plan.stream_fault("ws_late_fill", self._gateway.elapsed()) if plan.rules else None
        if rule is not None:
            delay = plan.numbers.between(rule.low_ms, rule.high_ms)
            self._exchange.agenda.at(self._state.now + delay, lambda: self._tell_fill(event.account, message, row))
            return
        if self._out_of_order is None and self._fault("ws_fills_out_of_order"):
            self._out_of_order = message  # is sent after the next fill
            return
        for _ in range(2 if self._fault("ws_doubled_fill") else 1):
            self._tell_fill(event.account, message, row)
        if self._out_of_order is not None:
            earlier, self._out_of_order = self._out_of_order, None
            self._tell_fill(event.account, earlier, earlier["data"]["fills"][0])
        trade = {key: row[key] for key in ("coin", "side", "px", "sz", "time", "hash", "tid")}
        trade["users"] = [event.account, STRANGER]
        for session in list(self.sessions):
            for wanted in list(session.subscriptions.values()):
                if wanted["type"] == "trades" and wanted["coin"] == event.fill.coin:
                    session.send({"channel": "trades", "data": [trade]}, self._state.now)

    def _tell_fill(self, account: str, message: Message, row: Message) -> None:
        self._to_user(account, "userFills", message)
        self._to_user(account, "userEvents", {"channel": "user", "data": {"fills": [row]}})

    def _to_user(self, account: str, kind: str, message: Message) -> None:
        for session in list(self.sessions):
            for wanted in list(session.subscriptions.values()):
                if wanted["type"] == kind and wanted["user"].lower() == account:
                    session.send(message, self._state.now)

    def _on_prices(self) -> None:
        for session in list(self.sessions):
            self._break(session)
            if not session.is_open:
                continue
            for wanted in list(session.subscriptions.values()):
                if wanted["type"] not in OF_USER and wanted["type"] != "trades":
                    self._send_prices(session, wanted)
            if self._state.now - session.last_sent > IDLE_MS and not session.is_half_open:
                session.close()

    def _break(self, session: StreamSession) -> None:
        if self._gateway.conditions.outage() is not None or self._fault("ws_drop"):
            session.close(is_abrupt=True)
        elif self._fault("ws_silent_close"):
            session.close()
        elif self._fault("ws_half_open"):
            session.is_half_open = True

    def _send_prices(self, session: StreamSession, wanted: Message) -> None:
        state, kind = self._state, wanted["type"]
        if kind == "trades":
            return
        if kind == "allMids":
            session.send({"channel": "allMids", "data": {"mids": shapes.all_mids(state)}}, state.now)
            return
        market = market_of(state, wanted["coin"])
        data: Message
        if kind == "l2Book":
            data = shapes.book_row(market, state.now)
        elif kind == "activeAssetCtx":
            data = {"coin": market.perp.name, "ctx": shapes.asset_context(market)}
        elif kind == "bbo":
            data = shapes.best_row(market, state.now)
        else:
            length = interval_length(wanted["interval"])
            candle = market.aggregate(length, state.now, state.now)[-1]
            data = shapes.candle_row(market, candle, wanted["interval"], length, is_last=True)
        session.send({"channel": kind, "data": data}, state.now)


def order_update(order: PlacedOrder, status: str, at: Instant) -> Message:
    """An order in `orderUpdates`."""
    shape = shapes.basic_order(order) | {"origSz": venue_text(order.size)}
    return {"order": shape, "status": status, "statusTimestamp": at}
