"""A plain client of the fake exchange for its own tests: signs with the ready agent, posts, and reads replies."""

import json
from decimal import Decimal
from typing import Any

from pitboss.testing.hyperliquid.exchange import FakeExchange
from pitboss.testing.hyperliquid.faults import FaultPlan, FaultRule
from pitboss.testing.hyperliquid.gateway import Delivery, Gateway
from pitboss.testing.hyperliquid.price_path import SetPrices
from pitboss.testing.hyperliquid.rules import VenueRules
from pitboss.testing.hyperliquid.signatures import sign
from pitboss.testing.hyperliquid.universe import LISTED, listed

START_PRICES = {perp.name: perp.start_price for perp in LISTED}


def still_exchange(symbols: str = "BTC,ETH,TST", deposit: int = 10_000, seed: int = 1, **rules: Any) -> FakeExchange:
    """An exchange whose prices stay where a test sets them."""
    perps = listed(symbols)
    paths = {perp.name: SetPrices(perp.start_price) for perp in perps}
    return FakeExchange(seed, perps, rules=VenueRules(**rules), paths=paths, deposit=Decimal(deposit))


def wire_order(
    coin_or_asset: str | int,
    is_buy: bool,
    price: str,
    size: str,
    tif: str = "Gtc",
    reduce_only: bool = False,
    cloid: str | None = None,
    trigger: tuple[str, str] | None = None,
    is_market: bool = True,
    coins: tuple[str, ...] = ("BTC", "ETH", "TST"),
) -> dict[str, Any]:
    """One order of the wire. `trigger` is (tp or sl, trigger price)."""
    asset = coins.index(coin_or_asset) if isinstance(coin_or_asset, str) else coin_or_asset
    kind: dict[str, Any] = {"limit": {"tif": tif}}
    if trigger is not None:
        kind = {"trigger": {"isMarket": is_market, "triggerPx": trigger[1], "tpsl": trigger[0]}}
    order = {"a": asset, "b": is_buy, "p": price, "s": size, "r": reduce_only, "t": kind}
    return order | ({"c": cloid} if cloid else {})


def cloid(number: int) -> str:
    return f"0x{number:032x}"


class PlainClient:
    """Talks to a gateway in the exchange's own time."""

    def __init__(self, exchange: FakeExchange | None = None, *faults: FaultRule, seed: int = 1) -> None:
        self.exchange = exchange or still_exchange()
        self.gateway = Gateway(self.exchange, FaultPlan(faults, seed))
        self.user = self.exchange.ready.master_address
        self.secret = self.exchange.ready.agent_private_key
        self._nonce = 0

    def body(self, action: dict[str, Any], nonce: int | None = None, expires_in: int | None = 10_000) -> dict[str, Any]:
        """A signed request."""
        if nonce is None:
            nonce = self._nonce = max(self._nonce + 1, self.exchange.now)
        expires_after = None if expires_in is None else self.exchange.now + expires_in
        return sign(self.secret, action, nonce, expires_after, self.exchange.state.rules.is_mainnet)

    def deliver(self, action: dict[str, Any], **options: Any) -> Delivery:
        """What comes back for an action."""
        return self.gateway.handle("/exchange", self.body(action, **options))

    def act(self, action: dict[str, Any], **options: Any) -> Any:
        """The reply to an action that is answered."""
        delivery = self.deliver(action, **options)
        assert (delivery.status, delivery.lost) == (200, ""), delivery
        return json.loads(delivery.text)

    def orders(self, *orders: dict[str, Any], grouping: str = "na") -> list[Any]:
        """The statuses of a batch."""
        reply = self.act({"type": "order", "orders": list(orders), "grouping": grouping})
        assert reply["status"] == "ok", reply
        return reply["response"]["data"]["statuses"]

    def order(self, *args: Any, **options: Any) -> Any:
        """The status of one order."""
        return self.orders(wire_order(*args, **options))[0]

    def cancel(self, asset: int, oid: int) -> Any:
        reply = self.act({"type": "cancel", "cancels": [{"a": asset, "o": oid}]})
        return reply["response"]["data"]["statuses"][0]

    def info(self, kind: str, **fields: Any) -> Any:
        """The reply to an info request that is answered."""
        delivery = self.gateway.handle("/info", {"type": kind, "user": self.user, **fields})
        assert (delivery.status, delivery.lost) == (200, ""), delivery
        return json.loads(delivery.text)

    def wait(self, seconds: float) -> None:
        self.exchange.advance(self.exchange.now + round(seconds * 1_000))

    def position(self, coin: str) -> Decimal:
        return self.exchange.account().position(coin)
