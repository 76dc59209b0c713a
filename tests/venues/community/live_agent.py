"""A live agent of tests: the real broker, source and outbox on a real forum server, with heartbeats made by hand.

`breaks` is called before and after every step that leaves a trace outside the process; a test raises `Killed` from it and
starts another agent from the state that was committed last.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from chain.counter_chain import FaultyPort
from sns.forum_server import RunningForum

from pitboss.bootstrap.machine import SystemClock
from pitboss.core.intent import Decision
from pitboss.core.snapshot import Record
from pitboss.core.state import State
from pitboss.store.approval_requests import ApprovalRequests
from pitboss.store.database import Database
from pitboss.store.outbox import StoredOutbox
from pitboss.tick import WorldEvents, tick
from pitboss.venues.community.action_outbox import ActionOutbox
from pitboss.venues.community.agent_prompts import CommunityPrompts
from pitboss.venues.community.agent_world import AgentWorld
from pitboss.venues.community.live_broker import LiveBroker
from pitboss.venues.community.live_ports import LivePorts
from pitboss.venues.community.live_source import CommunitySource
from pitboss.venues.community.skill import CommunitySkill
from pitboss.venues.community.sns.client import SnsClient
from pitboss.venues.community.untrusted_json import cleaner
from simulated_kill import Killed

EVERY_MS = 60_000
READS = {
    f"after {name}" for name in ("general", "context", "pending", "after", "get", "closed", "with_coins", "describe")
}
OF_CHAIN = " of the chain"
"""Ends the names of the steps of the chain's own outbox."""
SKILL = CommunitySkill.model_validate(
    {
        "name": "tester",
        "venue": "community",
        "model": "policy/silent",
        "risk": {"threads_per_tick": 2, "chain": "Sepolia"},
    }
)


class ScriptedDecider:
    """Decides on the actions that a test sets."""

    name = "script"

    def __init__(self) -> None:
        self.actions: list[dict[str, Any]] = []

    async def decide(self, observation: Any, judge: Any) -> Decision:
        del observation, judge
        return Decision(tuple(self.actions))


async def no_pause(seconds: float) -> None:
    del seconds


@dataclass
class LiveAgent:
    """One process of an agent; `state` is what it has committed."""

    client: SnsClient
    database: Database
    state: State
    breaks: Callable[[str], None] = lambda step: None
    chain: Any = None
    skill: CommunitySkill = SKILL
    scope: str = "community:test"
    decider: ScriptedDecider = field(default_factory=ScriptedDecider)
    records: list[Record] = field(default_factory=list)
    approvals: ApprovalRequests | None = None

    def __post_init__(self) -> None:
        stored: Any = FaultyPort(StoredOutbox(self.database, SystemClock().now), self.breaks)
        outbox = ActionOutbox(stored, self.scope, "agent")
        client: Any = FaultyPort(self.client, self.breaks)
        clean, run_id = cleaner(str), self.scope
        approvals = self.approvals or ApprovalRequests(self.database, SystemClock().now)
        self.broker = LiveBroker(
            client, self.chain, outbox, self.skill.risk.caps(), 20, clean, SystemClock().now,
            lambda key: approvals.use(key, run_id), pause=no_pause,
        )  # fmt: skip
        self.source = CommunitySource(
            client, self.broker, outbox, EVERY_MS, 20, clean, lambda: approvals.approved(run_id), "0"
        )
        self.ports = LivePorts(
            self.skill, approvals=approvals, run_id=run_id,
            decider=self.decider, broker=self.broker, context=CommunityPrompts(self.skill),
        )  # fmt: skip

    def begin(self) -> "LiveAgent":
        """Load what a process before this one has executed."""
        self.source.begin()
        return self

    async def heartbeat(self, at: int, *actions: dict[str, Any]) -> Record:
        """One heartbeat; the state counts as committed when this returns."""
        self.decider.actions = list(actions)
        update = await self.source.update(self.state.world, at)
        result = await tick(self.state.after(world=update.world), at, WorldEvents(update.receipts, ()), self.ports)
        self.breaks("commit")
        self.state = result.state
        self.records.append(result.record)
        return result.record

    async def settle(self, at: int) -> None:
        """Wait until no action is open and its result is in the world."""
        for _ in range(50):
            update = await self.source.update(self.state.world, at)
            self.state = self.state.after(world=update.world)
            if not self.source.pending(self.state.world):
                update = await self.source.update(self.state.world, at)
                self.state = self.state.after(world=update.world)
                return
            await asyncio.sleep(0.01)
        raise AssertionError("an action stays open")


def fresh_state(forum_server: RunningForum) -> State:
    return State(AgentWorld(forum_server.agent_id))


@asynccontextmanager
async def client_of(forum_server: RunningForum, protocol: Any = 2) -> AsyncIterator[SnsClient]:
    async with SnsClient(
        forum_server.url, forum_server.agent_id, forum_server.token, SystemClock(), protocol
    ) as client:
        yield client


def killer(step: int) -> tuple[Callable[[str], None], list[str]]:
    """A `breaks` that kills at the step of a number, and the names of the steps so far.

    Reads leave no trace, and the instant before a step is the one after the step before it.
    """
    steps: list[str] = []

    def breaks(name: str) -> None:
        if name.removesuffix(OF_CHAIN) in READS or (name.startswith("before") and "create" not in name):
            return
        steps.append(name)
        if len(steps) == step:
            raise Killed(name)

    return breaks, steps
