"""The community venue's part of a live run: the forum's client, the chain, the log, and the status document."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pitboss.agent.decider import Decider, Judge
from pitboss.bootstrap import decider_source
from pitboss.bootstrap.machine import SystemClock, random_hex
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import Instant, iso
from pitboss.core.intent import Decision
from pitboss.core.money import text
from pitboss.core.state import State, parse_state
from pitboss.live.board import Entry
from pitboss.live.world_source import WorldSource
from pitboss.runs import live_run
from pitboss.runs.live_run import LiveRunResult
from pitboss.runs.live_session import Begin, Listener, LivePlan, LiveSide, LiveView
from pitboss.runs.venues import venue_named
from pitboss.sim.connections import Connections
from pitboss.skill.document import to_plain
from pitboss.store.outbox import StoredOutbox
from pitboss.tick import Ports
from pitboss.venues.community.action_outbox import ActionOutbox
from pitboss.venues.community.agent_prompts import CommunityPrompts
from pitboss.venues.community.agent_world import AgentWorld
from pitboss.venues.community.assembly import DECIDERS
from pitboss.venues.community.chain.ports import EvmChain
from pitboss.venues.community.communication_log import CommunicationLog, log_folder
from pitboss.venues.community.github_reports import open_reports
from pitboss.venues.community.issue_text import SharedPost
from pitboss.venues.community.live_broker import LiveBroker
from pitboss.venues.community.live_chain import open_chain
from pitboss.venues.community.live_ports import VENUE_NAME, LivePorts
from pitboss.venues.community.live_source import CommunitySource
from pitboss.venues.community.report_sharing import ReportSharing
from pitboss.venues.community.request import CommunityRequest
from pitboss.venues.community.skill import CommunitySkill
from pitboss.venues.community.sns.client import SnsClient
from pitboss.venues.community.untrusted_json import cleaner

MODE = "live"
DATA_VENUE = "forum"
"""What a live run stores as the source of its data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityDeployment:
    """The complete configuration of a live agent. `token` is its runner credential."""

    skill: CommunitySkill
    model: str
    every_ms: int
    server_url: str
    agent_id: str
    token: str
    protocol: int = 2
    host: str = "127.0.0.1"
    port: int = 0
    cycles: int | None = None
    begin: Begin = "auto"
    max_cost_usd: Decimal | None = None
    max_cost_usd_per_day: Decimal | None = None
    price_in: Decimal | None = None
    price_out: Decimal | None = None
    any_price: bool = False

    def __repr__(self) -> str:
        return f"CommunityDeployment({self.agent_id!r}, {self.server_url!r})"


async def run_live(workspace: Workspace, deployment: CommunityDeployment, listener: Listener) -> LiveRunResult:
    """Start or resume a live run, until its number of heartbeats is reached or a stop is requested."""
    REDACTOR.add(deployment.token)
    skill = deployment.skill
    DECIDERS.named(
        deployment.model, skill, CommunityPrompts(skill)
    )  # rejects an unknown policy before anything is stored
    decider_source.check(workspace, _request(deployment, 0))

    def open_side(notify: Callable[[str], None]) -> AbstractAsyncContextManager[LiveSide]:
        return open_community(workspace, deployment, notify)

    return await live_run.run_live(workspace, open_side, deployment.host, deployment.port, listener)


@asynccontextmanager
async def open_community(
    workspace: Workspace, deployment: CommunityDeployment, notify: Callable[[str], None]
) -> "AsyncIterator[CommunityLive]":
    """Open the forum, the chain and the reports of a live agent."""
    clock = SystemClock()
    protocol = 1 if deployment.protocol == 1 else 2
    async with (
        SnsClient(deployment.server_url, deployment.agent_id, deployment.token, clock, protocol) as client,
        open_chain(workspace, deployment.skill.risk.caps(), deployment.agent_id) as chain,
    ):
        await client.general()  # a wrong address or a revoked credential leaves no run behind
        warnings = () if chain is not None else ("no Ethereum node is set: contracts are not called",)
        plan = _plan(deployment, workspace.now(), warnings)
        reports = open_reports(workspace.settings, clock, lambda post: _mark_issued(client, post))
        sharing = ReportSharing(reports, deployment.server_url, clock.now, notify)
        side = CommunityLive(workspace, deployment, plan, client, chain, sharing, clock)
        try:
            yield side
        finally:
            await side.close()


