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
from pitboss.venues.predict.course import BudgetPlan, PredictCourse, first_state
from pitboss.venues.predict.desk import Desk, submit
from pitboss.venues.predict.heuristics import heuristics
from pitboss.venues.predict.ladder_policy import LEAST
from pitboss.venues.predict.outcome import PredictLedger

Intent = Callable[[Any], dict[str, Any] | None]
"""Returns the decision a heuristic proposes for an observation, if any."""


@exact
def play(script: PredictCourse, intent: Intent, least_spend: int) -> PredictLedger:
    """Replay a heuristic that mints whenever it can, and return its ledger."""
    ports = replace(script.ports, build_prompts=False, keep_prompts=False)
    ledger = PredictLedger(account_id=ports.account_id)
    ticks, places = script.tick_at.tolist(), script.tick_offsets()
    plan = BudgetPlan(ticks, ports, least_spend)
    desk: Desk = first_state(script).world
    place = index = 0
    while index < len(ticks):
        leg = script.advance(desk, place, places[index])
        desk, place, receipts, equity = leg.world, leg.index, list(leg.receipts), [*leg.equity]
        over = script.over(desk)
        acts = len(ticks) if over else plan.next_tick(index, desk)
        if acts == index:
            at = ticks[index]
            desk, told = _act(replace(script, ports=ports), desk, intent, at)
            body = {"tick_at": at, "flags": (), "equity": equity, **told}
            ledger.take("tick", body, [*receipts, *told["receipts"]])
            index += 1
            continue
        goal = places[acts] if acts < len(ticks) else places[-1]
        leg = script.advance(desk, place, goal, pause_before_change=True)
        desk, place = leg.world, leg.index
        after = min(acts, max(index + 1, bisect_right(places, leg.index)))
        held = after - index
        flags = {"ruined": held} if over else {}
        _span(ledger, held, flags, [*receipts, *leg.receipts], [*equity, *leg.equity])
        index = after
    rest = script.finish(desk, place)
    ledger.take("close", {"equity": rest.equity, "flags": []}, rest.receipts)
    return ledger


def _span(ledger: PredictLedger, ticks: int, flags: dict[str, int], receipts: Sequence[Receipt], equity: Curve) -> None:
    ledger.take("span", {"ticks": ticks, "flags": flags, "equity": equity}, receipts)


def _act(script: PredictCourse, desk: Desk, intent: Intent, at: int) -> tuple[Desk, dict[str, Any]]:
    """Execute one tick at which a decision may be proposed, like `tick()` but without a record."""
    ports, state = script.ports, State(desk)
    observation = ports.observe(state, at)
    proposed = intent(observation)
    if proposed is None:
        return desk, {"proposals": [], "verdicts": [], "receipts": ()}
    found = ports.guard(observation, state, proposed, at)
    verdict, receipts = found.verdict, ()
    if found.order is not None:
        answer = submit(desk, found.order, at, ports.account_id)
        if answer.refusal:
            verdict = replace(verdict, outcome="refused", code=found.venue_code, detail=answer.refusal)
        else:
            desk, receipts = answer.desk, answer.receipts
            verdict = replace(verdict, order_id=answer.order_id)
    told = {
        "outcome": verdict.outcome,
        "code": verdict.code,
        "margins": verdict.margins,
        "order_id": verdict.order_id,
        "duplicate": verdict.duplicate,
    }
    return desk, {"proposals": [proposed], "verdicts": [told], "receipts": receipts}


def played(course: PredictCourse, known: Mapping[str, PredictLedger]) -> dict[str, PredictLedger]:
    """Replay every heuristic over the same course, with the same caps and equity. Ledgers in `known` are reused."""
    return {name: known.get(name) or play(course, policy.intent, LEAST) for name, policy in heuristics().items()}
