"""The bounded tool loop: call a model and run the tools it calls, until it decides or its steps are used up.

Every reply has a defined outcome. Tools only read; the terminal tool is never run, its call *is* the decision. On the
last step only the terminal tool is offered and the model is told that it must call it; a model that cannot be forced
to call a tool is asked for the same arguments as JSON text. Nothing here judges or acts: the engine's verdict comes
in through `judge`, for skills that let the model retry after a refusal.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from pitboss.agent.decider import Judge
from pitboss.agent.prompt import Prompt
from pitboss.agent.request_policy import DEFAULT_POLICY, RequestPolicy
from pitboss.agent.terminal import (
    MAX_ARGUMENT_CHARS,
    ParsedDecision,
    ask,
    read_calls,
    read_text,
    step_of,
    stored_arguments,
)
from pitboss.core import codec
from pitboss.core.decision_format import DecisionFormat
from pitboss.core.errors import ModelUnavailable, ToolFailed, TransientError
from pitboss.core.intent import NO_USAGE, Decision, FinishReason, Step, ToolResult
from pitboss.core.money import ZERO
from pitboss.core.ports import Message, Model, ModelReply, ModelRequest, Tool, ToolCall, ToolSpec
from pitboss.core.verdict import Verdict
from pitboss.prompt.render import size

Hydrate = Callable[[Any, Judge], Mapping[str, Tool]]
"""Binds the skill's tools to one observation."""

Form = Literal["open", "call", "schema"]
"""The form of a request: any tool may be called; only the terminal tool; its arguments as JSON text."""

EMPTY_REPLY = "(empty reply)"
"""Replaces an empty reply when it is sent back, because some providers refuse an empty turn."""

PROSE = "prose"
"""The flag of a tick whose reply was text without a decision, where the venue takes that as doing nothing."""

MAX_RESULT_CHARS = 32_000
MAX_CALLS = 16
"""Most calls of one reply that are run; a model that makes more is looping."""


@dataclass(frozen=True, slots=True)
class ToolLoop:
    """A decider that lets a model use tools.

    `context` builds the prompts of a venue's observations, `format` defines how a decision is written there, `policy`
    how the model is made to decide. After a reply that was cut off at its limit of tokens the limit is raised once; a
    second one ends the tick, because each of them costs the full price.
    """

    name: str
    model: Model
    context: Any
    hydrate: Hydrate
    format: DecisionFormat
    max_steps: int
    retry_refused: int = 0
    settings: Mapping[str, Any] | None = None
    policy: RequestPolicy = DEFAULT_POLICY

    def prompt(self, observation: Any) -> Prompt:
        """The exact prompt of this tick."""
        return self.context.prompt(observation)

    async def decide(self, observation: Any, judge: Judge) -> Decision:
        """Call the model until there is a decision or the steps are used up."""
        prompt, anonymiser = self.prompt(observation), self.context.anonymiser
        shown_observation = self.context.shown(observation)
        judge = judge if anonymiser is None else anonymiser.judge(judge)
        tools = {
            name: tool for name, tool in self.hydrate(shown_observation, judge).items() if name != self.format.tool
        }
        offered = (*(tool.spec for tool in tools.values()), self.format.spec)
        if anonymiser is not None:
            offered = tuple(map(anonymiser.spec, offered))
            tools = {spec.name: tool for spec, tool in zip(offered, tools.values(), strict=False)}
        conversation = _Conversation(self, prompt, [Message("user", prompt.user)])
        forms = self._forms(bool(tools))
        form, settings = forms[0], self.policy.settings(self.settings or {})
        for step_number, next_form in enumerate((*forms[1:], None), 1):
            if step_number > self.max_steps and conversation.proposal is not None:
                break  # refused, but it is the most recent valid decision, so no rescue is needed
            try:
                reply = await self.model.complete(self._request(conversation, form, offered, settings))
            except ModelUnavailable:
                raise  # the run ends: this is no tick without a decision
            except TransientError as error:
                return conversation.decision("model_error", text=str(error), finish_reason="error")
            answer = (read_text if form == "schema" else read_calls)(reply, self.format)
            results = [await _run(index, call, tools, answer, form) for index, call in enumerate(reply.calls)]
            conversation.record(reply, results, answer)
            if answer.conflict:
                return conversation.decision("multiple_proposals")
            if answer.is_prose:
                return conversation.decision(PROSE)
            verdict: Verdict | None = None
            if answer.proposal is not None:
                conversation.proposal = answer.proposal
                again = conversation.retries < self.retry_refused and step_number < self.max_steps
                verdict = _refused(judge, self.format.intents(answer.proposal)) if again else None
                if verdict is None:
                    return conversation.decision()
            if answer.proposal is None and reply.finish_reason == "length":
                raised = self.policy.after_cut(settings)
                if raised is None:
                    break
                settings = raised
            if next_form is None:
                break
            # A model that replies in prose and cannot be forced to call a tool is asked in schema form from now on.
            form = "schema" if form == "schema" or (self.policy.forcing == "schema" and not reply.calls) else next_form
            conversation.append(reply, results, answer, verdict, form)
        return conversation.decision()

    def _forms(self, tools: bool) -> tuple[Form, ...]:
        """The form of every possible request.

        Without tools to call, a model that cannot be forced to call one gets no open request.
        """
        forcing, repairs = self.policy.forcing, self.policy.repairs
        before: tuple[Form, ...] = ("open",) if tools or forcing == "call" else ("schema",)
        if repairs == "within" and self.max_steps > 2:
            return (*before * (self.max_steps - 2), forcing, "schema")
        after: tuple[Form, ...] = ("schema", "schema") if forcing == "call" else ("schema",)
        return (*before * (self.max_steps - 1), forcing, *(after if repairs == "beyond" else ()))

    def _request(
        self, conversation: "_Conversation", form: Form, offered: tuple[ToolSpec, ...], settings: Mapping[str, Any]
    ) -> ModelRequest:
        return ModelRequest(
            conversation.prompt.system,
            tuple(conversation.messages),
            offered if form == "open" else offered[-1:],
            None if form == "open" else self.format.tool,
            settings,
            "schema" if form == "schema" else "call",
        )


