"""The predict venue's part of a live run: its data, its writer, its ports and its status document."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pitboss.agent.loop import ToolLoop
from pitboss.bootstrap import decider_source
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import Instant
from pitboss.core.money import text
from pitboss.core.state import State
from pitboss.live.board import Entry
from pitboss.live.world_source import WorldSource
from pitboss.runs import live_run
from pitboss.runs.live_run import LiveRunResult
from pitboss.runs.live_session import Listener, LivePlan, LiveSide, LiveView
from pitboss.runs.venues import venue_named
from pitboss.sim.connections import Connections
from pitboss.skill.document import to_plain
from pitboss.tick import Ports
from pitboss.venues.predict.agent import decider_of, fallen_back, ports_of
from pitboss.venues.predict.deployment import PredictDeployment
from pitboss.venues.predict.desk import Desk
from pitboss.venues.predict.live_feed import LiveFeed, check_markets, open_feed
from pitboss.venues.predict.live_writer import LiveWriter, open_live_writer
from pitboss.venues.predict.ports import read_state
from pitboss.venues.predict.request import INDEXER, SURFACES_FITTED, SURFACES_PROTOCOL, PredictRequest
from pitboss.venues.predict.status import StatusSource

SCHEDULED = "scheduled"
"""The source of markets stored with a run without an indexer; runs of earlier versions, which have none, are such runs."""


async def run_live(workspace: Workspace, deployment: PredictDeployment, listener: Listener) -> LiveRunResult:
    """Start or resume a live run, until its number of ticks is reached or a stop is requested."""
    model, warning = fallen_back(deployment.model, workspace.settings)
    warnings = (*deployment.notes, *([warning] if warning else []))
    decider_of(deployment.skill, model)  # rejects an unknown policy before anything is stored
    decider_source.check(workspace, _request(deployment, model, deployment.equity, 0))
    check_markets(workspace.settings, deployment)

    @asynccontextmanager
    async def open_side(notify: Callable[[str], None]) -> AsyncIterator[LiveSide]:
        async with (
            open_feed(workspace.settings, deployment, notify) as feed,
            open_live_writer(workspace, deployment, feed, notify) as writer,
        ):
            plan = make_plan(deployment, model, writer, workspace.now(), (*warnings, *writer.notes))
            yield PredictLive(deployment, feed, writer, plan)

    return await live_run.run_live(workspace, open_side, deployment.host, deployment.port, listener)


@dataclass(frozen=True, slots=True)
class PredictLive:
    """Implements `LiveSide` with the feed and the writer of a deployment."""

    deployment: PredictDeployment
    feed: LiveFeed
    writer: LiveWriter
    plan: LivePlan

    @property
    def source(self) -> WorldSource:
        """The source of the markets and the account."""
        return self.writer.source

    @property
    def first_world(self) -> Desk:
        """The account that the writer begins with."""
        return self.writer.desk

    @property
    def first_memory(self) -> None:
        """Its agents remember nothing besides their world."""

    @property
    def history(self) -> None:
        """Its tools do not look back."""

    def read_state(self, plain: object) -> State:
        """Read a stored state."""
        return read_state(plain)

    async def begin(self, run_id: str, address: str, since: Instant) -> None:
        """Tell the writer up to which tick the account is stored."""
        del run_id, address
        self.writer.begin(since)

    def ports(self, connections: Connections) -> Ports:
        """The ports on live prices."""
        decider = decider_of(self.deployment.skill, self.plan.model, connections)
        return ports_of(
            self.deployment.skill,
            decider,
            self.writer.broker,
            lambda at: self.feed.spot.market.view(at),
            self.feed.tape,
            build_prompts=isinstance(decider, ToolLoop),
            every_ms=self.deployment.every_ms,
        )

    def has_failed(self) -> bool:
        """Whether the task that reads prices has ended."""
        return self.feed.polling.done()

    def raise_failure(self) -> None:
        """Raise its error."""
        self.feed.polling.result()

    def ticked(self, entry: Entry, world: Any) -> None:
        """Nothing is done after a commit."""
        del entry, world

    def status(self, view: LiveView) -> dict[str, Any]:
        """The fields of the original agent service, and further ones."""
        start = view.start
        source = StatusSource(
            self.deployment, start.model, start.run_id, view.board, self.feed, view.started_at, start.warnings
        )
        return source.document(view.now, view.next_at)


def make_plan(
    deployment: PredictDeployment, model: str, writer: LiveWriter, now: Instant, warnings: tuple[str, ...]
) -> LivePlan:
    """The plan of a live run."""
    identity: dict[str, Any] = {
        "mode": deployment.mode,
        "markets": SCHEDULED if deployment.scheduled else INDEXER,
        **writer.identity,
    }
    if deployment.writer == "paper":  # on the chain the account is what the manager holds
        identity["equity"] = text(deployment.equity)
    return LivePlan(
        venue=venue_named("predict"),
        skill=deployment.skill,
        request=_request(deployment, model, writer.equity, now),
        every_ms=deployment.every_ms,
        identity=identity,
        earlier_identity={"markets": SCHEDULED},
        params={
            "name": deployment.name,
            "surfaces_are": SURFACES_FITTED if deployment.scheduled else SURFACES_PROTOCOL,
            "equity": text(writer.equity),
        },
        begin=deployment.begin,
        ticks=deployment.ticks,
        most_usd_per_day=deployment.max_cost_usd_per_day,
        warnings=warnings,
    )


def _request(deployment: PredictDeployment, model: str, equity: Any, now: Instant) -> PredictRequest:
    """The request of the model connection. Speculation is off: a live tick cannot be asked ahead."""
    return PredictRequest(
        skill=to_plain(deployment.skill),
        from_at=now,
        to_at=now,  # the end is unknown, and an empty range prevents a replay of this run
        model=model,
        data_venue="pyth" if deployment.scheduled else INDEXER,
        equity_usd=equity,
        max_cost_usd=deployment.max_cost_usd,
        price_in=deployment.price_in,
        price_out=deployment.price_out,
        any_price=deployment.any_price,
        speculate="0",
    )
