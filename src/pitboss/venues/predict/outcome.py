"""Builds the input of the predict metrics from records: every call and its result.

A call is a decision that names a market, a side and a strike: a `mint` or a `redeem`, allowed or refused. The ledger
follows each call to its fill, its late refusal, and the settlement of its market. It extends the ledger shared with the
perp venue (`sim.outcome.Ledger`) and computes no metric; `metrics` does.

Live values and values read back from storage are parsed the same way, so both give equal metrics.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Any, ClassVar, Literal

from pitboss.core import codec
from pitboss.core.curve import columns
from pitboss.core.instant import Instant
from pitboss.core.money import ONE, ZERO, text
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import Record, RecordKind
from pitboss.core.verdict import Margin
from pitboss.sim.metrics import Outcome
from pitboss.sim.outcome import Ledger, read_into
from pitboss.venues.predict.intents import read
from pitboss.venues.predict.state import ACCOUNT

DUPLICATE = "B14_DUPLICATE"
NO_MARKET = "B2_MARKET"
"""The rule that refuses decisions without an open market; such a call is not a forecast."""

ASK_MARGIN, FAIR_MARGIN = "B6_ASK_BOUNDS", "B5_NOT_QUOTED"
"""Rules whose margins hold the ask and the fair price at which a decision was judged."""


@noun
class Traded:
    """The executed trade of a call. `amount` is the cost of a mint or the proceeds of a redeem."""

    at: Instant
    quantity: Decimal
    price: Decimal
    amount: Decimal


@noun
class MarketCall:
    """One decision about one contract, in plain units.

    `ask` is the price of the fill, otherwise the price at which the decision was judged (for a redeem, the bid). `fair`
    is the market's own probability at that moment. `won` is None until the market settles, and stays None for a call
    made after settlement.
    """

    at: Instant
    action: Literal["mint", "redeem"]
    market_id: str
    side: str
    strike: Decimal
    verdict: Literal["allowed", "reduced", "refused"]
    code: str = ""
    confidence: Decimal | None = None
    spend: Decimal | None = None
    ask: Decimal | None = None
    fair: Decimal | None = None
    order_id: str = ""
    duplicate: bool = False
    late: bool = False
    """Accepted first, then refused when its price arrived."""
    traded: Traded | None = None
    won: bool | None = None

    @property
    def forecast(self) -> bool:
        """Whether the call is a statement about an open market; duplicates and calls without an open market are not."""
        return self.action == "mint" and not self.duplicate and self.code != NO_MARKET

    @property
    def minted(self) -> bool:
        """Whether contracts were bought."""
        return self.action == "mint" and self.traded is not None

    @property
    def other_ask(self) -> Decimal | None:
        """Return the ask of the opposite side at the same moment; both sides have the same spread."""
        if self.ask is None or self.fair is None or self.action != "mint" or not ZERO < self.fair <= self.ask < ONE:
            return None
        return ONE - max(ZERO, self.fair + self.fair - self.ask)


@dataclass(frozen=True, slots=True, eq=False)
class PredictOutcome(Outcome):
    """The outcome of a run, with its calls."""

    calls: tuple[MarketCall, ...] = ()
    account_id: str = ACCOUNT


@dataclass(slots=True)
class PredictLedger(Ledger):
    """Accumulates the records of a predict run, in order."""

    calls: list[MarketCall] = field(default_factory=list[MarketCall])
    account_id: str = ACCOUNT
    duplicate_code: ClassVar[str] = DUPLICATE
    _orders: dict[str, int] = field(default_factory=dict[str, int], init=False, repr=False, compare=False)
    _awaiting: dict[str, list[int]] = field(default_factory=dict[str, list[int]], init=False, repr=False, compare=False)

    def take(
        self,
        kind: RecordKind,
        body: Mapping[str, Any],
        receipts: Iterable[Receipt],
        cost_usd: Decimal | None = ZERO,
        saved_usd: Decimal = ZERO,
    ) -> None:
        """Add one record, given its hashed part as sealed or as read back."""
        receipt_list = list(receipts)
        # Not `super()`: `slots=True` creates a new class, and zero-argument `super()` refers to the old one.
        Ledger.take(self, kind, body, receipt_list, cost_usd, saved_usd)
        # A market that settled before this tick did so before the tick's decisions were made.
        for receipt in receipt_list:
            if receipt.kind == "settled" and "account" not in receipt.facts:
                self._settle(receipt.symbol, Decimal(receipt.facts["price"]))
        if kind == "tick":
            for proposal, verdict in zip(body["proposals"], body["verdicts"], strict=True):
                if verdict["outcome"] != "noop":
                    self._call(body["tick_at"], proposal, verdict)
        for receipt in receipt_list:
            self._follow(receipt)

    def _call(self, at: Instant, proposal: Any, verdict: Mapping[str, Any]) -> None:
        # Live proposals are canonical bytes in a wrapper: parse them as if read from storage.
        decision, _ = read(proposal if isinstance(proposal, dict) else codec.plain(proposal))
        if decision is None or decision.side is None or decision.strike is None or decision.action == "hold":
            return
        duplicate, order_id = bool(verdict["duplicate"]), verdict["order_id"] or ""
        call = MarketCall(
            at,
            decision.action,
            decision.market_id or _chosen_market(verdict["margins"]),
            decision.side,
            decision.strike,
            "refused" if duplicate else verdict["outcome"],
            DUPLICATE if duplicate else verdict["code"] or "",
            decision.confidence,
            decision.spend,
            _used(verdict["margins"], ASK_MARGIN),
            _used(verdict["margins"], FAIR_MARGIN),
            "" if duplicate else order_id,
            duplicate,
        )
        index = len(self.calls)
        self.calls.append(call)
        if call.order_id:
            self._orders[call.order_id] = index
        if call.market_id:
            self._awaiting.setdefault(call.market_id, []).append(index)

    def _follow(self, receipt: Receipt) -> None:
        """Update a call from a receipt of its order."""
        facts = receipt.facts
        index = self._orders.get(str(facts.get("order", receipt.order_id)))
        if index is None:
            return
        call = self.calls[index]
        if not call.market_id:  # the decision named no market; the order has the id of the only open one
            call = replace(call, market_id=receipt.symbol)
            self._awaiting.setdefault(receipt.symbol, []).append(index)
        if receipt.kind == "rejected":
            call = replace(call, verdict="refused", code=str(facts.get("code", "")), late=True)
        elif receipt.kind in ("accepted", "filled", "settled"):
            fair = facts.get("fair")
            call = replace(call, ask=Decimal(facts["price"]), fair=call.fair if fair is None else Decimal(fair))
            if receipt.kind != "accepted":
                amount = Decimal(facts["cost" if call.action == "mint" else "payout"])
                call = replace(
                    call, traded=Traded(receipt.at, Decimal(facts["quantity"]), Decimal(facts["price"]), amount)
                )
        self.calls[index] = call

    def _settle(self, market_id: str, price: Decimal) -> None:
        for index in self._awaiting.pop(market_id, ()):
            call = self.calls[index]
            self.calls[index] = replace(call, won=(price > call.strike) == (call.side == "YES"))

    def end_at(self, from_at: Instant) -> Instant:
        """Return the instant of the last equity point, or `from_at` without one."""
        at, _ = columns(self.equity)
        return max(from_at, int(at[-1])) if len(at) else from_at

    def outcome(self, from_at: Instant, to_at: Instant, interval_ms: int, initial_usd: Decimal) -> PredictOutcome:
        """Return the input of the metrics."""
        common = Ledger.outcome(self, from_at, to_at, interval_ms, initial_usd)
        shared = {column.name: getattr(common, column.name) for column in fields(common)}
        # The first tick's price gives a point at its own instant with the initial equity, which is not a return: drop
        # it.
        at, usd = columns(self.equity)
        shared["equity_at"], shared["equity_usd"] = at[at > from_at], usd[at > from_at]
        return PredictOutcome(**shared, calls=tuple(self.calls), account_id=self.account_id)


def read_predict_ledger(records: Iterable[Record], account_id: str = ACCOUNT) -> PredictLedger:
    """Build the ledger from stored records in one pass."""
    ledger = PredictLedger(account_id=account_id)
    read_into(ledger, records)
    return ledger


def predict_fills(receipts: Iterable[Receipt]) -> Iterator[dict[str, Any]]:
    """Yield mints and redeems in the public export format; the proceeds of a redeem are a negative cost."""
    for receipt in receipts:
        if receipt.kind == "filled":
            facts = receipt.facts
            mint = facts["action"] == "mint"
            yield {
                "at": receipt.at,
                "market_id": receipt.symbol,
                "action": facts["action"],
                "side": facts["side"],
                "strike": facts.get("strike", facts.get("lower")),
                "quantity": facts["quantity"],
                "price": facts["price"],
                "cost": facts["cost"] if mint else text(-Decimal(facts["payout"])),
            }


def _chosen_market(margins: Iterable[Any]) -> str:
    """Return the market that a rule chose for a decision without one; empty if the margins do not tell it.

    The margins of an allowed decision are stored without it; there the receipts of its order name the market.
    """
    for margin in margins:
        if isinstance(margin, Margin):
            if margin.code == NO_MARKET:
                return str(margin.used)
        elif isinstance(margin, Mapping) and margin["code"] == NO_MARKET:
            return str(margin["used"])
    return ""


def _used(margins: Iterable[Any], code: str) -> Decimal | None:
    """Return the `used` value of one rule's margin, from a live `Margin` or a stored mapping; None if it was not kept."""
    for margin in margins:
        if isinstance(margin, Margin):
            if margin.code == code:
                return Decimal(margin.used)
        elif isinstance(margin, Mapping) and margin["code"] == code:
            return Decimal(margin["used"])
    return None
