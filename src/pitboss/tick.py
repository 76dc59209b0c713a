"""The one loop: observe → decide → guard → act → record. Simulation, paper and live call this same function.

There is no mode here. What differs between a backtest and a live account is the ports that are passed in.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pitboss.agent.context import Context
from pitboss.agent.decider import Decider
from pitboss.agent.memory import Recall, remember
from pitboss.agent.observation import Observation
from pitboss.agent.reflect import Reflection, Reflector, learn
from pitboss.agent.wake import awake, closes
from pitboss.core import codec
from pitboss.core.asof import View
from pitboss.core.curve import Curve
from pitboss.core.instant import Instant
from pitboss.core.intent import Decision, Step
from pitboss.core.money import ZERO
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import FREE, Record, prompt_sha256, seal
from pitboss.core.state import LastDecision, State
from pitboss.core.trace import SILENT, Tracer
from pitboss.core.verdict import Verdict, brief
from pitboss.engine.execute import Broker, act
from pitboss.engine.guard import guard
from pitboss.skill.schema import Skill
from pitboss.venues.perp.caps import Caps
from pitboss.venues.perp.portfolio import summary, summary_after
from pitboss.venues.perp.state import Terms, World
from pitboss.venues.perp.world import halt


@noun
class Ports:
    """Everything a tick needs that is not its state."""

    skill: Skill
    limits: Caps
    terms: Terms
    view: Callable[[Instant], View]
    decider: Decider
    broker: Broker
    context: Context
    started_at: Instant
    keep_prompts: bool = True
    build_prompts: bool = True
    wakes: bool = True
    tracer: Tracer = SILENT
    notes: Callable[[], tuple[str, ...]] = tuple
    """What the agent is told about its own means at this tick."""
    recall: Recall | None = None
    """How the agent remembers; None where nothing is remembered, as in runs that build no prompt."""
    reflector: Reflector | None = None
    """Who writes lessons from closed trades; None where no model is there to ask."""


@noun
class Happened:
    """What the world did since the previous tick: receipts and equity points, already part of the state's world."""

    receipts: Sequence[Receipt] = ()
    equity: Curve = ()


@noun
class Ticked:
    """One tick done: the state after it, its record, and the decision. `covered` and `receipts` are the live values."""

    state: State
    record: Record
    decision: Decision
    covered: Mapping[str, Any]
    receipts: Sequence[Receipt]


async def tick(state: State, at: Instant, happened: Happened, ports: Ports) -> Ticked:
    """One tick on a world that has been brought up to `at`."""
    found, before = state.world, summary(state.world)
    state, observation = recollect(state, at, happened.receipts, ports)
    limits = observation.limits
    asked, decision = False, _unasked(state, observation, ports)
    reflection: Reflection | None = None
    if decision is None:
        asked = True
        state, observation, reflection = await reflect(state, observation, ports)
        decision = await ports.decider.decide(
            observation, lambda intent: guard(limits, ports.terms, state, intent, at).verdict
        )
    if state.seen:
        state = replace(state, seen={})
    verdicts: list[Verdict] = []
    contents: list[bytes] = []
    receipts: list[Receipt] = list(happened.receipts)
    for intent in decision.intents:
        judgement = guard(limits, ports.terms, state, intent, at)
        state, verdict, answers = await act(state, judgement, ports.broker, at)
        if judgement.broken:
            world, noticed = halt(state.world, ports.terms, "invariant", at)
            state, answers = replace(state, world=world), (*answers, *noticed)
        verdicts.append(verdict)
        contents.append(judgement.content)
        receipts.extend(answers)
    if ports.recall is not None and verdicts:
        new, view = receipts[len(happened.receipts) :], observation.view
        memory = remember(state.memory, ports.recall, at, new, verdicts, state.world, view)
        state = state if memory is state.memory else replace(state, memory=memory)
    prompt = decision.prompt
    if prompt is None and asked and ports.build_prompts:
        built = ports.context.prompt(observation)
        prompt = (built.system, built.user)
    after = summary_after(state.world, found, before)
    covered = _covered(decision, prompt, contents, verdicts, receipts, happened.equity, before, after)
    if reflection is not None:
        covered["reflection"] = _reflected(reflection)
        decision = _with_its_cost(decision, reflection)
    free = prompt is None and not decision.steps and decision.cost_usd == ZERO
    extra = FREE if free else _beside(decision, prompt if ports.keep_prompts else None)
    if reflection is not None and isinstance(extra, dict):
        extra["reflection"] = _beside_reflection(reflection, ports.keep_prompts)
    record = seal(state.seq, "tick", at, state.prev_digest, covered, extra)
    failed = "model_error" in decision.flags
    seen = asked and ports.wakes and bool(ports.skill.schedule.wake_when)
    state = State(
        world=state.world,
        seq=state.seq + 1,
        prev_digest=record.digest,
        tick_at=at,
        accepted_opens=state.accepted_opens,
        seen=state.seen,
        last=_last(at, decision, contents, verdicts),
        memory=state.memory,
        asked_close=closes(observation) if seen else state.asked_close,
        news_seen=observation.view.news_count() if seen else state.news_seen,
        model_errors=state.model_errors + 1 if failed else 0,
    )
    return Ticked(state, record, decision, covered, receipts)


