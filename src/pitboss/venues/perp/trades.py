"""Trades from receipts: a trade is a round trip of one symbol, from flat to flat again.

Everything is read from fills and funding, in the order in which they happened, with exact amounts: flat means a size
of exactly zero, and the result is the cash that went out and came back, so that trades and open positions together
account for every cent of a run. It knows no marks, no margin and no agent; what could not be paid after a liquidation
(`deficit_usd`) is the venue's loss and belongs to no trade.
"""

from collections.abc import Iterable
from decimal import Decimal
from typing import Literal

from pitboss.core.errors import InvariantError
from pitboss.core.instant import Instant, iso
from pitboss.core.money import ZERO, exact
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt

Side = Literal["long", "short"]


@noun
class Trade:
    """A finished round trip. `pnl_usd` = `gross_usd` − fees − funding − penalties; prices are averages by size."""

    symbol: str
    side: Side
    opened_at: Instant
    closed_at: Instant
    entry_price: Decimal
    exit_price: Decimal
    max_size: Decimal
    pnl_usd: Decimal
    gross_usd: Decimal
    fees_usd: Decimal
    funding_usd: Decimal
    penalties_usd: Decimal
    fills: int
    exit_reason: str


@noun
class OpenTrade:
    """A round trip that has not come back to flat.

    `size` is signed. `flow_usd` is what its fills have brought in so far (sales less purchases), before costs.
    """

    symbol: str
    side: Side
    opened_at: Instant
    size: Decimal
    entry_price: Decimal
    max_size: Decimal
    flow_usd: Decimal
    fees_usd: Decimal
    funding_usd: Decimal
    penalties_usd: Decimal
    fills: int

    @exact
    def pnl_usd(self, mark: Decimal) -> Decimal:
        """What it would have brought, net of costs so far, if the rest were worth `mark`."""
        return self.flow_usd + self.size * mark - self.fees_usd - self.funding_usd - self.penalties_usd


@noun
class Book:
    """All trades of a run: `closed` in the order in which they closed, `open` by symbol."""

    closed: tuple[Trade, ...]
    open: tuple[OpenTrade, ...]


def round_trips(receipts: Iterable[Receipt]) -> list[Trade]:
    """The finished trades, in the order in which they closed."""
    return list(book(receipts).closed)


@exact
def book(receipts: Iterable[Receipt]) -> Book:
    """Finished and unfinished trades. A stream that cannot have come from one account raises `InvariantError`."""
    going: dict[str, _Trip] = {}
    closed: list[Trade] = []
    for receipt in receipts:
        if receipt.kind == "filled":
            trip = going.get(receipt.symbol)
            if trip is None:
                trip = going[receipt.symbol] = _Trip(receipt)
            trip.fill(receipt)
            if not trip.left:
                closed.append(trip.closed(receipt))
                del going[receipt.symbol]
        elif receipt.kind == "funded":
            paid = amount(receipt.facts["amount_usd"])
            trip = going.get(receipt.symbol)
            if trip is not None:
                trip.funding += paid
            elif paid:
                raise InvariantError(f"funding of {receipt.symbol} at {iso(receipt.at)} without a position")
    return Book(tuple(closed), tuple(going[symbol].open() for symbol in sorted(going)))


def amount(value: Decimal | str | int) -> Decimal:
    """An exact amount of a receipt, fresh (Decimal) or read back from storage (its text)."""
    if type(value) is Decimal:
        return value
    if isinstance(value, str | int):
        return Decimal(value)
    raise InvariantError(f"{value!r} is not an exact amount")


class _Trip:
    """One symbol's trade while it is being added up."""

    __slots__ = (
        "fees",
        "fills",
        "flow",
        "funding",
        "grown",
        "grown_notional",
        "left",
        "max_size",
        "opened_at",
        "penalties",
        "shrunk",
        "shrunk_notional",
        "symbol",
        "way",
    )

    def __init__(self, first: Receipt) -> None:
        self.symbol = first.symbol
        self.opened_at = first.at
        self.way = first.facts["side"]
        self.left = self.flow = self.max_size = ZERO
        self.grown = self.grown_notional = self.shrunk = self.shrunk_notional = ZERO
        self.fees = self.funding = self.penalties = ZERO
        self.fills = 0

    @property
    def side(self) -> Side:
        return "long" if self.way == "buy" else "short"

    def fill(self, receipt: Receipt) -> None:
        facts = receipt.facts
        side = facts["side"]
        size, price = amount(facts["size"]), amount(facts["price"])
        notional = size * price
        if side == "buy":
            self.flow -= notional
        else:
            self.flow += notional
        if side == self.way:
            self.left += size
            self.grown += size
            self.grown_notional += notional
            if self.left > self.max_size:
                self.max_size = self.left
        else:
            self.left -= size
            self.shrunk += size
            self.shrunk_notional += notional
        # No order of this venue turns a position round, so a stream that does has lost or doubled a fill.
        if size <= ZERO or self.left < ZERO:
            raise InvariantError(f"fill of {size} {self.symbol} at {iso(receipt.at)} does not fit the position")
        self.fees += amount(facts["fee_usd"])
        self.penalties += amount(facts["penalty_usd"])
        self.fills += 1

    def closed(self, last: Receipt) -> Trade:
        return Trade(
            symbol=self.symbol,
            side=self.side,
            opened_at=self.opened_at,
            closed_at=last.at,
            entry_price=self.grown_notional / self.grown,
            exit_price=self.shrunk_notional / self.shrunk,
            max_size=self.max_size,
            pnl_usd=self.flow - self.fees - self.funding - self.penalties,
            gross_usd=self.flow,
            fees_usd=self.fees,
            funding_usd=self.funding,
            penalties_usd=self.penalties,
            fills=self.fills,
            exit_reason=str(last.facts["reason"]),
        )

    def open(self) -> OpenTrade:
        return OpenTrade(
            symbol=self.symbol,
            side=self.side,
            opened_at=self.opened_at,
            size=self.left if self.way == "buy" else -self.left,
            entry_price=self.grown_notional / self.grown,
            max_size=self.max_size,
            flow_usd=self.flow,
            fees_usd=self.fees,
            funding_usd=self.funding,
            penalties_usd=self.penalties,
            fills=self.fills,
        )
