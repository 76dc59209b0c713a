"""Folds the receipts of an account into its trades of a span, each fill with the market's price around it.

It reads the records of a deployment and those of its replay alike. The market is that of closed bars: within a bar the price is
taken to lie on the line from its open to its close, so a fill some seconds after a tick is measured by a small part of its bar.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from pitboss.core.asof import Market
from pitboss.core.errors import InvariantError
from pitboss.core.instant import Instant
from pitboss.core.money import ZERO, decimal, exact
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.venues.perp.trade_differences import CARRIED, MARKED, AccountTrade, PricedFill
from pitboss.venues.perp.trades import amount

PRICE_STEP = Decimal("0.000000000001")
TRIGGERS = ("stop", "take_profit")
OWN_PRICE = frozenset({"liquidation", "foreign", "adopted", "end"})
"""Reasons of fills that no decision explains: they are measured by their own price."""


@noun
class SpanStep:
    """One record of a span: what happened until it, and the account after it. `account` is None if it was not recorded."""

    at: Instant
    receipts: tuple[Receipt, ...]
    account: Mapping[str, Any] | None


@noun
class OpenSize:
    """The size of a position at the beginning or the end of a span; signed."""

    size: Decimal
    mark: Decimal


class BarPrices:
    """The price of a symbol at an instant, from its bars."""

    def __init__(self, market: Market, base_interval: str) -> None:
        self._market = market
        self._base = base_interval

    @exact
    def at(self, symbol: str, at: Instant) -> Decimal:
        """Return the price at an instant: the open of its bar, or between open and close; the last close if no bar contains it."""
        bars = self._market.bars[symbol, self._base]
        index = int(np.searchsorted(bars.open_at, at, side="right")) - 1
        if index < 0:
            raise InvariantError(f"there is no bar of {symbol} at {at}")
        since = at - bars.open_at.item(index)
        close = decimal(bars.close.item(index))
        if since >= bars.interval_ms:
            return close
        opened = decimal(bars.open.item(index))
        return opened if not since else (opened + (close - opened) * since / bars.interval_ms).quantize(PRICE_STEP)


@exact
def account_trades(
    carried: Mapping[str, OpenSize],
    started_at: Instant,
    steps: Iterable[SpanStep],
    sent: Mapping[str, Instant],
    prices: BarPrices,
) -> tuple[AccountTrade, ...]:
    """Return the trades of an account in a span. `sent` are the ticks of orders that were sent before it, by order id."""
    fold = TradesFold(carried, started_at, sent, prices)
    account: Mapping[str, Any] = {}
    for step in steps:
        for receipt in step.receipts:
            fold.take(receipt)
        if step.account is not None:
            account = step.account
            fold.set_triggers(account)
    return fold.finish(open_sizes(account))


def open_sizes(account: Mapping[str, Any]) -> dict[str, OpenSize]:
    """Return the positions of a recorded account."""
    return {
        symbol: OpenSize(amount(position["size"]), amount(position["mark"]))
        for symbol, position in sorted((account.get("positions") or {}).items())
    }


class TradesFold:
    """Builds the trades of one account, receipt by receipt."""

    def __init__(
        self, carried: Mapping[str, OpenSize], started_at: Instant, sent: Mapping[str, Instant], prices: BarPrices
    ) -> None:
        self._sent = dict(sent)
        self._prices = prices
        self._triggers: dict[tuple[str, str], Decimal] = {}
        self._open: dict[str, GrowingTrade] = {}
        self._ended: list[GrowingTrade] = []
        for symbol, position in carried.items():
            trade = self._open[symbol] = GrowingTrade(symbol, 1 if position.size > 0 else -1, started_at)
            price = position.mark
            trade.add(PricedFill(started_at, abs(position.size), price, price, price, CARRIED), opens=True)

    def set_triggers(self, account: Mapping[str, Any]) -> None:
        """Note the stops and take-profits of the positions of a recorded account."""
        for symbol, position in (account.get("positions") or {}).items():
            self._note_triggers(symbol, position)

    def _note_triggers(self, symbol: str, facts: Mapping[str, Any]) -> None:
        for name in TRIGGERS:
            if facts.get(name) is not None:
                self._triggers[symbol, name] = amount(facts[name])

    def take(self, receipt: Receipt) -> None:
        """Process one receipt."""
        if receipt.kind == "accepted":
            self._sent[receipt.order_id] = receipt.at
            self._note_triggers(receipt.symbol, receipt.facts)
        elif receipt.kind == "filled":
            self._fill(receipt)
        elif receipt.kind in ("funded", "settled") and "amount_usd" in receipt.facts:
            trade = self._open.get(receipt.symbol) or self._last_ended(receipt.symbol)
            if trade is not None:  # else it belongs to no trade of this span
                trade.funding += amount(receipt.facts["amount_usd"])

    def finish(self, positions: Mapping[str, OpenSize]) -> tuple[AccountTrade, ...]:
        """Return all trades; those that are open end with their size at its mark.

        A size of the account that its fills do not explain, or the reverse, belongs to no trade.
        """
        for symbol, trade in sorted(self._open.items()):
            mark = positions[symbol].mark if symbol in positions else trade.last_price
            trade.add(PricedFill(0, trade.open_size, mark, mark, mark, MARKED), opens=False)
            self._ended.append(trade)
        return tuple(trade.freeze() for trade in self._ended)

    def _last_ended(self, symbol: str) -> "GrowingTrade | None":
        return next((trade for trade in reversed(self._ended) if trade.symbol == symbol), None)

    def _fill(self, receipt: Receipt) -> None:
        facts, symbol = receipt.facts, receipt.symbol
        side, size = 1 if facts["side"] == "buy" else -1, amount(facts["size"])
        trade = self._open.get(symbol)
        if trade is None:
            trade = self._open[symbol] = GrowingTrade(symbol, side, receipt.at)
        trade.fees += amount(facts["fee_usd"])
        trade.penalties += amount(facts["penalty_usd"])
        opens = trade.side == side
        part = size if opens else min(size, trade.open_size)
        trade.add(self._priced(receipt, part), opens)
        if not trade.open_size:
            trade.closed_at = receipt.at
            self._ended.append(self._open.pop(symbol))
        if part < size:  # it reverses the position: the rest opens another trade
            trade = self._open[symbol] = GrowingTrade(symbol, side, receipt.at)
            trade.add(self._priced(receipt, size - part), opens=True)

    def _priced(self, receipt: Receipt, size: Decimal) -> PricedFill:
        facts, symbol = receipt.facts, receipt.symbol
        price, reason = amount(facts["price"]), str(facts["reason"])
        sent_at = self._sent.get(receipt.order_id)
        if reason in TRIGGERS:
            trigger = self._triggers.get((symbol, reason), price)
            return PricedFill(receipt.at, size, price, trigger, trigger, reason)
        if sent_at is None or reason in OWN_PRICE:
            return PricedFill(receipt.at, size, price, price, price, reason)
        # A resting order waits for its own price, so the market was there when it was filled.
        market = price if facts.get("liquidity") == "maker" else self._prices.at(symbol, receipt.at)
        return PricedFill(receipt.at, size, price, self._prices.at(symbol, sent_at), market, f"tick {sent_at}")


class GrowingTrade:
    """A trade while its receipts are read."""

    __slots__ = (
        "closed_at",
        "entries",
        "exits",
        "fees",
        "funding",
        "last_price",
        "open_size",
        "opened_at",
        "penalties",
        "side",
        "symbol",
    )

    def __init__(self, symbol: str, side: int, opened_at: Instant) -> None:
        self.symbol, self.side, self.opened_at = symbol, side, opened_at
        self.closed_at: Instant | None = None
        self.entries: list[PricedFill] = []
        self.exits: list[PricedFill] = []
        self.fees = self.funding = self.penalties = self.open_size = self.last_price = ZERO

    def add(self, fill: PricedFill, opens: bool) -> None:
        """Add a fill that opens or closes."""
        (self.entries if opens else self.exits).append(fill)
        self.open_size += fill.size if opens else -fill.size
        self.last_price = fill.price

    def freeze(self) -> AccountTrade:
        """Return the trade as it is now."""
        return AccountTrade(
            self.symbol,
            self.side,
            self.opened_at,
            self.closed_at,
            tuple(self.entries),
            tuple(self.exits),
            self.fees,
            self.funding,
            self.penalties,
        )
