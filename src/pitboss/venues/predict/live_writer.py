"""Where the orders of a live run go: to the paper venue, or through the Sui writer to the chain."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal

from pitboss.bootstrap.machine import SystemClock
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import Instant
from pitboss.engine.execute import Broker
from pitboss.live.world_source import WorldSource
from pitboss.venues.predict.agent import caps_of
from pitboss.venues.predict.broker import PredictPaper
from pitboss.venues.predict.case import dusdc
from pitboss.venues.predict.data.market_watch import MarketWatch
from pitboss.venues.predict.deployment import PredictDeployment
from pitboss.venues.predict.desk import Desk
from pitboss.venues.predict.indexer_source import unsettled_markets
from pitboss.venues.predict.live_feed import LiveFeed, predict_settings
from pitboss.venues.predict.observed_world import observe_markets
from pitboss.venues.predict.portfolio import equity
from pitboss.venues.predict.state import ACCOUNT, QUOTE, contracts, open_world

VAULT = 1_000_000
"""Balance of the paper vault of scheduled markets, in quote units."""


@dataclass(frozen=True, slots=True)
class LiveWriter:
    """The broker of a run, the source of its world, and the account with which a new run begins."""

    broker: Broker
    source: WorldSource
    desk: Desk
    equity: Decimal
    begin: Callable[[Instant], None] = lambda since: None
    """Called once with the last tick that the stored account includes."""
    identity: Mapping[str, str] = field(default_factory=dict[str, str])
    """Whose account it is; a start resumes only a run of the same."""
    notes: tuple[str, ...] = ()
    """Facts about the account for the first lines of output."""


@asynccontextmanager
async def open_live_writer(
    workspace: Workspace, deployment: PredictDeployment, feed: LiveFeed, notify: Callable[[str], None]
) -> AsyncIterator[LiveWriter]:
    """Open the writer of a run for the duration of the block. Whatever would prevent every order is raised here."""
    if deployment.writer == "paper":
        desk = Desk(open_world(VAULT * QUOTE, int(deployment.equity * QUOTE)))
        yield LiveWriter(PredictPaper(), feed.source, desk, deployment.equity)
        return
    from pitboss.venues.predict.sui.dry_run import DryRunSui
    from pitboss.venues.predict.sui_setup import agent_object, open_writer
    from pitboss.venues.predict.sui_source import SuiSource, chain_desk

    watch, indexer = feed.watch, feed.indexer
    assert watch is not None, "scheduled markets are not on the chain"
    assert indexer is not None
    predict, caps = predict_settings(workspace.settings, deployment), caps_of(deployment.skill)
    predict = predict.model_copy(update={"predict_id": indexer.predict_id})
    async with open_writer(workspace.settings, workspace.database, caps, predict=predict) as broker:
        clock, manager_id = SystemClock(), broker.sender.objects.manager
        balance = await broker.sender.check()
        positions = await indexer.positions(manager_id)
        desk = await _priced(chain_desk(balance, positions, clock.now()), watch)
        source = SuiSource(
            watch,
            indexer,
            broker,
            caps,
            clock.now,
            agent_object(predict),
            notify,
            resolves_orders=not deployment.dry_run,
        )

        await source.read_flags()

        def begin(since: Instant) -> None:
            source.since = since

        position_count = len(desk.world.accounts[ACCOUNT].positions)
        note = (
            f"{predict.sui_network}: manager {manager_id} holds {dusdc(balance)} DUSDC and {position_count} positions; "
            f"gas is at most {predict.sui_gas_budget:,} MIST a transaction"
        )
        yield LiveWriter(
            DryRunSui(broker) if deployment.dry_run else broker,
            source,
            desk,
            contracts(equity(desk.world)),
            begin,
            {"network": predict.sui_network, "manager_id": manager_id},
            (note,),
        )


async def _priced(desk: Desk, watch: MarketWatch) -> Desk:
    """Return the desk with the markets of its positions, so that they have a value."""
    watch.unsettled = unsettled_markets(desk)
    if watch.unsettled:
        await watch.look()
    newest = watch.newest
    if newest is None:
        return desk
    step = observe_markets(desk.world, newest.oracles, newest.terms, newest.vault, newest.at, pays_out=False)
    return Desk(step.world)