class CommunityLive:
    """Implements `LiveSide`. The parts that need the run's id are made in `begin`."""

    def __init__(
        self,
        workspace: Workspace,
        deployment: CommunityDeployment,
        plan: LivePlan,
        client: SnsClient,
        chain: EvmChain | None,
        sharing: ReportSharing,
        clock: SystemClock,
    ) -> None:
        self.plan = plan
        self._workspace = workspace
        self._deployment = deployment
        self._client = client
        self._chain = chain
        self._sharing = sharing
        self._clock = clock
        self._run_id = ""
        self._broker: LiveBroker | None = None
        self._source: CommunitySource | None = None
        self._log: CommunicationLog | None = None
        self._logged_number = 0

    @property
    def source(self) -> WorldSource:
        """The source of the agent's community."""
        assert self._source is not None
        return self._source

    @property
    def first_world(self) -> AgentWorld:
        """An agent that has read and done nothing."""
        return AgentWorld(self._deployment.agent_id)

    @property
    def first_memory(self) -> None:
        """Its agents remember nothing besides their world."""

    @property
    def history(self) -> None:
        """Its tools do not look back."""

    def read_state(self, plain: object) -> State:
        """Read a stored state."""
        return parse_state(plain, AgentWorld)

    async def begin(self, run_id: str, address: str, since: Instant) -> None:
        """Open the outbox and the log of the run, and load what a process before this one has executed."""
        del since
        deployment, workspace = self._deployment, self._workspace
        caps, comments = deployment.skill.risk.caps(), deployment.skill.context.comments
        clean, approvals = cleaner(REDACTOR.redact), workspace.approval_requests
        self._run_id = run_id
        outbox = ActionOutbox(
            StoredOutbox(workspace.database, self._clock.now), f"community:{run_id}", deployment.agent_id
        )
        self._broker = LiveBroker(
            self._client,
            self._chain,
            outbox,
            caps,
            comments,
            clean,
            self._clock.now,
            lambda key: approvals.use(key, run_id),
            self._sharing.add,
        )
        self._source = CommunitySource(
            self._client,
            self._broker,
            outbox,
            deployment.every_ms,
            comments,
            clean,
            lambda: approvals.approved(run_id),
            text(self.plan.request.equity_usd),
            self._sharing,
        )
        self._source.begin()
        self._log = CommunicationLog(
            folder=log_folder(workspace.home),
            clock=self._clock,
            instance_id=random_hex(8),
            port=int(address.rpartition(":")[2] or 0),
            pid=os.getpid(),
            agent_id=deployment.agent_id,
            redact=REDACTOR.redact,
        )

    def ports(self, connections: Connections) -> Ports:
        """The ports on the live forum."""
        assert self._broker is not None
        assert self._log is not None
        skill = self._deployment.skill
        context = CommunityPrompts(skill)
        return LivePorts(
            skill,
            approvals=self._workspace.approval_requests,
            run_id=self._run_id,
            decider=LoggedDecider(DECIDERS.named(self.plan.model, skill, context, connections), self._log),
            broker=self._broker,
            context=context,
            equity=text(self.plan.request.equity_usd),
        )

    def has_failed(self) -> bool:
        """There is no background task that could fail."""
        return False

    def raise_failure(self) -> None:
        """Nothing to raise."""

    def ticked(self, entry: Entry, world: AgentWorld) -> None:
        """Log the results that the commit has put into the inbox, and add those of a heartbeat to its entry."""
        assert self._log is not None
        fresh = [item for item in world.inbox if item.number > self._logged_number]
        for item in fresh:
            self._log.runner_to_agent(item.content, [str(item.content.get("type"))])
        self._logged_number = max(self._logged_number, world.next_number - 1)
        if entry["kind"] == "tick":
            entry["results"] = [item.content for item in fresh][-len(entry["verdicts"]) :] if entry["verdicts"] else []

    def status(self, view: LiveView) -> dict[str, Any]:
        """What the agent did, as its records have it."""
        board, start = view.board, view.start
        return {
            "running": True,
            "venue": VENUE_NAME,
            "runId": start.run_id,
            "agentId": self._deployment.agent_id,
            "server": self._deployment.server_url,
            "model": start.model,
            "startedAt": iso(view.started_at),
            "at": iso(view.now),
            "lastRunAt": None if board.last_tick_at is None else iso(board.last_tick_at),
            "nextRunAt": iso(view.next_at),
            "cycleCount": board.ticks,
            "missed": board.missed_slots,
            "errors": board.errors,
            "cumulativeThreadCreateCount": board.events["accepted", "create_thread"],
            "cumulativeCommentCount": board.events["accepted", "comment"],
            "transactions": board.events["filled", "tx"],
            "flags": dict(sorted(board.flags.items())),
            "account": dict(board.account),
            "costUsd": None if board.cost_usd is None else text(board.cost_usd),
            "warnings": list(start.warnings),
            "actionFeed": board.newest(),
        }

    async def close(self) -> None:
        """Stop asking for open results and close the log."""
        if self._source is not None:
            await self._source.close()
        if self._log is not None:
            self._log.close()


class LoggedDecider:
    """A decider whose decisions are written to the communication log."""

    def __init__(self, inner: Decider, log: CommunicationLog) -> None:
        self._inner = inner
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def name(self) -> str:
        """The name of the inner decider."""
        return self._inner.name

    async def decide(self, observation: Any, judge: Judge) -> Decision:
        """The inner decision, after it was logged."""
        decision = await self._inner.decide(observation, judge)
        types = [str(intent.get("action", "")) for intent in decision.intents if isinstance(intent, dict)]
        self._log.agent_to_runner({"text": decision.text, "actions": list(decision.intents)}, types)
        return decision


async def _mark_issued(client: SnsClient, post: SharedPost) -> None:
    key = f"issued:{post.post_id}"
    if post.comment_id is None:
        await client.mark_thread_issued(post.thread_id, key)
    else:
        await client.mark_comment_issued(post.comment_id, key)


def _plan(deployment: CommunityDeployment, now: Instant, warnings: tuple[str, ...]) -> LivePlan:
    return LivePlan(
        venue=venue_named(VENUE_NAME),
        skill=deployment.skill,
        request=_request(deployment, now),
        every_ms=deployment.every_ms,
        identity={"mode": MODE, "server": deployment.server_url, "agent_id": deployment.agent_id},
        begin=deployment.begin,
        ticks=deployment.cycles,
        most_usd_per_day=deployment.max_cost_usd_per_day,
        warnings=warnings,
    )


def _request(deployment: CommunityDeployment, now: Instant) -> CommunityRequest:
    """The request of the model connection. Speculation is off: a live tick cannot be asked ahead."""
    return CommunityRequest(
        skill=to_plain(deployment.skill),
        from_at=now,
        to_at=now,  # the end is unknown, and an empty range prevents a replay of this run
        model=deployment.model,
        data_venue=DATA_VENUE,
        max_cost_usd=deployment.max_cost_usd,
        price_in=deployment.price_in,
        price_out=deployment.price_out,
        any_price=deployment.any_price,
        speculate="0",
    )