def recollect(state: State, at: Instant, receipts: Sequence[Receipt], ports: Ports) -> tuple[State, Observation]:
    """What has happened since the tick before becomes part of the memory, and what the agent may know now is seen."""
    observation = observe(state, at, ports)
    if ports.recall is None or not receipts:
        return state, observation
    memory = remember(state.memory, ports.recall, at, receipts, (), state.world, observation.view)
    return replace(state, memory=memory), replace(observation, memory=memory)


async def reflect(state: State, observation: Observation, ports: Ports) -> tuple[State, Observation, Reflection | None]:
    """New lessons, where they are due."""
    reflector = ports.reflector
    if reflector is None or ports.recall is None or not reflector.due(state.memory):
        return state, observation, None
    reflection = await reflector.reflect(observation)
    memory = learn(state.memory, reflection)
    return replace(state, memory=memory), replace(observation, memory=memory), reflection


def observe(state: State, at: Instant, ports: Ports) -> Observation:
    """What the agent may know now."""
    view = ports.view(at)
    return Observation(
        at,
        ports.started_at,
        ports.skill,
        view,
        state.world,
        ports.terms,
        ports.limits.without(view.unlisted(ports.limits.symbols)),
        state.accepted_opens,
        state.last,
        state.memory,
        ports.notes(),
    )


def ruined(world: World) -> bool:
    """Nothing left and nothing open: there is no point in asking any more."""
    return not world.positions and not world.orders and world.cash <= 0


def _unasked(state: State, observation: Observation, ports: Ports) -> Decision | None:
    """The no-op of a tick at which the model is not asked, or None."""
    if ruined(state.world):
        return Decision(flags=("ruined",))
    if ports.wakes and not awake(observation, state.asked_close, state.news_seen):
        return Decision(flags=("asleep",))
    return None


def _last(at: Instant, decision: Decision, contents: Sequence[bytes], verdicts: Sequence[Verdict]) -> LastDecision:
    """What the next prompt tells of this tick. Of a no-op nothing but its flag, so that holds can be foreseen."""
    flag = decision.flags[0] if decision.flags else ""
    if not verdicts or verdicts[0].outcome == "noop":
        return LastDecision(at, "noop", flag)
    proposal, verdict = contents[0].decode(), verdicts[0]
    outcome = "accepted" if verdict.outcome in ("allowed", "reduced") else "refused"
    return LastDecision(at, outcome, flag, proposal, verdict.code or "", verdict.detail)


def _covered(
    decision: Decision,
    prompt: tuple[str, str] | None,
    contents: Sequence[bytes],
    verdicts: Sequence[Verdict],
    receipts: Sequence[Receipt],
    equity: Curve,
    before: dict[str, Any],
    after: dict[str, Any],
) -> dict[str, Any]:
    """What any honest rerun must reproduce byte for byte."""
    return {
        "prompt_sha256": None if prompt is None else prompt_sha256(prompt),
        "steps": [_step(step) for step in decision.steps],
        "text": decision.text,
        "proposals": [codec.fragment(content) for content in contents],
        "verdicts": [_verdict(verdict) for verdict in verdicts],
        "receipts": receipts,
        "equity": equity,
        "before": before,
        "after": after,
        "flags": list(decision.flags),
        "finish_reason": decision.finish_reason,
    }


def _beside(decision: Decision, prompt: tuple[str, str] | None) -> dict[str, Any]:
    """What two honest runs may differ in: texts that were not kept, timings, provider ids, cost."""
    return {
        "prompt": prompt,
        "cost_usd": decision.cost_usd,
        "saved_usd": decision.saved_usd,
        "usage": decision.usage,
        "steps": [_paid(step) for step in decision.steps],
    }


def _paid(step: Step) -> dict[str, Any]:
    return {
        "latency_ms": step.latency_ms,
        "provider_id": step.provider_id,
        "model": step.model,
        "usage": step.usage,
        "cost_usd": step.cost_usd,
    }


def _reflected(reflection: Reflection) -> dict[str, Any]:
    """A reflection as any honest rerun must reproduce it. Ticks without one have no such part."""
    return {
        "prompt_sha256": prompt_sha256(reflection.prompt),
        "steps": [_step(step) for step in reflection.steps],
        "text": reflection.why,
        "flags": [reflection.flag] if reflection.flag else [],
    }


def _with_its_cost(decision: Decision, reflection: Reflection) -> Decision:
    """What was asked for and paid at this tick, the reflection's part included."""
    usage, cost, saved = decision.usage, decision.cost_usd, decision.saved_usd
    for step in reflection.steps:
        usage += step.usage
        cost = None if cost is None or step.cost_usd is None else cost + step.cost_usd
        saved += step.saved_usd
    return replace(decision, usage=usage, cost_usd=cost, saved_usd=saved)


def _beside_reflection(reflection: Reflection, keep_prompts: bool) -> dict[str, Any]:
    return {
        "prompt": reflection.prompt if keep_prompts else None,
        "steps": [_paid(step) for step in reflection.steps],
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    """A verdict as it is kept: every rule's distance; limit and use of each too where something was refused."""
    allowed = verdict.outcome == "allowed"
    return {
        "outcome": verdict.outcome,
        "code": verdict.code,
        "detail": verdict.detail,
        "order_id": verdict.order_id,
        "duplicate": verdict.duplicate,
        "margins": brief(verdict.margins) if allowed else verdict.margins,
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "text": step.text,
        "finish_reason": step.finish_reason,
        "calls": [
            {"name": call.name, "arguments": call.arguments, "result": call.result, "failed": call.failed}
            for call in step.calls
        ],
    }
