"""`act`: send what the guard has allowed, and nothing else.

`apply_answer` turns a judgement and the broker's answer into the world, the verdict and the receipts after it. Every
execution passes through it: those of `act`, and those of orders that a venue judges again between ticks. A refusal by
the broker is recorded as the venue's last rule.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from pitboss.core.errors import InvariantError
from pitboss.core.instant import HOUR_MS, Instant
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.core.verdict import Verdict
from pitboss.engine.guard import Judgement


@noun
class Placed:
    """The broker's answer: the world after it and its receipts, or the reason for a refusal with the code of its rule.

    Without a code a refusal is the venue's own.
    """

    world: Any
    receipts: tuple[Receipt, ...] = ()
    order_id: str | None = None
    refusal: str = ""
    code: str = ""


class Broker(Protocol):
    """The port through which orders are sent. A refusal is a return value, not an exception."""

    async def submit(self, world: Any, request: Any, at: Instant) -> Placed: ...

    async def cancel(self, world: Any, order_id: str, at: Instant) -> Placed:
        """Refuse: the default of venues whose orders cannot be cancelled."""
        del order_id, at
        return Placed(world, refusal="orders of this venue cannot be cancelled")


@noun
class WorldBroker(Broker):
    """A paper broker over a pure world. `place` takes an order and gives the world after it and its receipts."""

    place: Callable[[Any, Any, Instant], tuple[Any, tuple[Receipt, ...]]]

    async def submit(self, world: Any, request: Any, at: Instant) -> Placed:
        """Place an order at once; its id is that of the first receipt."""
        after, receipts = self.place(world, request, at)
        return Placed(after, receipts, receipts[0].order_id)


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
    world, verdict, receipts = apply_answer(state.world, judgement, placed)
    opens = state.accepted_opens
    if judgement.opens and verdict.outcome != "refused":
        opens = (*opens[bisect_right(opens, at - HOUR_MS) :], at)
    seen = {**state.seen, judgement.key: verdict}
    return state.after(world=world, seen=seen, accepted_opens=opens), verdict, receipts


def apply_answer(world: Any, judgement: Judgement, placed: Placed | None) -> tuple[Any, Verdict, tuple[Receipt, ...]]:
    """The world, the verdict and the receipts after the broker's answer; `placed` is None where nothing was sent.

    A refusal leaves the world as it was. An answer to something that the guard did not allow is an `InvariantError`.
    """
    verdict = judgement.verdict
    if placed is None:
        return world, verdict, ()
    if judgement.order is None and judgement.cancel_id is None:
        raise InvariantError(f"something was sent that the guard did not allow: {verdict.code} {verdict.detail}")
    if placed.refusal:
        code = placed.code or judgement.venue_code
        return world, replace(verdict, outcome="refused", code=code, detail=placed.refusal), ()
    allowed = Verdict(verdict.outcome, verdict.code, verdict.detail, verdict.margins, placed.order_id)
    return placed.world, allowed, placed.receipts
