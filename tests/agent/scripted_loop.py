"""`ScriptedLoop`: runs the tool loop over a scripted model."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal

from pitboss.agent.loop import ToolLoop
from pitboss.agent.request_policy import RequestPolicy
from pitboss.core import codec
from pitboss.core.decision_format import DecisionFormat
from pitboss.core.intent import Decision
from pitboss.core.ports import Tool, ToolSpec
from pitboss.core.verdict import Margin, Verdict
from pitboss.models.scripted import Line, ScriptedModel
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.intents import DECISION, TERMINAL
from venues.perp.prompt_scene import Scene, skill_of

OPEN: dict[str, Any] = {"action": "open_long", "symbol": "BTC", "size_usd": 500, "reason": "up"}
CLOSE: dict[str, Any] = {"action": "close", "symbol": "BTC", "reason": "out"}
ALLOWED = Verdict("allowed")
REFUSED = Verdict(
    "refused",
    "R3_POSITION_CAP",
    "BTC would be 5000.00 USD, the cap is 2500.00",
    (Margin("R3_POSITION_CAP", Decimal(2500), Decimal(5000), Decimal(-2500), "usd"),),
)


@dataclass
class EchoTool:
    """A tool that returns its arguments, a fixed answer, or a failure."""

    spec: ToolSpec
    answer: str = ""
    failure: Exception | None = None
    arguments: list[Any] = field(default_factory=list)

    async def call(self, arguments: Any) -> str:
        self.arguments.append(arguments)
        if self.failure is not None:
            raise self.failure
        return self.answer or codec.dumps(codec.number_fragments(arguments)).decode()


def echo_tool(name: str = "look", **more: Any) -> EchoTool:
    return EchoTool(ToolSpec(name, f"the tool {name}", {"type": "object", "properties": {}}), **more)


@dataclass
class ScriptedLoop:
    """The tool loop over a scripted model; keeps the model and the judged intents of the last run."""

    script: Sequence[Line]
    tools: Sequence[EchoTool] = ()
    max_steps: int = 4
    retry_refused: int = 0
    verdicts: Sequence[Verdict] = ()
    forcing: Literal["call", "schema"] = "call"
    repairs: Literal["none", "within", "beyond"] = "none"
    raised_max_tokens: int | None = None
    terminal: str = TERMINAL

    @property
    def format(self) -> DecisionFormat:
        """The decision format of the perp venue, under the tool name of this loop."""
        return replace(DECISION, tool=self.terminal)

    def run(self) -> Decision:
        self.model = ScriptedModel(list(self.script))
        self.judged: list[Any] = []
        skill = skill_of(max_steps=self.max_steps)
        built: Mapping[str, Tool] = {one.spec.name: one for one in self.tools}
        loop = ToolLoop(
            "scripted/model",
            self.model,
            PerpPrompts(skill),
            lambda observation, judge: built,
            self.format,
            self.max_steps,
            self.retry_refused,
            policy=RequestPolicy(self.forcing, self.repairs, raised_max_tokens=self.raised_max_tokens),
        )
        return asyncio.run(loop.decide(Scene(skill=skill).observe(), self._judge))

    def _judge(self, intent: Any) -> Verdict:
        self.judged.append(intent)
        return self.verdicts[len(self.judged) - 1] if self.verdicts else ALLOWED

    def messages_after(self, step: int) -> list[str]:
        """The messages to the model after its reply number `step`, counted from one."""
        assert len(self.model.requests) > step, "there was no further request"
        before, after = self.model.requests[step - 1].messages, self.model.requests[step].messages
        return [message.text for message in after[len(before) :] if message.role != "assistant"]
