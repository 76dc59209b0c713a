"""The memory of a blind run as the model sees it: last decision, closed trades, notes, and the run's own past.

The model gets its own texts back as it wrote them, except that names of coins are replaced, so no guess is confirmed or
denied. Market and account are in `venues.perp.blind.observation`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from decimal import Decimal
from typing import Any

from pitboss.agent.blind.mapping import Alias
from pitboss.core import codec
from pitboss.core.instant import Instant
from pitboss.core.money import exact, text
from pitboss.core.noun import noun
from pitboss.core.past import Past, PastDecision
from pitboss.core.receipt import Receipt
from pitboss.core.state import LastDecision
from pitboss.core.verdict import unfold
from pitboss.venues.perp.blind.translation import Cover
from pitboss.venues.perp.trade_memory import ClosedTrade, LessonNotes, PerpMemory, RoundTrip

PRICE_FACTS = frozenset({"price", "limit", "stop", "take_profit"})
SLOTS = tuple(field.name for field in fields(LessonNotes))
SIZE_FACTS = frozenset({"size", "left"})
"""The facts of a receipt that are prices and sizes; every other fact is money, a rate, a count or a word."""


def last_of(disguise: Cover, last: LastDecision) -> LastDecision:
    """Return the last decision in the terms in which the model made it."""
    proposal, detail = _told(disguise, last.proposal, last.detail, last.code)
    return replace(last, tick_at=last.tick_at + disguise.shift_ms, proposal=proposal, detail=detail)


def _told(disguise: Cover, proposal: str, detail: str, code: str) -> tuple[str, str]:
    """Return a recorded proposal and its verdict's detail, both anonymised."""
    if not proposal:
        return proposal, disguise.detail(detail, code, "")
    true = codec.loads_exact(proposal)
    symbol = true.get("symbol") if isinstance(true, dict) else None
    seen = proposal_of(disguise, true)
    return codec.dumps(codec.number_fragments(seen)).decode(), disguise.detail(detail, code, str(symbol))


def proposal_of(disguise: Cover, true: Any) -> Any:
    """Return a proposal in the terms in which the model made it; names of coins in its texts are replaced."""
    seen = disguise.proposal(true)
    if not isinstance(seen, dict):
        return disguise.own(seen) if isinstance(seen, str) else seen
    told = {key: disguise.words.own(value) if isinstance(value, str) else value for key, value in seen.items()}
    reason = seen.get("reason")
    return {**told, "reason": disguise.own(reason)} if isinstance(reason, str) else told


@exact
def memory_of(disguise: Cover, memory: PerpMemory) -> PerpMemory:
    """Return the agent's memory, anonymised."""
    shift, own = disguise.shift_ms, disguise.own
    notes = memory.notes and LessonNotes(**{name: own(getattr(memory.notes, name)) for name in SLOTS})
    return replace(
        memory,
        trades=tuple(trade_of(disguise, trade) for trade in memory.trades),
        notes=notes,
        refusals=tuple(replace(refusal, at=refusal.at + shift) for refusal in memory.refusals),
        going=tuple(trip_of(disguise, trip) for trip in memory.going),
        reasons=tuple(replace(reason, thesis=own(reason.thesis)) for reason in memory.reasons),
        day=memory.day + 7 * disguise.weeks,
    )


def trade_of(disguise: Cover, trade: ClosedTrade) -> ClosedTrade:
    """Return a closed trade, anonymised; results, excursions and regime are unchanged."""
    alias = disguise.by_symbol[trade.symbol]
    return replace(
        trade,
        symbol=alias.name,
        opened_at=trade.opened_at + disguise.shift_ms,
        closed_at=trade.closed_at + disguise.shift_ms,
        entry_price=trade.entry_price * alias.price,
        exit_price=trade.exit_price * alias.price,
        thesis=disguise.own(trade.thesis),
    )


def trip_of(disguise: Cover, trip: RoundTrip) -> RoundTrip:
    """Return an open round trip, anonymised."""
    alias = disguise.by_symbol[trip.symbol]
    sizes = {name: getattr(trip, name) * alias.size for name in ("left", "max_size", "grown", "shrunk")}
    return replace(
        trip,
        symbol=alias.name,
        opened_at=trip.opened_at + disguise.shift_ms,
        thesis=disguise.own(trip.thesis),
        **sizes,
    )


