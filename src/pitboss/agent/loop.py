"""The bounded tool loop: ask a model, run the tools it calls, until it proposes or its steps are used up.

Every reply has a defined outcome. Tools look; the terminal tool is never run, it *is* the decision. On the last step
only the terminal tool is offered and the model is told that it must call it. Nothing here judges or acts: what the
engine would say comes in as `judge`, for skills that let the model try again after a refusal.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pitboss.agent.context import Context, Prompt
from pitboss.agent.decider import Judge
from pitboss.agent.observation import Observation
from pitboss.agent.terminal import MAX_ARGUMENT_CHARS, Answer, read_answer
from pitboss.core import codec
from pitboss.core.errors import ToolFailed, TransientError
from pitboss.core.intent import NO_USAGE, Decision, FinishReason, Step, ToolResult, Usage
from pitboss.core.money import ZERO
from pitboss.core.ports import Message, Model, ModelReply, ModelRequest, Tool, ToolCall, ToolSpec
from pitboss.core.verdict import Verdict
from pitboss.prompt.render import size

Hydrate = Callable[[Observation, Judge], Mapping[str, Tool]]
"""The skill's tools bound to one observation."""

Price = Callable[[Usage], Decimal | None]
"""What the tokens of a call cost; None when nobody knows."""

MAX_RESULT_CHARS = 32_000
MAX_CALLS = 16
"""Calls of one reply that are answered; a model that asks for more is looping."""


def free(usage: Usage) -> Decimal | None:
    """Policies, stand-ins and scripts cost nothing."""
    del usage
    return ZERO


@dataclass(frozen=True, slots=True)
class ToolLoop:
    """A model with tools as a decider."""

    name: str
    model: Model
    context: Context
    hydrate: Hydrate
    terminal: ToolSpec
    max_steps: int
    retry_refused: int = 0
    settings: Mapping[str, Any] | None = None
    price: Price = free

    def prompt(self, observation: Observation) -> Prompt:
        """Exactly what the model is given at this tick."""
        return self.context.prompt(observation)

    async def decide(self, observation: Observation, judge: Judge) -> Decision:
        """Ask until there is a decision or the steps are used up."""
        prompt = self.prompt(observation)
        tools = {name: tool for name, tool in self.hydrate(observation, judge).items() if name != self.terminal.name}
        offered = (*(tool.spec for tool in tools.values()), self.terminal)
        talk = _Talk(self, prompt, [Message("user", prompt.user)])
        for number in range(1, self.max_steps + 1):
            last = number == self.max_steps
            request = ModelRequest(
                prompt.system,
                tuple(talk.messages),
                (self.terminal,) if last else offered,
                self.terminal.name if last else None,
                self.settings or {},
            )
            try:
                reply = await self.model.complete(request)
            except TransientError as error:
                return talk.decision("model_error", text=str(error), finish_reason="error")
            answer = read_answer(reply, self.terminal.name)
            results = [await _run(place, call, tools, answer, last) for place, call in enumerate(reply.calls)]
            talk.take(reply, results)
            if answer.conflict:
                return talk.decision("multiple_proposals")
            if answer.proposal is not None:
                talk.proposal = answer.proposal
                verdict = judge(answer.proposal) if talk.retries < self.retry_refused and not last else None
                if verdict is None or verdict.outcome != "refused":
                    return talk.decision()
                talk.tell(reply, results, answer, verdict)
                continue
            talk.tell(reply, results, answer, None)
        return talk.decision()


