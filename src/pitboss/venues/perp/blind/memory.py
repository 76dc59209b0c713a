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
from pitboss.core.verdict import margin_fields
from pitboss.venues.perp.blind.translation import Translator, symbol_of
from pitboss.venues.perp.trade_memory import ClosedTrade, LessonNotes, PerpMemory, RoundTrip

SLOTS = tuple(field.name for field in fields(LessonNotes))
PRICE_FACTS = frozenset({"price", "limit", "stop", "take_profit"})
SIZE_FACTS = frozenset({"size", "left"})
"""The facts of a receipt that are prices and sizes; every other fact is money, a rate, a count or text."""


def last_of(translator: Translator, last: LastDecision) -> LastDecision:
    """Return the last decision in the terms in which the model made it."""
    proposal, detail = _decision_texts(translator, last.proposal, last.detail, last.code)
    return replace(last, tick_at=last.tick_at + translator.shift_ms, proposal=proposal, detail=detail)


def _decision_texts(translator: Translator, proposal: str, detail: str, code: str) -> tuple[str, str]:
    """Return a recorded proposal and its verdict's detail, both anonymised."""
    if not proposal:
        return proposal, translator.stored_detail(detail, code, "")
    true = codec.loads_exact(proposal)
    anonymised = proposal_of(translator, true)
    detail = translator.stored_detail(detail, code, symbol_of(true))
    return codec.dumps(codec.number_fragments(anonymised)).decode(), detail


def proposal_of(translator: Translator, true: Any) -> Any:
    """Return a proposal in the terms in which the model made it; names of coins in its texts are replaced."""
    proposal = translator.proposal(true)
    if not isinstance(proposal, dict):
        return translator.own(proposal) if isinstance(proposal, str) else proposal
    own = translator.neutraliser.own
    neutral = {key: own(value) if isinstance(value, str) else value for key, value in proposal.items()}
    reason = proposal.get("reason")
    return {**neutral, "reason": translator.own(reason)} if isinstance(reason, str) else neutral


@exact
def memory_of(translator: Translator, memory: PerpMemory) -> PerpMemory:
    """Return the agent's memory, anonymised."""
    shift, own = translator.shift_ms, translator.own
    notes = memory.notes and LessonNotes(**{name: own(getattr(memory.notes, name)) for name in SLOTS})
    return replace(
        memory,
        trades=tuple(trade_of(translator, trade) for trade in memory.trades),
        notes=notes,
        refusals=tuple(replace(refusal, at=refusal.at + shift) for refusal in memory.refusals),
        going=tuple(trip_of(translator, trip) for trip in memory.going),
        reasons=tuple(replace(reason, thesis=own(reason.thesis)) for reason in memory.reasons),
        day=memory.day + 7 * translator.weeks,
    )


def trade_of(translator: Translator, trade: ClosedTrade) -> ClosedTrade:
    """Return a closed trade, anonymised; results, excursions and regime are unchanged."""
    alias = translator.by_symbol[trade.symbol]
    return replace(
        trade,
        symbol=alias.name,
        opened_at=trade.opened_at + translator.shift_ms,
        closed_at=trade.closed_at + translator.shift_ms,
        entry_price=trade.entry_price * alias.price,
        exit_price=trade.exit_price * alias.price,
        thesis=translator.own(trade.thesis),
    )


def trip_of(translator: Translator, trip: RoundTrip) -> RoundTrip:
    """Return an open round trip, anonymised."""
    alias = translator.by_symbol[trip.symbol]
    sizes = {name: getattr(trip, name) * alias.size for name in ("left", "max_size", "grown", "shrunk")}
    return replace(
        trip,
        symbol=alias.name,
        opened_at=trip.opened_at + translator.shift_ms,
        thesis=translator.own(trip.thesis),
        **sizes,
    )


@exact
def receipt_of(translator: Translator, receipt: Receipt) -> Receipt:
    """Return a receipt, anonymised."""
    alias = translator.by_symbol.get(receipt.symbol)
    at = receipt.at + translator.shift_ms
    if alias is None:
        return replace(receipt, at=at)
    facts = {
        name: _scaled(value, alias.price if name in PRICE_FACTS else alias.size)
        if name in PRICE_FACTS or name in SIZE_FACTS
        else value
        for name, value in receipt.facts.items()
    }
    return replace(receipt, at=at, symbol=alias.name, facts=facts)


def _scaled(value: Any, factor: Decimal) -> Any:
    """Scale an amount; text stays text, because stored records hold amounts as text."""
    return text(Decimal(value) * factor) if isinstance(value, str) else value * factor


@noun
class AnonymisedPast:
    """`core.past.Past` in anonymised terms, for the tools of the run's own agent."""

    inner: Past
    translator: Translator

    def decisions(self, before: Instant, count: int | None = None) -> Sequence[PastDecision]:
        """Return the newest `count` decisions made before `before`, newest first; all there are without a count."""
        return [self._decision(past) for past in self.inner.decisions(before - self.translator.shift_ms, count)]

    def _decision(self, past: PastDecision) -> PastDecision:
        proposal, detail = _decision_texts(self.translator, past.proposal, past.detail, past.code)
        own_text = self.translator.own(past.text)
        return replace(past, at=past.at + self.translator.shift_ms, proposal=proposal, detail=detail, text=own_text)

    def receipts(self, before: Instant, count: int | None = None) -> Sequence[Receipt]:
        """Return the newest `count` receipts from before `before`, newest first; all without a count."""
        receipts = self.inner.receipts(before - self.translator.shift_ms, count)
        return [receipt_of(self.translator, receipt) for receipt in receipts]

    def snapshot(self, at: Instant, before: Instant) -> dict[str, Any] | None:
        """Return the recorded proposals, verdicts and receipts of a tick.

        Positions, orders and the prompt are left out.
        """
        shift = self.translator.shift_ms
        body = self.inner.snapshot(at - shift, before - shift)
        if body is None:
            return None
        verdicts = [self._verdict(*pair) for pair in zip(body["proposals"], body["verdicts"], strict=True)]
        return {
            **{
                name: body[name]
                for name in ("seq", "steps", "text", "flags", "finish_reason", "extra", "prompt_sha256", "digest")
            },
            "tick_at": at,
            "proposals": [proposal_of(self.translator, proposal) for proposal in body["proposals"]],
            "verdicts": verdicts,
            "receipts": [codec.plain(receipt_of(self.translator, Receipt(**row))) for row in body["receipts"]],
            "before": {**body["before"], "positions": {}, "orders": []},
            "after": {**body["after"], "positions": {}, "orders": []},
        }

    def _verdict(self, proposal: Any, verdict: Mapping[str, Any]) -> dict[str, Any]:
        symbol = symbol_of(proposal)
        alias = self.translator.by_symbol.get(symbol)
        margins = margin_fields(verdict["margins"])
        if alias is not None:
            margins = [_margin(margin, alias) for margin in margins]
        detail = self.translator.stored_detail(verdict["detail"], verdict["code"] or "", symbol)
        return {**verdict, "detail": detail, "margins": margins}

    def commands(self, before: Instant, count: int) -> Sequence[str]:
        """Return the operator's commands to the run, neutralised."""
        commands = self.inner.commands(before - self.translator.shift_ms, count)
        return [self.translator.neutraliser.news(command) for command in commands]


@exact
def _margin(margin: Mapping[str, Any], alias: Alias) -> dict[str, Any]:
    if margin.get("unit") != "price":
        return dict(margin)
    amounts = {
        name: _scaled(margin[name], alias.price) for name in ("limit", "used", "left") if margin.get(name) is not None
    }
    return {**margin, **amounts}