@exact
def receipt_of(disguise: Cover, receipt: Receipt) -> Receipt:
    """Return a receipt, anonymised."""
    alias = disguise.by_symbol.get(receipt.symbol)
    at = receipt.at + disguise.shift_ms
    if alias is None:
        return replace(receipt, at=at)
    facts = {
        name: _fact(value, alias.price if name in PRICE_FACTS else alias.size)
        if name in PRICE_FACTS or name in SIZE_FACTS
        else value
        for name, value in receipt.facts.items()
    }
    return replace(receipt, at=at, symbol=alias.name, facts=facts)


def _fact(value: Any, factor: Decimal) -> Any:
    """Scale an amount; text stays text, because stored records hold amounts as text."""
    return text(Decimal(value) * factor) if isinstance(value, str) else value * factor


@noun
class DisguisedPast:
    """`core.past.Past` in anonymised terms, for the tools of the run's own agent."""

    true: Past
    disguise: Cover

    def decisions(self, before: Instant, count: int) -> Sequence[PastDecision]:
        """Return the newest `count` decisions made before `before`, newest first."""
        return [self._decided(one) for one in self.true.decisions(before - self.disguise.shift_ms, count)]

    def _decided(self, one: PastDecision) -> PastDecision:
        proposal, detail = _told(self.disguise, one.proposal, one.detail, one.code)
        said = self.disguise.own(one.text)
        return replace(one, at=one.at + self.disguise.shift_ms, proposal=proposal, detail=detail, text=said)

    def receipts(self, before: Instant, count: int) -> Sequence[Receipt]:
        """Return the newest `count` receipts from before `before`, newest first."""
        found = self.true.receipts(before - self.disguise.shift_ms, count)
        return [receipt_of(self.disguise, receipt) for receipt in found]

    def snapshot(self, at: Instant, before: Instant) -> dict[str, Any] | None:
        """Return the recorded proposals, verdicts and receipts of a tick.

        Positions, orders and the prompt are left out.
        """
        shift = self.disguise.shift_ms
        body = self.true.snapshot(at - shift, before - shift)
        if body is None:
            return None
        told = [self._verdict(*pair) for pair in zip(body["proposals"], body["verdicts"], strict=True)]
        return {
            **{
                name: body[name]
                for name in ("seq", "steps", "text", "flags", "finish_reason", "extra", "prompt_sha256", "digest")
            },
            "tick_at": at,
            "proposals": [proposal_of(self.disguise, proposal) for proposal in body["proposals"]],
            "verdicts": told,
            "receipts": [codec.plain(receipt_of(self.disguise, Receipt(**one))) for one in body["receipts"]],
            "before": {**body["before"], "positions": {}, "orders": []},
            "after": {**body["after"], "positions": {}, "orders": []},
        }

    def _verdict(self, proposal: Any, verdict: Mapping[str, Any]) -> dict[str, Any]:
        symbol = str(proposal.get("symbol")) if isinstance(proposal, dict) else ""
        alias = self.disguise.by_symbol.get(symbol)
        margins = unfold(verdict["margins"])
        if alias is not None:
            margins = [_margin(margin, alias) for margin in margins]
        detail = self.disguise.detail(verdict["detail"], verdict["code"] or "", symbol)
        return {**verdict, "detail": detail, "margins": margins}

    def commands(self, before: Instant, count: int) -> Sequence[str]:
        """Return the commands that people gave to the run, in neutral words."""
        found = self.true.commands(before - self.disguise.shift_ms, count)
        return [self.disguise.words.news(command) for command in found]


@exact
def _margin(margin: Mapping[str, Any], alias: Alias) -> dict[str, Any]:
    if margin.get("unit") != "price":
        return dict(margin)
    amounts = {
        name: _fact(margin[name], alias.price) for name in ("limit", "used", "left") if margin.get(name) is not None
    }
    return {**margin, **amounts}
