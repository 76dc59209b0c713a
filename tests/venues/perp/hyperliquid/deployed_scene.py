"""A whole deployment on the fake exchange in virtual time: the real runner, feed, account and broker; a scripted agent decides."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from pitboss.agent.decider import Judge
from pitboss.bootstrap.machine import new_id
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.trading_accounts import TradingAccount, add_account
from pitboss.bootstrap.workspace import open_workspace
from pitboss.core import codec
from pitboss.core.deployment import Mode
from pitboss.core.instant import SECOND_MS
from pitboss.core.intent import Decision
from pitboss.live.board import Board, Entry
from pitboss.live.control import Control
from pitboss.runs.deployment_run import DeploymentStop
from pitboss.runs.deployments import deploy
from pitboss.runs.live_deployment import DeployRequest, LiveDeployment, read_deployment
from pitboss.runs.live_session import Driving, Listener, StoredLiveRun, work_live
from pitboss.runs.stored import journal_of
from pitboss.sim.connections import Connections
from pitboss.skill.load import read_skill
from pitboss.store.deployments import Deployments
from pitboss.store.runs import Runs
from pitboss.tick import Ports
from pitboss.venues.perp.hyperliquid.market_feed import HyperliquidFeed
from pitboss.venues.perp.live import PerpLive, live_side, paper_side, shadow_side
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.testing import plain_skill
from pitboss.venues.perp.venue import VENUE
from venues.perp.hyperliquid.feed_scene import HOUR, START, FeedScene
from venues.perp.hyperliquid.live_scene import Scene, open_request

OPEN = {"action": "open_long", "symbol": "BTC", "size_usd": 1_000, "leverage": 2, "stop_loss": 30_000, "reason": "up"}
CLOSE = {"action": "close", "symbol": "BTC", "reason": "out"}
LEAD_MS = 10 * SECOND_MS
"""How long before the slot of its first tick a deployment begins."""

Intents = Sequence[Mapping[str, Any]]


@dataclass
class ScriptedAgent:
    """Decides the given intents of each tick, after `before_order` was called; then it holds."""

    decisions: Sequence[Intents]
    before_order: Callable[[], None] = lambda: None
    name: str = "scripted"
    call_count: int = 0

    async def decide(self, observation: Any, judge: Judge) -> Decision:
        del observation, judge
        self.call_count += 1
        intents = self.decisions[self.call_count - 1] if self.call_count <= len(self.decisions) else ()
        self.before_order()
        return Decision(tuple(intents))


class ScriptedLive(PerpLive):
    """A deployment whose agent was replaced by the scripted one."""

    agent: ScriptedAgent

    def ports(self, connections: Connections) -> Ports:
        return super().ports(replace(connections, decider=self.agent))


@dataclass
class DeployedScene(Scene):
    """An exchange with its streams, and one deployment on it. No time passes with a request."""

    home: Path = Path()
    mode: Mode = "live"
    latency_ms: tuple[int, int] = (0, 0)
    control: Control = field(default_factory=Control)
    opened_before: bool = False
    risk: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def make_exchange(self) -> None:
        self.feeds = FeedScene(*self.faults, seed=self.seed, history_bars=20)
        self.exchange, self.clock, self.plan = self.feeds.exchange, self.feeds.clock, self.feeds.plan
        self.transport = self.feeds.transport
        self.transport._latency = self.latency_ms  # pyright: ignore[reportPrivateUsage]
        self.clock.move((HOUR - LEAD_MS - START) / SECOND_MS)
        self.feed: HyperliquidFeed = self.feeds.make_feed()

    def data_problem(self, symbol: str) -> str:
        return self.feed.opening_problem(symbol)

    def work(self, agent: ScriptedAgent, ticks: int = 1) -> list[dict[str, Any]]:
        """Let the deployment tick so often, and return the covered parts of its records."""
        return self.feeds.run_with(self.feed, lambda: self._work(agent, ticks))

    async def _work(self, agent: ScriptedAgent, ticks: int) -> list[dict[str, Any]]:
        (self.home / "settings.toml").touch()
        add_account(self.home, "main", TradingAccount(address=self.exchange.ready.master_address, network="testnet"))
        with open_workspace(load_settings(self.home)) as opened:
            opened.database.clock = self.now
            workspace = replace(
                opened,
                now=self.now,
                runs=Runs(opened.database, self.now, new_id),
                deployments=Deployments(opened.database, self.now, new_id),
            )
            skill = read_skill(plain_skill(risk=self.risk), PerpSkill)
            account = "" if self.mode == "paper" else "main"
            deployment = deploy(workspace, DeployRequest(skill=skill, mode=self.mode, account=account))
            run = workspace.runs.get(deployment.run_id)
            live = read_deployment(
                workspace, deployment, PerpSkill, VENUE.request_of(run.params), halt=self.control.halt
            )
            await self.before_deployment()
            side = await self._side(live)
            side.__class__ = ScriptedLive
            side.agent = agent  # pyright: ignore[reportAttributeAccessIssue]
            stop = DeploymentStop()
            stored_run = StoredLiveRun(
                workspace, run.id, workspace.runs.claim(run.id, into="running"), "", Board(), self.clock
            )

            def stop_after(entry: Entry, board: Board) -> None:
                del entry
                if board.ticks >= ticks:
                    stop.request()

            listener = Listener(entry=stop_after)
            await work_live(stored_run, side, Driving(stop, lambda: False, self.control, listener=listener))
            return [codec.loads(each.covered) for each in journal_of(workspace, workspace.runs.get(run.id)).records()]

    async def before_deployment(self) -> None:
        """Trade on the account before the deployment begins, if `opened_before` says so."""
        if self.opened_before:
            placed = await self.broker.submit(await self.world(), open_request("BTC", size="0.01"), self.now())
            assert not placed.refusal, placed.refusal
        self._received_before = len(self.exchange.state.received)

    async def _side(self, live: LiveDeployment) -> PerpLive:
        if self.mode == "paper":
            return paper_side(live, self.feed)
        if self.mode == "shadow":
            await self.venue_clock.read()
            return shadow_side(live, self.feed, await self.reader.read(self.venue_clock.newest, 0))
        return await live_side(live, self.feed, self.broker)

    def age_mark(self, ms: int) -> None:
        """Let the newest mark of the feed be so old at this moment."""
        prices = self.feed.state.prices["BTC"]
        assert prices.mark is not None
        prices.mark = prices.mark[0], self.feed.state.clock.now() - ms

    def actions(self) -> list[str]:
        """The signed actions that the exchange received since the deployment began."""
        return [each.action for each in self.exchange.state.received[self._received_before :]]


def verdicts(bodies: Sequence[Mapping[str, Any]]) -> list[tuple[str, str | None]]:
    """Outcome and code of every verdict, in order."""
    return [(each["outcome"], each["code"]) for body in bodies for each in body.get("verdicts", ())]


def final_size(bodies: Sequence[Mapping[str, Any]]) -> Decimal:
    """What the account of the deployment holds at its end."""
    after = [body["after"] for body in bodies if "after" in body][-1]
    return Decimal(after["positions"].get("BTC", {}).get("size", "0"))
