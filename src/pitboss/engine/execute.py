"""`act`: send what the guard has allowed, and only that. The broker's refusal becomes the venue's last rule (R13)."""

from dataclasses import replace
from typing import Any, Protocol

from pitboss.core.instant import HOUR_MS, Instant
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.core.verdict import Verdict
from pitboss.venues.perp.guard import Judgement


@noun
class Placed:
    """What the broker answered: the world after it, its receipts, or why it refused."""

    world: Any
    receipts: tuple[Receipt, ...] = ()
    order_id: str | None = None
    refusal: str = ""


class Broker(Protocol):
    """The port through which orders leave. A refusal is a value."""

    async def submit(self, world: Any, request: Any, at: Instant) -> Placed: ...

    async def cancel(self, world: Any, order_id: str, at: Instant) -> Placed: ...


async def act(
    state: State, judgement: Judgement, broker: Broker, at: Instant
) -> tuple[State, Verdict, tuple[Receipt, ...]]:
    """Carry out one judgement. A refused, repeated or empty one changes nothing but what has been seen."""
    verdict = judgement.verdict
    if verdict.duplicate:
        return state, verdict, ()
    placed: Placed | None = None
    if judgement.order is not None:
        placed = await broker.submit(state.world, judgement.order, at)
    elif judgement.cancel_id is not None:
        placed = await broker.cancel(state.world, judgement.cancel_id, at)
    receipts: tuple[Receipt, ...] = ()
    world, opens = state.world, state.accepted_opens
    if placed is not None and placed.refusal:
        verdict = replace(verdict, outcome="refused", code=judgement.venue_code, detail=placed.refusal)
    elif placed is not None:
        world, receipts = placed.world, placed.receipts
        verdict = Verdict(verdict.outcome, verdict.code, verdict.detail, verdict.margins, placed.order_id)
        if judgement.opens:
            opens = (*(accepted for accepted in opens if accepted > at - HOUR_MS), at)
    after = State(
        world=world,
        seq=state.seq,
        prev_digest=state.prev_digest,
        tick_at=state.tick_at,
        accepted_opens=opens,
        seen={**state.seen, judgement.key: verdict},
        last=state.last,
        memory=state.memory,
        asked_close=state.asked_close,
        news_seen=state.news_seen,
        model_errors=state.model_errors,
    )
    return after, verdict, receipts
