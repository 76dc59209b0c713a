"""Explains the difference between two accounts trade by trade. Pure: two lists of trades in, differences with their parts out.

One account is that of a deployment, the other the paper world with the same decisions. Every price of a trade is read as three
steps: the market at the decision, the market at the time of the fill, and the fill. The first step to the second is latency, the
second to the third slippage. A part is what it added to the result of the deployment, in USD; the parts of a trade add up to its
difference exactly, because `rest_usd` is computed as what the others leave.
"""

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from pitboss.core.instant import Instant
from pitboss.core.money import ZERO, exact
from pitboss.core.noun import noun

STEP = Decimal("0.00000001")
"""Parts that come from averages are rounded to this many USD."""
CARRIED, MARKED = "carried", "marked"
"""Causes of the size that a trade had when the span began, and of the size that it still has at its end."""


@noun
class PricedFill:
    """One fill of a trade with the market around it; `size` is unsigned.

    `decided` is the market's price at the decision, `market` that at the time of the fill. `cause` says what made it: equal causes
    in two accounts are the same decision.
    """

    at: Instant
    size: Decimal
    price: Decimal
    decided: Decimal
    market: Decimal
    cause: str


@noun
class AccountTrade:
    """A round trip in one account; `side` is +1 long, −1 short. `closed_at` is None if it is open at the end of the span.

    Entries and exits have the same size together: what is left open at the end is an exit at its mark (`MARKED`), and what was
    open at the beginning an entry at its mark (`CARRIED`).
    """

    symbol: str
    side: int
    opened_at: Instant
    closed_at: Instant | None
    entries: tuple[PricedFill, ...]
    exits: tuple[PricedFill, ...]
    fees_usd: Decimal = ZERO
    funding_usd: Decimal = ZERO
    penalties_usd: Decimal = ZERO

    @property
    def size(self) -> Decimal:
        """The size of all entries."""
        return sum((fill.size for fill in self.entries), ZERO)

    @property
    def gross_usd(self) -> Decimal:
        """The result before costs."""
        return self.side * (_notional(self.exits) - _notional(self.entries))

    @property
    def result_usd(self) -> Decimal:
        """The result of the span after costs."""
        return self.gross_usd - self.fees_usd - self.funding_usd - self.penalties_usd


@noun
class TradeDifference:
    """The difference of one trade, deployment minus paper, with its parts."""

    symbol: str
    side: int
    opened_at: Instant
    closed_at: Instant | None
    live_size: Decimal
    paper_size: Decimal
    live_usd: Decimal
    paper_usd: Decimal
    latency_usd: Decimal
    slippage_usd: Decimal
    fees_usd: Decimal
    funding_usd: Decimal
    missed_usd: Decimal
    rest_usd: Decimal

    @property
    def difference_usd(self) -> Decimal:
        """The result of the deployment minus that on paper."""
        return self.live_usd - self.paper_usd


@exact
def explain(live: Sequence[AccountTrade], paper: Sequence[AccountTrade]) -> tuple[TradeDifference, ...]:
    """Match the trades of two accounts and explain the difference of each pair, in the order of opening."""
    pairs = match(live, paper)
    return tuple(difference(mine, other) for mine, other in sorted(pairs, key=_opened))


TradePair = tuple[AccountTrade | None, AccountTrade | None]


def match(live: Sequence[AccountTrade], paper: Sequence[AccountTrade]) -> list[TradePair]:
    """Pair the trades that one decision opened, then those of a symbol and side that overlap in time; the rest are alone."""
    unmatched = list(paper)
    pairs: list[TradePair] = []
    alone: list[AccountTrade] = []
    for trade in live:
        other = _take(unmatched, lambda each, trade=trade: _key(each) == _key(trade))
        if other is None:
            alone.append(trade)
        else:
            pairs.append((trade, other))
    for trade in alone:
        pairs.append((trade, _take(unmatched, lambda each, trade=trade: _overlaps(each, trade))))
    return [*pairs, *((None, trade) for trade in unmatched)]


