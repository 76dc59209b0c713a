"""The one loop: observe → decide → guard → act → record. Simulation, paper and live call this same function.

There is no mode here. What differs between a backtest and a live account is the ports that are passed in.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pitboss.agent.context import Context
from pitboss.agent.decider import Decider
from pitboss.agent.observation import Observation
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
    observation = observe(state, at, ports)
    asked, decision = False, _unasked(state, observation, ports)
    if decision is None:
        asked = True
        decision = await ports.decider.decide(
            observation, lambda intent: guard(ports.limits, ports.terms, state, intent, at).verdict
        )
    if state.seen:
        state = replace(state, seen={})
    verdicts: list[Verdict] = []
    contents: list[bytes] = []
    receipts: list[Receipt] = list(happened.receipts)
    for intent in decision.intents:
        judgement = guard(ports.limits, ports.terms, state, intent, at)
        state, verdict, answers = await act(state, judgement, ports.broker, at)
        if judgement.broken:
            world, noticed = halt(state.world, ports.terms, "invariant", at)
            state, answers = replace(state, world=world), (*answers, *noticed)
        verdicts.append(verdict)
        contents.append(judgement.content)
        receipts.extend(answers)
    prompt = decision.prompt
    if prompt is None and asked and ports.build_prompts:
        built = ports.context.prompt(observation)
        prompt = (built.system, built.user)
    after = summary_after(state.world, found, before)
    covered = _covered(decision, prompt, contents, verdicts, receipts, happened.equity, before, after)
    free = prompt is None and not decision.steps and decision.cost_usd == ZERO
    extra = FREE if free else _beside(decision, prompt if ports.keep_prompts else None)
    record = seal(state.seq, "tick", at, state.prev_digest, covered, extra)
    failed = "model_error" in decision.flags
    noted = asked and ports.wakes and bool(ports.skill.schedule.wake_when)
    state = State(
        world=state.world,
        seq=state.seq + 1,
        prev_digest=record.digest,
        tick_at=at,
        accepted_opens=state.accepted_opens,
        seen=state.seen,
        last=_last(at, decision, contents, verdicts),
        memory=state.memory,
        asked_close=closes(observation) if noted else state.asked_close,
        news_seen=observation.view.news_count() if noted else state.news_seen,
        model_errors=state.model_errors + 1 if failed else 0,
    )
    return Ticked(state, record, decision, covered, receipts)


def observe(state: State, at: Instant, ports: Ports) -> Observation:
    """What the agent may know now."""
    return Observation(
        at,
        ports.started_at,
        ports.skill,
        ports.view(at),
        state.world,
        ports.terms,
        ports.limits,
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
        "steps": [
            {
                "latency_ms": step.latency_ms,
                "provider_id": step.provider_id,
                "model": step.model,
                "usage": step.usage,
                "cost_usd": step.cost_usd,
            }
            for step in decision.steps
        ],
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
