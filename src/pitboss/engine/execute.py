"""`act`: send what the guard has allowed, and nothing else.

A refusal by the broker is recorded as the venue's last rule.
"""

from dataclasses import replace
from typing import Any, Protocol

from pitboss.core.instant import HOUR_MS, Instant
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.core.verdict import Verdict
from pitboss.engine.guard import Judgement


@noun
class Placed:
    """The broker's answer: the world after it and its receipts, or the reason for a refusal."""

    world: Any
    receipts: tuple[Receipt, ...] = ()
    order_id: str | None = None
    refusal: str = ""


class Broker(Protocol):
    """The port through which orders are sent. A refusal is a return value, not an exception."""

    async def submit(self, world: Any, request: Any, at: Instant) -> Placed: ...

    async def cancel(self, world: Any, order_id: str, at: Instant) -> Placed: ...


async def act(
    state: State, judgement: Judgement, broker: Broker, at: Instant
) -> tuple[State, Verdict, tuple[Receipt, ...]]:
    """Execute one judgement. If it is refused, repeated or empty, only the verdicts given so far change."""
    if judgement.verdict.duplicate:
        return state, judgement.verdict, ()
    placed: Placed | None = None
    if judgement.order is not None:
        placed = await broker.submit(state.world, judgement.order, at)
    elif judgement.cancel_id is not None:
        placed = await broker.cancel(state.world, judgement.cancel_id, at)
    verdict = outcome(judgement, placed)
    seen = {**state.seen, judgement.key: verdict}
    if placed is None or placed.refusal:
        return state.after(seen=seen), verdict, ()
    opens = state.accepted_opens
    if judgement.opens:
        opens = (*(accepted_at for accepted_at in opens if accepted_at > at - HOUR_MS), at)
    return state.after(world=placed.world, seen=seen, accepted_opens=opens), verdict, placed.receipts


def outcome(judgement: Judgement, placed: Placed | None) -> Verdict:
    """The verdict after the broker's answer; `placed` is None where nothing was sent."""
    verdict = judgement.verdict
    if placed is None:
        return verdict
    if placed.refusal:
        return replace(verdict, outcome="refused", code=judgement.venue_code, detail=placed.refusal)
    return Verdict(verdict.outcome, verdict.code, verdict.detail, verdict.margins, placed.order_id)
