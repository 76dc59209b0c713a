"""`tick()`: observe → decide → guard → act → record. Simulation, paper and live trading call this same function.

It knows no mode and no venue. A backtest and a live account, or two venues, differ only in the ports that are passed
in; each venue derives its own from `tick.ports.Ports`. The fields of a record are defined in `tick/record.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pitboss.agent.reflection import Reflection, Reflector
from pitboss.core.curve import Curve
from pitboss.core.instant import Instant
from pitboss.core.intent import Decision
from pitboss.core.money import ZERO
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import ZERO_COST_EXTRA, Record, seal
from pitboss.core.state import LastDecision, State
from pitboss.core.verdict import Verdict
from pitboss.engine.execute import act
from pitboss.tick.ports import Ports
from pitboss.tick.record import reflection_covered, reflection_extra, tick_covered, tick_extra, with_reflection_cost


@noun
class WorldEvents:
    """Receipts and equity points since the previous tick; the state's world already contains their effects."""

    receipts: Sequence[Receipt] = ()
    equity: Curve = ()


@noun
class TickResult:
    """The result of a tick: the state after it, its record, and the decision.

    `covered` and `receipts` are the values before serialisation.
    """

    state: State
    record: Record
    decision: Decision
    covered: Mapping[str, Any]
    receipts: Sequence[Receipt]


async def tick(state: State, at: Instant, events: WorldEvents, ports: Ports) -> TickResult:
    """Execute one tick on a world that has been advanced to `at`."""
    world_before, before = state.world, ports.summary(state.world)
    state, observation = recollect(state, at, events.receipts, ports)
    flag = ports.skip_flag(state, observation)
    calls_decider, reflection = not flag, None
    if calls_decider:
        if ports.reflector is not None:
            state, observation, reflection = await reflect(state, observation, ports.reflector)
        decision = await ports.decider.decide(
            observation, lambda intent: ports.guard(observation, state, intent, at).verdict
        )
        state = ports.with_shown(state, observation, decision)
    else:
        decision = Decision(flags=(flag,))
    if state.seen:
        state = state.after(seen={})
    verdicts: list[Verdict] = []
    contents: list[bytes] = []
    receipts: list[Receipt] = list(events.receipts)
    if ports.reread is not None and decision.intents:
        world, meanwhile = await ports.reread(state.world)
        state = state.after(world=world)
        receipts.extend(meanwhile)
    for intent in decision.intents:
        judgement = ports.guard(observation, state, intent, at)
        state, verdict, new_receipts = await act(state, judgement, ports.broker, at)
        if judgement.broken:
            world, halt_receipts = ports.halt(state.world, at)
            state, new_receipts = state.after(world=world), (*new_receipts, *halt_receipts)
        state = ports.with_verdict(state, intent, verdict)
        verdicts.append(verdict)
        contents.append(judgement.content)
        receipts.extend(new_receipts)
    memory = state.memory
    if verdicts:
        memory = ports.remember(state, observation, receipts[len(events.receipts) :], verdicts)
    prompt = decision.prompt
    if prompt is None and calls_decider and ports.build_prompts:
        full_prompt = ports.context.prompt(observation)
        prompt = (full_prompt.system, full_prompt.user)
    after = ports.summary_after(state.world, world_before, before)
    covered = tick_covered(decision, prompt, contents, verdicts, receipts, events.equity, before, after)
    covered["tick_at"] = at  # sealing adds the same field; added here for readers of `covered`
    if reflection is not None:
        covered["reflection"] = reflection_covered(reflection)
        decision = with_reflection_cost(decision, reflection)
    free = prompt is None and not decision.steps and decision.cost_usd == ZERO
    extra = ZERO_COST_EXTRA if free else tick_extra(decision, prompt if ports.keep_prompts else None)
    if reflection is not None and isinstance(extra, dict):
        extra["reflection"] = reflection_extra(reflection, ports.keep_prompts)
    record = seal(state.seq, "tick", at, state.prev_digest, covered, extra)
    failed = "model_error" in decision.flags
    asked_close, news_seen = state.asked_close, state.news_seen
    if calls_decider:
        asked_close, news_seen = ports.wake_reference(state, observation)
    state = state.after(
        seq=state.seq + 1,
        prev_digest=record.digest,
        tick_at=at,
        last=_last(at, decision, contents, verdicts),
        memory=memory,
        asked_close=asked_close,
        news_seen=news_seen,
        model_errors=state.model_errors + 1 if failed else 0,
    )
    return TickResult(state, record, decision, covered, receipts)


def foresee(state: State, at: Instant, receipts: Sequence[Receipt], ports: Ports) -> tuple[State, Any | None]:
    """The observation of a tick, and the state after it if the decision is a hold; None if the decider is not called.

    No record is made, so the position in the chain does not change; no prompt contains it.
    """
    state, observation = recollect(state, at, receipts, ports)
    flag = ports.skip_flag(state, observation)
    asked_close, news_seen = (state.asked_close, state.news_seen) if flag else ports.wake_reference(state, observation)
    after = state.after(
        tick_at=at,
        seen={},
        last=LastDecision(at, "noop", flag),
        asked_close=asked_close,
        news_seen=news_seen,
        model_errors=0,
    )
    return after, None if flag else observation


def recollect(state: State, at: Instant, receipts: Sequence[Receipt], ports: Ports) -> tuple[State, Any]:
    """Add what happened since the previous tick to the memory, and build the observation."""
    observation = ports.observe(state, at)
    memory = ports.remember(state, observation, receipts, ()) if receipts else state.memory
    if memory is state.memory:
        return state, observation
    return state.after(memory=memory), replace(observation, memory=memory)


async def reflect(state: State, observation: Any, reflector: Reflector) -> tuple[State, Any, Reflection | None]:
    """Update the lessons if a reflection is due."""
    if not reflector.due(state.memory):
        return state, observation, None
    reflection = await reflector.reflect(observation)
    memory = reflector.learn(state.memory, reflection)
    return state.after(memory=memory), replace(observation, memory=memory), reflection


def _last(at: Instant, decision: Decision, contents: Sequence[bytes], verdicts: Sequence[Verdict]) -> LastDecision:
    """What the next prompt says about this tick; of a no-op only its flag, so that holds can be speculated."""
    flag = decision.flags[0] if decision.flags else ""
    if not verdicts or verdicts[0].outcome == "noop":
        return LastDecision(at, "noop", flag)
    proposal, verdict = contents[0].decode(), verdicts[0]
    outcome = "accepted" if verdict.outcome in ("allowed", "reduced") else "refused"
    return LastDecision(at, outcome, flag, proposal, verdict.code or "", verdict.detail)
