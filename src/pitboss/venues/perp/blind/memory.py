"""The memory of a blind run as the model sees it: closed trades and notes.

The model gets its own texts back as it wrote them, except that names of coins are replaced, so no guess is confirmed or
denied. Market and account are in `venues.perp.blind.observation`.
"""

from dataclasses import fields, replace

from pitboss.core.money import exact
from pitboss.venues.perp.blind.translation import PerpTranslator
from pitboss.venues.perp.trade_memory import ClosedTrade, LessonNotes, PerpMemory, RoundTrip

SLOTS = tuple(field.name for field in fields(LessonNotes))


@exact
def memory_of(translator: PerpTranslator, memory: PerpMemory) -> PerpMemory:
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


def trade_of(translator: PerpTranslator, trade: ClosedTrade) -> ClosedTrade:
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


def trip_of(translator: PerpTranslator, trip: RoundTrip) -> RoundTrip:
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
