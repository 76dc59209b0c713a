"""Builds an agent of the predict venue from its skill: decider, caps and ports. Used by backtests and live runs alike."""

from collections.abc import Callable, Mapping
from typing import Any

from pitboss.agent.decider import Decider
from pitboss.agent.loop import ToolLoop
from pitboss.agent.prompt import Prompts
from pitboss.bootstrap.keys import Values, open_secrets
from pitboss.bootstrap.machine import environment
from pitboss.bootstrap.settings import Settings
from pitboss.core.asof import View
from pitboss.core.errors import KeyMissing
from pitboss.core.instant import Instant
from pitboss.engine.execute import Broker
from pitboss.models.providers import PRESET
from pitboss.models.routes import route
from pitboss.runs.deciders import Deciders
from pitboss.sim.connections import UNCONNECTED, Connections
from pitboss.skill.load import read_skill as read_document
from pitboss.tools.registry import Registry, registry_of
from pitboss.venues.predict.caps import PredictCaps, make_caps
from pitboss.venues.predict.context import PredictPrompts
from pitboss.venues.predict.heuristics import heuristic
from pitboss.venues.predict.intents import DECISION
from pitboss.venues.predict.mandates import mandates
from pitboss.venues.predict.observation import Tape, no_tape
from pitboss.venues.predict.ports import PredictPorts
from pitboss.venues.predict.skill import PredictSkill
from pitboss.venues.predict.standin import PredictStandIn

TOOLS = "pitboss.venues.predict.tools"
FALLBACK = "policy/alternate"
"""Decider used in place of `llm` if no API key is configured, as on the original platform."""


DECIDERS = Deciders(DECISION, TOOLS, lambda name, seed: heuristic(name), PredictStandIn)
"""How the deciders of this venue are built; no heuristic uses a seed."""


def tools() -> Registry:
    """Return the registry of this venue's built-in tools."""
    return registry_of(TOOLS)


def read_predict_skill(plain: Mapping[str, Any]) -> PredictSkill:
    """Build a skill from its plain document. A mandate stored in a file must already be replaced by its text."""
    return read_document(plain, PredictSkill)


def fallen_back(name: str, settings: Settings) -> tuple[str, str]:
    """Resolve a model name; `llm` without a configured key resolves to the fallback.

    Returns the resolved name and a warning, which is empty unless the fallback is used.
    """
    if name.partition("/")[0] != PRESET:
        return name, ""
    try:
        route(name, Values(environment, open_secrets(settings.home), http_hosts=settings.http_hosts))
    except KeyMissing as error:
        return FALLBACK, f"no model can be asked ({error.message}; {error.hint}): {FALLBACK} decides instead"
    return name, ""


def caps_of(skill: PredictSkill) -> PredictCaps:
    """Return the hard limits of a skill in the venue's units."""
    return make_caps(**skill.risk.model_dump(), underlying=skill.context.underlying)


def mandate_of(skill: PredictSkill) -> str:
    """Return the text of the skill's mandate."""
    strategy = skill.strategy
    return mandates()[strategy.mandate] if strategy.mandate else strategy.text or ""


def prompts_of(skill: PredictSkill) -> PredictPrompts:
    """Return the prompts of the skill's mandate."""
    return PredictPrompts(mandate_of(skill))


def decider_of(skill: PredictSkill, name: str, connections: Connections = UNCONNECTED) -> Decider:
    """Build the decider for a model name: a heuristic, or a model with tools."""
    return DECIDERS.named(name, skill, prompts_of(skill), connections)


def _context(skill: PredictSkill, decider: Decider) -> Prompts:
    return decider.context if isinstance(decider, ToolLoop) else prompts_of(skill)


def ports_of(
    skill: PredictSkill,
    decider: Decider,
    broker: Broker,
    view: Callable[[Instant], View] | None = None,
    tape: Tape = no_tape,
    **more: Any,
) -> PredictPorts:
    """Build the ports of a tick. `more` sets further fields of `PredictPorts`, such as `keep_prompts`."""
    return PredictPorts(
        caps=caps_of(skill),
        decider=decider,
        broker=broker,
        view=view,
        tape=tape,
        candles_minutes=skill.context.candles_minutes,
        underlying=skill.context.underlying,
        **{"every_ms": skill.every_ms, "context": _context(skill, decider), **more},
    )