class _Conversation:
    """The conversation of one tick."""

    def __init__(self, loop: ToolLoop, prompt: Prompt, messages: list[Message]) -> None:
        self.loop = loop
        self.prompt = prompt
        self.messages = messages
        self.steps: list[Step] = []
        self.proposal: Any = None
        self.retries = 0
        self.why = ""

    def record(self, reply: ModelReply, results: list[ToolResult], answer: ParsedDecision) -> None:
        """Store a reply, the results of its calls, and why it is not a decision."""
        self.why = answer.why
        self.steps.append(step_of(reply, results))

    def append(
        self,
        reply: ModelReply,
        results: list[ToolResult],
        answer: ParsedDecision,
        verdict: Verdict | None,
        next_form: Form,
    ) -> None:
        """Answer every call of a reply, so that the model sees the result of each, and say how to reply next."""
        decision_format = self.loop.format
        text = codec.printable(reply.text)
        if not (text.strip() or reply.calls or reply.state):
            text = EMPTY_REPLY
        self.messages.append(Message("assistant", text, reply.calls, state=reply.state))
        for number, (call, result) in enumerate(zip(reply.calls, results, strict=True), 1):
            content = result.result
            if verdict is not None and call.name == decision_format.tool:
                content = _refusal(verdict)
            if next_form == "schema" and number == len(reply.calls):
                content = f"{content}\n{ask(decision_format)}"  # some providers refuse a user turn here
            self.messages.append(Message("tool", content, call_id=call.id, name=call.name))
        if verdict is not None:
            self.retries += 1
        if not reply.calls:
            self.messages.append(Message("user", self._user_message(answer, verdict, next_form)))

    def _user_message(self, answer: ParsedDecision, verdict: Verdict | None, next_form: Form) -> str:
        """The message after a reply without calls."""
        instruction = ask(self.loop.format)
        if verdict is not None:
            return f"{_refusal(verdict)}\n{instruction}"
        if next_form == "schema" and not answer.problem.endswith(instruction):
            return f"{answer.why[:1].upper()}{answer.why[1:]}. {instruction}"
        return answer.problem

    def _true_proposal(self, proposal: Any) -> Any:
        """The proposal for the engine: in a blind run, translated back into true terms."""
        anonymiser = self.loop.context.anonymiser
        return proposal if anonymiser is None else anonymiser.true_proposal(proposal)

    def decision(self, flag: str = "", text: str = "", finish_reason: FinishReason | None = None) -> Decision:
        """End the tick with the decision so far."""
        usage = NO_USAGE
        cost: Decimal | None = ZERO
        saved = ZERO
        for step in self.steps:
            usage += step.usage
            cost = None if cost is None or step.cost_usd is None else cost + step.cost_usd
            saved += step.saved_usd
        last = self.steps[-1] if self.steps else None
        dropped = flag in ("multiple_proposals", "model_error", PROSE)
        raw_intents = () if self.proposal is None or dropped else self.loop.format.intents(self.proposal)
        intents = tuple(map(self._true_proposal, raw_intents))
        flags = (flag,) if flag else () if self.proposal is not None else ("no_decision",)
        if self.loop.policy.repairs != "none" and flags == ("no_decision",):
            prefix = f"{last.text.strip()}\n" if last and last.text.strip() else ""
            text = f"{prefix}No decision: {self.why}."
        return Decision(
            intents=intents,
            text=codec.printable(text) or (last.text if last else ""),
            steps=tuple(self.steps),
            flags=flags,
            usage=usage,
            cost_usd=cost,
            saved_usd=saved,
            finish_reason=finish_reason or (last.finish_reason if last else "stop"),
            prompt=(self.prompt.system, self.prompt.user),
        )


