"""Prepares a community backtest: checks the request and its scenario, and builds the ports once. It needs no market data."""

from dataclasses import dataclass

from pitboss.bootstrap.settings import Settings
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.money import text
from pitboss.models.catalog import choose_policy
from pitboss.runs.deciders import Deciders
from pitboss.sim.connections import UNCONNECTED, Connections
from pitboss.sim.course import ticks_of
from pitboss.sim.prepared_run import PreparedRun
from pitboss.sim.request import check_range
from pitboss.skill.load import read_skill
from pitboss.venues.community.agent_prompts import CommunityPrompts
from pitboss.venues.community.course import ScenarioCourse
from pitboss.venues.community.intents import DECISION
from pitboss.venues.community.policies import POLICIES
from pitboss.venues.community.ports import CommunityPorts, ScenarioBroker
from pitboss.venues.community.request import CommunityRequest
from pitboss.venues.community.scenario import Scenario, read_scenario
from pitboss.venues.community.scenario_file import shipped_scenario
from pitboss.venues.community.skill import CommunitySkill
from pitboss.venues.community.standin import stand_in

DATA_VENUE = "scenario"
DECIDERS = Deciders(
    DECISION, "pitboss.venues.community.tools", lambda name, seed: choose_policy(POLICIES, name), stand_in
)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CommunityRun(PreparedRun):
    """A checked request with its scenario."""

    request: CommunityRequest
    skill: CommunitySkill
    scenario: Scenario

    def course(self, connections: Connections = UNCONNECTED) -> ScenarioCourse:
        """Build the course with its ports."""
        context, comments = CommunityPrompts(self.skill), self.skill.context.comments
        ports = CommunityPorts(
            self.skill,
            decider=connections.decider or DECIDERS.of_run(self, context, connections),
            broker=ScenarioBroker(self.scenario, comments, self.skill.risk.chain),
            context=context,
            equity=text(self.request.equity_usd),
            **self.ports_fields(connections),
        )
        return ScenarioCourse(
            ports=ports,
            scenario=self.scenario,
            comment_limit=comments,
            every_ms=self.skill.every_ms,
            equity=text(self.request.equity_usd),
            **self.course_fields(connections),
        )


def prepare(request: CommunityRequest, settings: Settings) -> CommunityRun:
    """Check a request. Raises `UserError` before any work is done."""
    skill = read_skill(request.skill, CommunitySkill)
    check_range(request)
    if request.blind:
        raise UserError("runs of this venue cannot be blind", "leave --blind out")
    document = dict(request.scenario) or shipped_scenario()
    scenario = read_scenario(document)
    run = CommunityRun(
        request=request,
        skill=skill,
        data_venue=DATA_VENUE,
        data_digest=codec.digest(document),
        synthetic=True,
        tick_at=ticks_of(request, skill.every_ms),
        commit_records=settings.commit_records,
        most_errors=settings.model_errors,
        scenario=scenario,
    )
    run.course().first_world()  # refuses an unknown policy, an invalid decisions file and an impossible scenario
    return run
