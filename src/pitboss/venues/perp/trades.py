"""Builds trades from receipts: a trade is a round trip of one symbol, from flat to flat.

Only fills and funding are read, in the order in which they happened, with exact amounts: flat means a size of exactly
zero, and the result is the cash paid and received, so trades and open positions together account for every cent of a
run. Marks, margin and the agent play no part; a deficit after a liquidation (`deficit_usd`) is the venue's loss and
belongs to no trade.

`Fold` is the only definition of a trade: metrics fold a whole run at once, the agent's memory folds the new receipts of
a tick.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from decimal import Decimal
from operator import attrgetter
from typing import Any, Literal

from pitboss.core.errors import InvariantError
from pitboss.core.instant import Instant, iso
from pitboss.core.money import ZERO, exact
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.venues.perp.trade_memory import RoundTrip

TradeSide = Literal["long", "short"]
ADOPTED = "adopted"
"""Reason of the receipt that stands for what an account already had, or for a change that no fill explains."""


@noun
class Trade:
    """A closed round trip; prices are size-weighted averages.

    `pnl_usd` = `gross_usd` − fees − funding − penalties.
    """

    symbol: str
    side: TradeSide
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
    """A round trip that is still open.

    `size` is signed. `flow_usd` is the cash from its fills so far (sales minus purchases), before costs.
    """

    symbol: str
    side: TradeSide
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
        """Return the result net of costs so far, with the open size valued at `mark`."""
        return self.flow_usd + self.size * mark - self.fees_usd - self.funding_usd - self.penalties_usd


@noun
class TradeBook:
    """All trades of a run: `closed` in closing order, `open` by symbol."""

    closed: tuple[Trade, ...]
    open: tuple[OpenTrade, ...]


def round_trips(receipts: Iterable[Receipt]) -> list[Trade]:
    """Return the closed trades in closing order."""
    return list(book(receipts).closed)


@exact
def book(receipts: Iterable[Receipt]) -> TradeBook:
    """Return closed and open trades; receipts that cannot come from one account raise `InvariantError`."""
    fold = Fold()
    for receipt in receipts:
        fold.take(receipt)
    return TradeBook(tuple(closed for _, closed in fold.closed), tuple(_open(trip) for trip in fold.open_trips()))


def trade_rows(receipts: Iterable[Receipt]) -> list[dict[str, Any]]:
    """Return all trades in the public export form, the closed ones first. An open one has no exit and no result yet."""
    trades = book(receipts)
    return [_row(trade, trade) for trade in trades.closed] + [_row(trade, None) for trade in trades.open]


def _row(trade: Trade | OpenTrade, closed: Trade | None) -> dict[str, Any]:
    return {
        "symbol": trade.symbol,
        "side": trade.side,
        "opened_at": trade.opened_at,
        "closed_at": closed and closed.closed_at,
        "size": trade.max_size,
        "entry_price": trade.entry_price,
        "exit_price": closed and closed.exit_price,
        "gross_usd": closed and closed.gross_usd,
        "fees_usd": trade.fees_usd,
        "funding_usd": trade.funding_usd,
        "penalties_usd": trade.penalties_usd,
        "pnl_usd": closed and closed.pnl_usd,
        "fills": trade.fills,
        "exit_reason": closed and closed.exit_reason,
    }


class Fold:
    """Builds trades from receipts incrementally; it can start from open round trips and freeze into them again.

    `closed` holds every trade that has closed, with its round trip.
    """

    __slots__ = ("_trips", "closed")

    def __init__(self, open_trips: Iterable[RoundTrip] = ()) -> None:
        self._trips = {trip.symbol: WorkingTrip(*_values(trip)) for trip in open_trips}
        self.closed: list[tuple[WorkingTrip, Trade]] = []

    def take(self, receipt: Receipt) -> None:
        """Process one receipt; call it only under the decimal context of `core.money`."""
        if receipt.kind == "filled":
            trip = self._trips.get(receipt.symbol)
            if trip is None:
                way = str(receipt.facts["side"])
                trip = self._trips[receipt.symbol] = WorkingTrip(receipt.symbol, way, receipt.at)
            trip.fill(receipt)
            if not trip.left:
                self.closed.append((trip, trip.closed(receipt)))  # nothing changes it after this
                del self._trips[receipt.symbol]
        elif receipt.kind == "funded":
            funding_usd = amount(receipt.facts["amount_usd"])
            trip = self._trips.get(receipt.symbol)
            if trip is not None:
                trip.funding += funding_usd
            elif funding_usd:
                raise InvariantError(f"funding of {receipt.symbol} at {iso(receipt.at)} without a position")

    def is_open(self, symbol: str) -> bool:
        """Return whether a round trip of this symbol is open."""
        return symbol in self._trips

    def discard(self, symbol: str) -> None:
        """Drop a round trip whose receipts are inconsistent."""
        self._trips.pop(symbol, None)

    def set_context(self, symbol: str, regime: str, thesis: str) -> None:
        """Store regime and thesis on a round trip that has just opened."""
        self._trips[symbol].regime, self._trips[symbol].thesis = regime, thesis

    def open_trips(self) -> tuple[RoundTrip, ...]:
        """Return the open round trips, by symbol."""
        return tuple(self._trips[symbol].freeze() for symbol in sorted(self._trips))


def amount(value: Decimal | str | int) -> Decimal:
    """Return an exact amount of a receipt, from a Decimal or from its stored text."""
    if type(value) is Decimal:
        return value
    if isinstance(value, str | int):
        return Decimal(value)
    raise InvariantError(f"{value!r} is not an exact amount")


def _open(trip: RoundTrip) -> OpenTrade:
    return OpenTrade(
        symbol=trip.symbol,
        side="long" if trip.way == "buy" else "short",
        opened_at=trip.opened_at,
        size=trip.left if trip.way == "buy" else -trip.left,
        entry_price=trip.grown_notional / trip.grown,
        max_size=trip.max_size,
        flow_usd=trip.flow,
        fees_usd=trip.fees,
        funding_usd=trip.funding,
        penalties_usd=trip.penalties,
        fills=trip.fills,
    )


@dataclass(slots=True, eq=False)
class WorkingTrip:
    """A mutable `RoundTrip`, used while receipts are folded into it.

    It has the same fields in the same order, written again: a mutable class cannot derive from an immutable one.
    """

    symbol: str
    way: str
    opened_at: Instant
    left: Decimal = ZERO
    max_size: Decimal = ZERO
    grown: Decimal = ZERO
    grown_notional: Decimal = ZERO
    shrunk: Decimal = ZERO
    shrunk_notional: Decimal = ZERO
    flow: Decimal = ZERO
    fees: Decimal = ZERO
    funding: Decimal = ZERO
    penalties: Decimal = ZERO
    fills: int = 0
    regime: str = ""
    thesis: str = ""

    def freeze(self) -> RoundTrip:
        return RoundTrip(*_values(self))

    def fill(self, receipt: Receipt) -> None:
        facts = receipt.facts
        side = facts["side"]
        size, price = facts["size"], facts["price"]
        fee, penalty = facts["fee_usd"], facts["penalty_usd"]
        if not (type(size) is Decimal and type(price) is Decimal and type(fee) is Decimal and type(penalty) is Decimal):
            size, price, fee, penalty = amount(size), amount(price), amount(fee), amount(penalty)  # stored as text
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
        # No order of this venue reverses a position, so receipts that do so have lost or duplicated a fill.
        if size <= ZERO or self.left < ZERO:
            raise InvariantError(f"fill of {size} {self.symbol} at {iso(receipt.at)} does not fit the position")
        self.fees += fee
        self.penalties += penalty
        self.fills += 1

    def closed(self, last: Receipt) -> Trade:
        return Trade(
            symbol=self.symbol,
            side="long" if self.way == "buy" else "short",
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


_values = attrgetter(*(field.name for field in fields(WorkingTrip)))
"""All values of a round trip, working or frozen, in the order of their fields."""