async def _run(index: int, call: ToolCall, tools: Mapping[str, Tool], answer: ParsedDecision, form: Form) -> ToolResult:
    """Run one tool call and return its result; a failure is returned to the model as text."""
    name = codec.printable(call.name)
    if index in answer.results:
        return ToolResult(name, stored_arguments(call), answer.results[index], failed=index in answer.malformed)
    if index >= MAX_CALLS:
        return ToolResult(name, None, f"at most {MAX_CALLS} calls in one reply", failed=True)
    tool = tools.get(call.name)
    if form != "open" or tool is None:
        offered = (
            "only the decision is left at this step" if form != "open" else f"tools here: {', '.join(sorted(tools))}"
        )
        return ToolResult(name, stored_arguments(call), f"there is no tool {name!r}; {offered}", failed=True)
    if len(call.arguments) > MAX_ARGUMENT_CHARS:
        return ToolResult(name, stored_arguments(call), f"arguments over {MAX_ARGUMENT_CHARS} characters", failed=True)
    try:
        arguments = codec.loads_exact(call.arguments or "{}")
    except (ValueError, RecursionError):
        return ToolResult(name, stored_arguments(call), "the arguments are not valid JSON", failed=True)
    failed = False
    try:
        result = await tool.call(arguments)
    except ToolFailed as error:  # may contain untrusted text, like any result
        result, failed = str(error), True
    if len(result) > MAX_RESULT_CHARS:
        result = result[:MAX_RESULT_CHARS] + "\n[cut]"
    return ToolResult(name, stored_arguments(call), codec.printable(result), failed)


def _refused(judge: Judge, intents: tuple[Any, ...]) -> Verdict | None:
    """The first refusal among the verdicts on the intents."""
    verdicts = map(judge, intents)
    return next((verdict for verdict in verdicts if verdict.outcome == "refused"), None)


def _refusal(verdict: Verdict) -> str:
    """The message to the model about a refused proposal when it may retry in the same tick."""
    lines = [f"refused by {verdict.code}: {verdict.detail}"]
    lines += [
        f"{margin.code}: limit {_short(margin.limit)}, yours {_short(margin.used)} {margin.unit}"
        for margin in verdict.margins
    ]
    return "\n".join(lines)


def _short(value: Decimal | str) -> str:
    return value if isinstance(value, str) else size(value)
