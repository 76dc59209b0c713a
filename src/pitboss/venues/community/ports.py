"""The ports of a community agent's tick: what it observes, its rules, and the results that it is told."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pitboss.core.instant import Instant
from pitboss.core.intent import Decision
from pitboss.core.money import ZERO, text
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.core.verdict import Verdict
from pitboss.engine.execute import Placed
from pitboss.tick.ports import Ports
from pitboss.venues.community.agent_prompts import CommunityObservation
from pitboss.venues.community.agent_world import AgentWorld
from pitboss.venues.community.results import refusal_result
from pitboss.venues.community.rule_book import CommunityOrder, CommunityRuleBook
from pitboss.venues.community.scenario import Scenario
from pitboss.venues.community.simulated_world import SimulatedWorld, place
from pitboss.venues.community.skill import CommunitySkill


@noun
class CommunityPorts(Ports):
    """The same in simulation and live; only the decider and the broker differ."""

    skill: CommunitySkill
    equity: str = "0"
    """What records show as equity: the agent has no account, so it is the same at every tick."""

    def observe(self, state: State, at: Instant) -> CommunityObservation:
        """The community as it was last read, and the inbox."""
        return CommunityObservation(at, self.skill, state.world, state.memory)

    def rule_book(self, observation: Any, state: State, at: Instant) -> CommunityRuleBook:
        """The rules on the world as earlier actions of this tick have left it."""
        del observation
        return CommunityRuleBook(self.skill.risk.caps(), state.world, at)

    def summary(self, world: AgentWorld) -> dict[str, Any]:
        """Counts of what is there and of what the agent did today."""
        return {
            "equity": self.equity,
            "threads": len(world.rows("threads")),
            "inbox": len(world.inbox),
            "posts_today": world.use.posts,
            "transactions_today": world.use.transactions,
            "spend_wei_today": text(world.use.spend_wei),
        }

    def skip_flag(self, state: State, observation: Any) -> str:
        """An agent without a community is not asked."""
        del observation
        return "unassigned" if state.world.community is None else ""

    def with_shown(self, state: State, observation: CommunityObservation, decision: Decision) -> State:
        """Results leave the inbox only when a model has answered a prompt that held them."""
        if "model_error" in decision.flags or not observation.inbox:
            return state
        return state.after(world=state.world.without_seen(observation.inbox[-1].number))

    def with_verdict(self, state: State, intent: Any, verdict: Verdict) -> State:
        """A refused or repeated action has a result, too; results of executed ones come from the broker."""
        if verdict.outcome != "refused" and not verdict.duplicate:
            return state
        detail = "repeated within this heartbeat" if verdict.duplicate else verdict.detail
        return state.after(world=state.world.with_result(refusal_result(intent, verdict.code or "", detail)))

    def halt(self, world: AgentWorld, at: Instant) -> tuple[AgentWorld, Sequence[Receipt]]:
        """After a rule itself failed nothing more is done: no community, no actions."""
        return replace(world, community=None), (Receipt("halted", at),)


@noun
class ScenarioBroker:
    """Executes actions in a scenario's world."""

    scenario: Scenario
    comment_limit: int
    chain: str

    async def submit(self, world: SimulatedWorld, request: CommunityOrder, at: Instant) -> Placed:
        """Execute an allowed action at once."""
        return place(world, self.scenario, request, at, self.comment_limit, self.chain)

    async def cancel(self, world: Any, order_id: str, at: Instant) -> Placed:
        """Actions cannot be taken back."""
        del order_id, at
        return Placed(world, refusal="actions cannot be cancelled")


def spent_wei(receipts: Sequence[Receipt]) -> Decimal:
    """What transactions have cost."""
    return sum((Decimal(receipt.facts.get("cost_wei", 0)) for receipt in receipts), ZERO)
