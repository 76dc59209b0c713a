"""An agent of the predict venue put together: who decides, with which tools, under which caps. For replay and live alike.

What brings prices and who carries orders out is passed in: a replay gives a recorded tape and the paper broker, a live
run the prices of this moment and whichever broker was asked for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pitboss.agent.decider import Decider, Judge
from pitboss.agent.loop import ToolLoop
from pitboss.agent.terminal import DecisionFormat
from pitboss.bootstrap.keys import Values, open_secrets
from pitboss.bootstrap.machine import environment
from pitboss.core.asof import View
from pitboss.core.errors import KeyMissing, UserError
from pitboss.core.instant import Instant
from pitboss.core.ports import Model, Tool, ToolSpec
from pitboss.engine.execute import Broker
from pitboss.models import catalog
from pitboss.models.routes import route
from pitboss.skill.load import check_predict_plain, summary
from pitboss.tools.define import ToolContext, ToolDefinition
from pitboss.tools.registry import lookup, permit
from pitboss.venues.predict.caps import PredictCaps, make_caps
from pitboss.venues.predict.context import PredictPrompts
from pitboss.venues.predict.heuristics import heuristic
from pitboss.venues.predict.intents import TERMINAL, read
from pitboss.venues.predict.mandates import mandates
from pitboss.venues.predict.observation import PredictObservation, Tape, no_tape
from pitboss.venues.predict.ports import PredictPorts
from pitboss.venues.predict.skill import PredictSkill

VENUE = "predict"
FALLBACK = "policy/alternate"
"""Who decides in place of `llm` where no key is set, as on the original platform."""


def read_predict_skill(plain: Mapping[str, Any]) -> PredictSkill:
    """A skill from its plain document; a mandate in a file has been read into it before."""
    check = check_predict_plain(plain)
    if check.skill is None:
        raise summary(str(plain.get("name", "skill")), check.errors)
    return check.skill


def fallen_back(name: str, home: Path) -> tuple[str, str]:
    """Who decides under a name, and a warning where that is somebody else: `llm` needs a key."""
    if name.partition("/")[0] != catalog.PRESET:
        return name, ""
    try:
        route(name, Values(environment, open_secrets(home)))
    except KeyMissing as error:
        return FALLBACK, f"no model can be asked ({error.message}; {error.hint}): {FALLBACK} decides instead"
    return name, ""


def caps_of(skill: PredictSkill) -> PredictCaps:
    """The hard limits of a skill in the venue's own units."""
    return make_caps(**skill.risk.model_dump(), underlying=skill.context.underlying)


def mandate_of(skill: PredictSkill) -> str:
    """What the deployer asks of the agent, in words."""
    strategy = skill.strategy
    return mandates()[strategy.mandate] if strategy.mandate else strategy.text or ""


def decider_of(skill: PredictSkill, name: str) -> Decider:
    """Who answers to a name on this venue: a heuristic, or the tool loop around a model that is connected later."""
    entry = catalog.describe(name)
    if entry.is_policy:
        return heuristic(entry.name)
    found = catalog.resolve(name)
    if entry.venue not in ("", VENUE):
        raise UserError(f"{name} does not work on the predict venue", "choose a model, or policy/alternate")
    return tool_loop(skill, name, found)  # pyright: ignore[reportArgumentType]  only policies are no models


def tool_loop(skill: PredictSkill, name: str, model: Model) -> ToolLoop:
    """A model with the skill's tools and its mandate."""
    terminal = lookup(TERMINAL, VENUE)
    return ToolLoop(
        name=name,
        model=model,
        context=PredictPrompts(mandate_of(skill)),
        hydrate=Looks(tuple(permit(skill.tools.built_in, "write", venue=VENUE))),
        terminal=ToolSpec(terminal.name, terminal.description, terminal.schema),
        max_steps=skill.max_steps,
        settings=skill.model_settings.request(),
        shape=DecisionFormat(read, "hold"),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Looks:
    """The tools of a skill, built anew for every tick."""

    tools: tuple[ToolDefinition, ...]

    def __call__(self, observation: PredictObservation, judge: Judge) -> Mapping[str, Tool]:
        """The tools of one tick."""
        context = ToolContext(observation, "write", judge)  # pyright: ignore[reportArgumentType]  this venue's tools read it
        return {tool.name: tool.build(context) for tool in self.tools}


def ports_of(
    skill: PredictSkill,
    decider: Decider,
    broker: Broker,
    view: Callable[[Instant], View] | None = None,
    tape: Tape = no_tape,
    **more: Any,
) -> PredictPorts:
    """Everything a tick needs. `more` are further fields of the ports, such as whether prompts are kept."""
    return PredictPorts(
        caps=caps_of(skill),
        decider=decider,
        broker=broker,
        context=decider.context if isinstance(decider, ToolLoop) else PredictPrompts(mandate_of(skill)),
        view=view,
        tape=tape,
        candles_minutes=skill.context.candles_minutes,
        underlying=skill.context.underlying,
        every_ms=skill.schedule.every_ms,
        **more,
    )