@exact
def difference(live: AccountTrade | None, paper: AccountTrade | None) -> TradeDifference:
    """Explain the difference of a pair; a trade that one of the accounts does not have is missed there."""
    trade = live or paper
    if trade is None:
        raise ValueError("a pair has at least one trade")
    mine, other = _Sides(live), _Sides(paper)
    shared = min(mine.size, other.size)
    side = trade.side
    latency = slippage = base_price = missed = ZERO
    for sign, leg in ((-side, "entries"), (side, "exits")):
        parts = [sum_of(leg, shared) for sum_of in (mine.steps, other.steps)]
        latency += sign * (parts[0][1] - parts[1][1])
        slippage += sign * (parts[0][2] - parts[1][2])
        base_price = sign * (parts[0][0] - parts[1][0])
        if mine.causes(leg) != other.causes(leg):  # another decision, or a stop that only one account had
            missed += base_price
    missed += mine.beyond(shared) - other.beyond(shared)
    fees, funding = other.fees - mine.fees, other.funding - mine.funding
    live_usd, paper_usd = mine.result, other.result
    latency, slippage, missed = (each.quantize(STEP) for each in (latency, slippage, missed))
    return TradeDifference(
        symbol=trade.symbol,
        side=side,
        opened_at=trade.opened_at,
        closed_at=trade.closed_at,
        live_size=mine.size,
        paper_size=other.size,
        live_usd=live_usd,
        paper_usd=paper_usd,
        latency_usd=latency,
        slippage_usd=slippage,
        fees_usd=fees,
        funding_usd=funding,
        missed_usd=missed,
        rest_usd=live_usd - paper_usd - latency - slippage - fees - funding - missed,
    )


class _Sides:
    """One account's side of a pair; everything is zero if it has no such trade."""

    def __init__(self, trade: AccountTrade | None) -> None:
        self._trade = trade
        self.size = ZERO if trade is None else trade.size
        self.fees = ZERO if trade is None else trade.fees_usd
        self.funding = ZERO if trade is None else trade.funding_usd
        self.result = ZERO if trade is None else trade.result_usd

    def steps(self, leg: str, size: Decimal) -> tuple[Decimal, Decimal, Decimal]:
        """The market at the decision, the move until the fill, and the slippage, each for `size` at the average of a leg."""
        if self._trade is None or not size:
            return ZERO, ZERO, ZERO
        fills: tuple[PricedFill, ...] = getattr(self._trade, leg)
        share = size / self.size
        return (
            share * sum((fill.size * fill.decided for fill in fills), ZERO),
            share * sum((fill.size * (fill.market - fill.decided) for fill in fills), ZERO),
            share * sum((fill.size * (fill.price - fill.market) for fill in fills), ZERO),
        )

    def beyond(self, size: Decimal) -> Decimal:
        """The gross result of the size above `size`."""
        if self._trade is None or not self.size:
            return ZERO
        return self._trade.gross_usd * (self.size - size) / self.size

    def causes(self, leg: str) -> frozenset[str]:
        return frozenset() if self._trade is None else frozenset(fill.cause for fill in getattr(self._trade, leg))


def _notional(fills: Iterable[PricedFill]) -> Decimal:
    return sum((fill.size * fill.price for fill in fills), ZERO)


def _key(trade: AccountTrade) -> tuple[str, int, str]:
    return trade.symbol, trade.side, trade.entries[0].cause


def _overlaps(first: AccountTrade, second: AccountTrade) -> bool:
    if (first.symbol, first.side) != (second.symbol, second.side):
        return False
    starts = first.closed_at is None or second.opened_at <= first.closed_at
    return starts and (second.closed_at is None or first.opened_at <= second.closed_at)


def _take(trades: list[AccountTrade], fits: Callable[[AccountTrade], bool]) -> AccountTrade | None:
    for index, trade in enumerate(trades):
        if fits(trade):
            return trades.pop(index)
    return None


def _opened(pair: TradePair) -> tuple[Instant, str]:
    trade = pair[0] or pair[1]
    return (0, "") if trade is None else (trade.opened_at, trade.symbol)