class _Talk:
    """The conversation of one tick as it grows."""

    def __init__(self, loop: ToolLoop, prompt: Prompt, messages: list[Message]) -> None:
        self.loop = loop
        self.prompt = prompt
        self.messages = messages
        self.steps: list[Step] = []
        self.proposal: Any = None
        self.retries = 0

    def take(self, reply: ModelReply, results: list[ToolResult]) -> None:
        """Keep a reply and what its calls gave."""
        self.steps.append(
            Step(
                codec.printable(reply.text),
                tuple(results),
                reply.usage,
                reply.finish_reason,
                reply.latency_ms,
                reply.provider_id,
            )
        )

    def tell(self, reply: ModelReply, results: list[ToolResult], answer: Answer, verdict: Verdict | None) -> None:
        """Answer every call of a reply, so that the model knows what came of each."""
        self.messages.append(Message("assistant", reply.text, reply.calls))
        for call, result in zip(reply.calls, results, strict=True):
            content = result.result
            if verdict is not None and call.name == self.loop.terminal.name:
                content = _refusal(verdict)
            self.messages.append(Message("tool", content, call_id=call.id, name=call.name))
        if verdict is not None:
            self.retries += 1
        if not reply.calls:
            self.messages.append(Message("user", answer.problem))

    def decision(self, flag: str = "", text: str = "", finish_reason: FinishReason | None = None) -> Decision:
        """Close the tick with what there is."""
        usage = NO_USAGE
        cost: Decimal | None = ZERO
        for step in self.steps:
            usage += step.usage
            price = self.loop.price(step.usage)
            cost = None if cost is None or price is None else cost + price
        last = self.steps[-1] if self.steps else None
        dropped = flag in ("multiple_proposals", "model_error")
        intents = () if self.proposal is None or dropped else (self.proposal,)
        flags = (flag,) if flag else () if intents else ("no_decision",)
        return Decision(
            intents=intents,
            text=codec.printable(text) or (last.text if last else ""),
            steps=tuple(self.steps),
            flags=flags,
            usage=usage,
            cost_usd=cost,
            finish_reason=finish_reason or (last.finish_reason if last else "stop"),
            prompt=(self.prompt.system, self.prompt.user),
        )


async def _run(place: int, call: ToolCall, tools: Mapping[str, Tool], answer: Answer, last: bool) -> ToolResult:
    """One tool call and the text it gives back; a failure is text for the model too."""
    name = codec.printable(call.name)
    if place in answer.told:
        return ToolResult(name, _arguments(call), answer.told[place], failed=place in answer.malformed)
    if place >= MAX_CALLS:
        return ToolResult(call.name, None, f"at most {MAX_CALLS} calls in one reply", failed=True)
    tool = tools.get(call.name)
    if last or tool is None:
        offered = "only the decision is left at this step" if last else f"tools here: {', '.join(sorted(tools))}"
        return ToolResult(name, _arguments(call), f"there is no tool {name!r}; {offered}", failed=True)
    if len(call.arguments) > MAX_ARGUMENT_CHARS:
        return ToolResult(call.name, _arguments(call), f"arguments over {MAX_ARGUMENT_CHARS} characters", failed=True)
    try:
        arguments = codec.loads_exact(call.arguments or "{}")
    except (ValueError, RecursionError):
        return ToolResult(call.name, _arguments(call), "the arguments are not valid JSON", failed=True)
    try:
        result = await tool.call(arguments)
    except ToolFailed as error:
        return ToolResult(call.name, _arguments(call), str(error), failed=True)
    if len(result) > MAX_RESULT_CHARS:
        result = result[:MAX_RESULT_CHARS] + "\n[cut]"
    return ToolResult(name, _arguments(call), codec.printable(result))


def _arguments(call: ToolCall) -> Any:
    """Arguments as they are kept: parsed when they are JSON of a sane length, else the raw text, cut."""
    if len(call.arguments) <= MAX_ARGUMENT_CHARS:
        try:
            return codec.number_fragments(codec.loads_exact(call.arguments or "{}"))
        except (ValueError, RecursionError):
            pass
    return codec.printable(call.arguments[:MAX_ARGUMENT_CHARS])


def _refusal(verdict: Verdict) -> str:
    """What the model is told about a refused proposal when it may try again in the same tick."""
    lines = [f"refused by {verdict.code}: {verdict.detail}"]
    lines += [
        f"{margin.code}: limit {_short(margin.limit)}, yours {_short(margin.used)} {margin.unit}"
        for margin in verdict.margins
    ]
    return "\n".join(lines)


def _short(value: Decimal | str) -> str:
    return value if isinstance(value, str) else size(value)
