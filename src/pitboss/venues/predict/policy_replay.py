"""Replays a heuristic over a course and returns only its ledger: same rules and world as a run, but no records.

The baselines of every run are computed this way, at about half the cost of a full replay. A property test compares it
with the full replay.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pitboss.core.curve import Curve
from pitboss.core.money import exact
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.engine.execute import apply_answer
from pitboss.venues.predict.broker import placed_of
from pitboss.venues.predict.course import BudgetPlan, PredictCourse, first_state
from pitboss.venues.predict.desk import Desk, submit
from pitboss.venues.predict.heuristics import heuristics
from pitboss.venues.predict.ladder_policy import LEAST
from pitboss.venues.predict.outcome import PredictLedger
from pitboss.venues.predict.ports import PredictPorts

Intent = Callable[[Any], dict[str, Any] | None]
"""Returns the decision a heuristic proposes for an observation, if any."""


@exact
def play(course: PredictCourse, intent: Intent, least_spend: int) -> PredictLedger:
    """Replay a heuristic that mints whenever it can, and return its ledger."""
    ports = replace(course.ports, build_prompts=False, keep_prompts=False)
    ledger = PredictLedger(account_id=ports.account_id)
    ticks, update_counts = course.tick_at.tolist(), course.tick_offsets()
    plan = BudgetPlan(ticks, ports, least_spend)
    desk: Desk = first_state(course).world
    position = index = 0
    while index < len(ticks):
        leg = course.advance(desk, position, update_counts[index])
        desk, position, receipts, equity = leg.world, leg.index, list(leg.receipts), [*leg.equity]
        over = ports.is_over(desk)
        acts = len(ticks) if over else plan.next_tick(index, desk)
        if acts == index:
            at = ticks[index]
            desk, acted = _act(ports, desk, intent, at)
            body = {"tick_at": at, "flags": (), "equity": equity, **acted}
            ledger.take("tick", body, [*receipts, *acted["receipts"]])
            index += 1
            continue
        goal = update_counts[acts] if acts < len(ticks) else update_counts[-1]
        leg = course.advance(desk, position, goal, pause_before_change=True)
        desk, position = leg.world, leg.index
        after = min(acts, max(index + 1, bisect_right(update_counts, leg.index)))
        skipped = after - index
        flags = {"ruined": skipped} if over else {}
        _span(ledger, skipped, flags, [*receipts, *leg.receipts], [*equity, *leg.equity])
        index = after
    last = course.finish(desk, position)
    ledger.take("close", {"equity": last.equity, "flags": []}, last.receipts)
    return ledger


def _span(ledger: PredictLedger, ticks: int, flags: dict[str, int], receipts: Sequence[Receipt], equity: Curve) -> None:
    ledger.take("span", {"ticks": ticks, "flags": flags, "equity": equity}, receipts)


def _act(ports: PredictPorts, desk: Desk, intent: Intent, at: int) -> tuple[Desk, dict[str, Any]]:
    """Execute one tick at which a decision may be proposed, like `tick()` but without a record."""
    state = State(desk)
    observation = ports.observe(state, at)
    proposed = intent(observation)
    if proposed is None:
        return desk, {"proposals": [], "verdicts": [], "receipts": ()}
    judgement = ports.guard(observation, state, proposed, at)
    placed = None if judgement.order is None else placed_of(submit(desk, judgement.order, at, ports.account_id))
    desk, verdict, receipts = apply_answer(desk, judgement, placed)
    verdict_row = {
        "outcome": verdict.outcome,
        "code": verdict.code,
        "margins": verdict.margins,
        "order_id": verdict.order_id,
        "duplicate": verdict.duplicate,
    }
    return desk, {"proposals": [proposed], "verdicts": [verdict_row], "receipts": receipts}


def played(course: PredictCourse, ledgers: Mapping[str, PredictLedger]) -> dict[str, PredictLedger]:
    """Replay every heuristic over the same course, with the same caps and equity. Those in `ledgers` are reused."""
    return {name: ledgers.get(name) or play(course, policy.intent, LEAST) for name, policy in heuristics().items()}
