"""`Deciders`: how a venue's deciders are built from a request: a decisions file, a policy, or a model with tools."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pitboss.agent.decider import Decider
from pitboss.agent.prompt import Prompts
from pitboss.core.decision_format import DecisionFormat
from pitboss.core.ports import Model
from pitboss.models import catalog
from pitboss.models.decisions import DecisionFile
from pitboss.runs.tool_loop import tool_loop
from pitboss.sim.connections import UNCONNECTED, Connections
from pitboss.sim.prepared_run import PreparedRun
from pitboss.skill.schema import SkillDocument
from pitboss.tools.registry import registry_of


@dataclass(frozen=True, slots=True)
class Deciders:
    """What the deciders of a venue are built from.

    `tools` is the package with its built-in tools. `policy` builds a policy from its bare name and a seed and refuses
    unknown names. `stand_in` is the program behind `standin/analyst`.
    """

    decision: DecisionFormat
    tools: str
    policy: Callable[[str, int], Decider]
    stand_in: Callable[[], Model]

    def of_run(
        self, run: PreparedRun, context: Prompts, connections: Connections = UNCONNECTED, **more: Any
    ) -> Decider:
        """The decider of a request. Unknown policies and invalid decisions files are refused."""
        request = run.request
        if request.decisions is not None:
            ticks = set(run.tick_at.tolist())
            return DecisionFile.read(request.decisions.encode(), "decisions", ticks, self.decision)
        more = {"past_filter": run.anonymiser, **more}
        return self.named(request.source, run.skill, context, connections, request.seed, **more)

    def named(
        self,
        name: str,
        skill: SkillDocument,
        context: Prompts,
        connections: Connections = UNCONNECTED,
        seed: int = 0,
        **more: Any,
    ) -> Decider:
        """The policy or the model of a name. `more` are further arguments of `tool_loop`."""
        kind, _, policy_name = name.partition("/")
        if kind == catalog.POLICY:
            return self.policy(policy_name, seed)
        if connections.model is None and catalog.describe(name).is_standin:
            connections = replace(connections, model=self.stand_in())
        return tool_loop(name, skill, self.decision, context, registry_of(self.tools), connections, **more)
