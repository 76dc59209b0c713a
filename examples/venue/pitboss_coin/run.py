"""A run on the coin venue: the ports of its ticks, and its course over the bars."""

from dataclasses import dataclass
from decimal import Decimal

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.core.state import State
from pitboss.engine.execute import WorldBroker
from pitboss.models.catalog import choose_policy
from pitboss.runs.bar_run import BarRun
from pitboss.runs.deciders import Deciders
from pitboss.sim.bar_course import BarCourse
from pitboss.sim.connections import UNCONNECTED, Connections
from pitboss.tick.bar_ports import BarObservation, BarPorts
from pitboss_coin.agent import POLICIES, prompts, stand_in
from pitboss_coin.intents import DECISION
from pitboss_coin.rules import CoinRuleBook
from pitboss_coin.skill import CoinSkill
from pitboss_coin.world import CoinWorld, equity, flip, place

DECIDERS = Deciders(DECISION, "pitboss_coin.tools", lambda name, seed: choose_policy(POLICIES, name), stand_in)


@noun
class CoinPorts(BarPorts):
    """What the venue adds to a tick: its rules, and the value of an account."""

    skill: CoinSkill

    def rule_book(self, observation: BarObservation, state: State, at: Instant) -> CoinRuleBook:
        return CoinRuleBook(state.world, self.skill.max_stake)

    def equity(self, world: CoinWorld) -> Decimal:
        return equity(world)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CoinRun(BarRun):
    """A checked request with its bars."""

    skill: CoinSkill

    def course(self, connections: Connections = UNCONNECTED) -> BarCourse:
        context = prompts(self.skill).blind(self.anonymiser)
        ports = CoinPorts(
            self.skill,
            self.market,
            decider=connections.decider or DECIDERS.of_run(self, context, connections),
            broker=WorldBroker(place),
            context=context,
            **self.ports_fields(connections),
        )
        return BarCourse(
            ports=ports,
            first_world=CoinWorld(self.request.equity_usd),
            bars=self.bars_inside(self.skill.symbol, self.skill.every),
            step=flip,
            **self.course_fields(connections),
        )
