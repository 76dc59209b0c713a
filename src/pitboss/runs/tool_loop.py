"""Build the decider of a run from a model with tools, in the same way for every venue."""

from typing import Any

from pitboss.agent.loop import ToolLoop
from pitboss.core.decision_format import DecisionFormat
from pitboss.core.past import NO_PAST, Past
from pitboss.models.unconnected import Unconnected
from pitboss.sim.connections import Connections
from pitboss.skill.schema import SkillDocument
from pitboss.tools.registry import Registry, permit
from pitboss.tools.toolbox import PastFilter, Toolbox


def tool_loop(
    name: str,
    skill: SkillDocument,
    decision: DecisionFormat,
    context: Any,
    registry: Registry,
    connections: Connections,
    *,
    past: Past = NO_PAST,
    retry_refused: int = 0,
    past_filter: PastFilter | None = None,
) -> ToolLoop:
    """Build the tool loop of a skill.

    With a `past_filter` the run is blind: only tools that can be anonymised are offered.
    """
    offered = permit(registry, skill.tool_names, "write")
    definitions = list({tool.name: tool for tool in (*offered, *connections.tools)}.values())
    server_tools = connections.server_tools.at if connections.server_tools.specs else None
    if past_filter is not None:
        definitions = [definition for definition in definitions if definition.reach == "as_of"]
        server_tools = None
    return ToolLoop(
        name=name,
        model=connections.model or Unconnected(name),
        context=context,
        hydrate=Toolbox(
            tuple(definitions), past, connections.recordings, server_tools, past_filter, connections.tracer
        ),
        format=decision,
        max_steps=skill.max_steps,
        retry_refused=retry_refused,
        settings=skill.model_settings.request(),
        policy=connections.policy,
    )
