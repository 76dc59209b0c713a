"""The perp venue's part of a deployment: its feed, its account and broker, its ports and its status document.

Paper: the simulated account on live bars. Shadow and live read the account from the exchange (`hyperliquid/`). The ports of a
tick are built by the same function as those of a backtest.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from pitboss.bootstrap.trading_accounts import TradingAccount, account_named
from pitboss.core.errors import InvariantError, TransientError, UserError
from pitboss.core.instant import DAY_MS, SECOND_MS, Instant, interval_ms, iso
from pitboss.core.money import ZERO, text
from pitboss.core.past import NO_PAST
from pitboss.core.receipt import Receipt
from pitboss.core.state import State, parse_state
from pitboss.engine.execute import Broker
from pitboss.live.board import Entry
from pitboss.live.halt_checks import HaltLimits
from pitboss.live.pace import pace
from pitboss.live.runner import nothing_to_close
from pitboss.live.schedule import schedule
from pitboss.live.world_source import WorldSource
from pitboss.runs.live_deployment import LiveDeployment
from pitboss.runs.live_session import LivePlan, LiveView
from pitboss.runs.venues import venue_named
from pitboss.sim.connections import Connections
from pitboss.sim.past import RunPast
from pitboss.tick import Ports
from pitboss.venues.perp.assembly import DECIDERS, make_ports, terms_of
from pitboss.venues.perp.broker import PaperBroker
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.exchange_address import exchange_url
from pitboss.venues.perp.hyperliquid.account_news import AccountNews
from pitboss.venues.perp.hyperliquid.account_reader import VenueAccount
from pitboss.venues.perp.hyperliquid.account_stream import AccountStream
from pitboss.venues.perp.hyperliquid.account_watch import AccountWatch
from pitboss.venues.perp.hyperliquid.agent_monitor import AgentMonitor
from pitboss.venues.perp.hyperliquid.broker import HyperliquidBroker
from pitboss.venues.perp.hyperliquid.feed_state import BASE_INTERVAL
from pitboss.venues.perp.hyperliquid.live_account import (
    account_line,
    check_network,
    check_signer,
    followed_account,
    make_broker,
    with_account_fees,
)
from pitboss.venues.perp.hyperliquid.live_source import ReportedSource
from pitboss.venues.perp.intents import TERMINAL
from pitboss.venues.perp.live_feeds import shared_feed
from pitboss.venues.perp.live_market import MarketFeed
from pitboss.venues.perp.paper_source import PaperSource
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.rules.r13_venue import CODE as VENUE_CODE
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.state import PerpWorld, Position, ReportedWorld, TradingTerms, halts_at, open_world
from pitboss.venues.perp.trade_memory import NO_MEMORY, PerpMemory

SETTLE_MS = 2 * SECOND_MS
"""How long after its slot a tick begins: bars arrive a moment after they have closed."""
ACCOUNT_MS = SECOND_MS
"""How often a live account is read between ticks: a limit order that was filled gets its stop at the next read."""
WITHDRAW_S = 5.0
"""How long the end of a deployment waits for its orders to be cancelled."""
LOSS_HALTS = {"daily_loss": "the loss limit of the day is reached", "drawdown": "the drawdown limit is reached"}


def live_intervals(skill: PerpSkill) -> tuple[str, ...]:
    """Return the intervals of the bars that a deployment of a skill needs: those of its prompts, and the base."""
    shown = {skill.context.bars_interval, *skill.context.timeframes()}
    return tuple(sorted({BASE_INTERVAL, *shown}, key=interval_ms))


def loss_limit(world: PerpWorld, at: Instant) -> str:
    """Return which loss limit of the account is reached while it still has positions; empty if none is.

    In a backtest, and on paper, which repeats a backtest exactly, positions stay open with their stops. With real money, and in
    the shadow of it, they are closed: the loss could go on without a bound.
    """
    reached = [halt for halt in halts_at(world, at) if halt in LOSS_HALTS]
    return LOSS_HALTS[reached[0]] if reached and world.positions else ""


@dataclass(frozen=True, slots=True)
class LiveAccount:
    """Where the account of a deployment is, and where its orders go."""

    source: WorldSource
    broker: Broker
    first_world: PerpWorld
    world_type: type[PerpWorld] = PerpWorld
    reread: Callable[[PerpWorld], Awaitable[tuple[PerpWorld, Sequence[Receipt]]]] | None = None
    """Reads the account again before a verdict; None where it changes at ticks only."""
    stream: AccountStream | None = None
    """The streams of an account at an exchange; None on paper."""


class PerpLive:
    """Implements `runs.live_session.LiveSide` for a deployment."""

    def __init__(self, live: LiveDeployment, feed: MarketFeed, terms: TradingTerms, account: LiveAccount) -> None:
        self._live = live
        self._feed = feed
        self._terms = terms
        self._account = account
        skill: PerpSkill = live.skill
        self._past = RunPast(TERMINAL) if skill.tool_names and not live.request.is_program else None
        period = skill.every_ms
        # On paper, and in the shadow, the account changes at ticks only, by the bars since the last one, as in a backtest.
        update_ms = ACCOUNT_MS if live.deployment.mode == "live" else None
        self.plan = LivePlan(
            venue=venue_named(live.deployment.venue),
            skill=skill,
            request=live.request,
            every_ms=period,
            identity={},
            most_usd_per_day=live.most_usd_per_day,
            pace=pace(schedule(period), update_ms, SETTLE_MS),
            halt_limits=HaltLimits(broker_code=VENUE_CODE),
            must_close=nothing_to_close if live.deployment.mode == "paper" else loss_limit,
            uses_mcp=True,
        )

    @property
    def source(self) -> WorldSource:
        """The source of the account."""
        return self._account.source

    @property
    def first_world(self) -> PerpWorld:
        """The account that a new deployment begins with."""
        return self._account.first_world

    @property
    def first_memory(self) -> Any:
        """The memory of an agent that has not traded yet."""
        return NO_MEMORY

    @property
    def history(self) -> RunPast | None:
        """What its tools look back on."""
        return self._past

    def read_state(self, plain: object) -> State:
        """Read a stored state."""
        return parse_state(plain, self._account.world_type, PerpMemory)

    async def begin(self, run_id: str, address: str, since: Instant) -> None:
        """Nothing: the account itself says up to which bar it is advanced."""
        del run_id, address, since

    def ports(self, connections: Connections) -> Ports:
        """Build the ports on live data."""
        live, skill = self._live, self._live.skill
        context = PerpPrompts(skill)
        request: PerpRequest = live.request
        decider = connections.decider or DECIDERS.named(
            request.source,
            skill,
            context,
            connections,
            request.seed,
            past=self._past or NO_PAST,
            retry_refused=skill.retry_refused,
        )
        started_at = schedule(skill.every_ms).before(live.run.created_at) + skill.every_ms
        return make_ports(
            request,
            skill,
            self._terms,
            decider,
            self._account.broker,
            lambda at: self._feed.market().view(at),
            started_at,
            self._feed.base_interval,
            connections,
            context,
            self._account.reread,
        )

    def has_failed(self) -> bool:
        """Whether the feed, or what follows the account, has ended for good."""
        stream = self._account.stream
        return self._feed.has_failed() or (stream is not None and stream.has_failed())

    def raise_failure(self) -> None:
        """Raise because the feed or what follows the account has ended."""
        raise TransientError(self._feed.trouble() or "the market data feed or the streams of the account have ended")

    def ticked(self, entry: Entry, world: Any) -> None:
        """Nothing is done after a commit."""
        del entry, world

    def _data_age_s(self, now: Instant) -> float | None:
        """Return the age of the oldest of the newest prices; None before there are any."""
        marked_at = [at for _, at in self._feed.marks().values()]
        return max(0, now - min(marked_at)) / SECOND_MS if marked_at else None

    def status(self, view: LiveView) -> dict[str, Any]:
        """Return the state of the deployment for the host's status page."""
        board, stream, broker = view.board, self._account.stream, self._account.broker
        return {
            "run_id": view.start.run_id,
            "model": view.start.model,
            "ticks": board.ticks,
            "acted": board.acted,
            "errors": board.errors,
            "missed": board.missed_slots,
            "cost_usd": None if board.cost_usd is None else float(board.cost_usd),
            "next_at": iso(view.next_at),
            "trouble": self._feed.trouble(),
            "data_age_s": self._data_age_s(view.now),
            "account_stream": None if stream is None else {"problem": stream.problem, "fills": stream.news.fills},
            "account": dict(board.account),
            "fees_bps": {"maker": text(self._terms.maker_bps), "taker": text(self._terms.taker_bps)},
            "actions_left": broker.actions_left if isinstance(broker, HyperliquidBroker) else None,
        }


@asynccontextmanager
async def open_live(live: LiveDeployment) -> AsyncIterator[PerpLive]:
    """Open the feed and the account of a deployment."""
    skill: PerpSkill = live.skill
    symbols = skill.context.sorted_symbols
    async with shared_feed(live.workspace, symbols, live_intervals(skill)) as feed:
        terms = terms_of(live.request, skill, feed.assets)
        if live.deployment.mode == "paper":
            yield paper_side(live, feed)
            return
        account, url = account_of(live), exchange_url(live.workspace.settings)
        check_network(url, account)
        if feed.access is None:
            raise InvariantError("a feed that was opened for an exchange has no access to it")
        line = account_line(feed.access, account.address, live.workspace.now)
        now, terms = live.workspace.now, await with_account_fees(line, terms)
        if live.deployment.mode == "shadow":
            async with followed_account(url, account, AccountNews(now)) as stream:
                yield shadow_side(live, feed, await line.read(), terms, stream)
            return
        await check_signer(live.workspace, account, line.info, live.heard_signer)
        broker = await make_broker(live, line, account, symbols, terms, feed.opening_problem)
        watch = AccountWatch(broker.reconciler, live.wake, now).run()
        agents = AgentMonitor(line.reader, live.alarm).run()
        try:
            async with followed_account(url, account, broker.reconciler.news, watch, agents) as stream:
                yield await live_side(live, feed, broker, terms, stream)
        finally:
            if live.withdraws_opens():
                with suppress(TimeoutError, UserError):
                    async with asyncio.timeout(WITHDRAW_S):
                        await broker.withdraw()


def account_of(live: LiveDeployment) -> TradingAccount:
    """Return the account that a deployment names."""
    deployment = live.deployment
    return account_named(live.workspace.home, deployment.account, deployment.venue, deployment.owner)


def paper_side(live: LiveDeployment, feed: MarketFeed) -> PerpLive:
    """Put together a deployment that trades on paper."""
    terms = terms_of(live.request, live.skill, feed.assets)
    return PerpLive(
        live, feed, terms, _paper_account(live, feed, terms, open_world(live.request.equity_usd, _first_day(live)))
    )


def shadow_side(
    live: LiveDeployment,
    feed: MarketFeed,
    reported: VenueAccount,
    terms: TradingTerms | None = None,
    stream: AccountStream | None = None,
) -> PerpLive:
    """Put together a deployment that begins with what an account holds, and trades on paper, by default on the request's terms."""
    terms = terms or terms_of(live.request, live.skill, feed.assets)
    return PerpLive(live, feed, terms, replace(_shadow_account(live, feed, terms, reported), stream=stream))


async def live_side(
    live: LiveDeployment,
    feed: MarketFeed,
    broker: HyperliquidBroker,
    terms: TradingTerms | None = None,
    stream: AccountStream | None = None,
) -> PerpLive:
    """Put together a deployment that trades on an account, by default on the request's terms; its first world is read here."""
    terms = terms or terms_of(live.request, live.skill, feed.assets)
    source = ReportedSource(broker, feed, stream, live.halt)
    first = (await broker.resolve(None)).world
    return PerpLive(live, feed, terms, LiveAccount(source, broker, first, ReportedWorld, source.reread, stream))


def _first_day(live: LiveDeployment) -> int:
    return live.run.created_at // DAY_MS


def _paper_account(live: LiveDeployment, feed: MarketFeed, terms: TradingTerms, first: PerpWorld) -> LiveAccount:
    source = PaperSource(feed, terms, live.skill.context.sorted_symbols)
    broker = PaperBroker(terms, live.request.decision_latency_ms, feed.opening_problem)
    return LiveAccount(source, broker, first)


def _shadow_account(live: LiveDeployment, feed: MarketFeed, terms: TradingTerms, reported: VenueAccount) -> LiveAccount:
    """Return a paper account that begins with what the live one holds; from then on its orders are filled on paper.

    Positions in symbols that the skill does not trade are left out, with their unrealised result counted as cash.
    """
    symbols = set(live.skill.context.sorted_symbols)
    traded = {symbol: each for symbol, each in reported.positions.items() if symbol in symbols}
    marks = {symbol: each.value / abs(each.size) for symbol, each in traded.items()}
    unrealised = sum((each.size * (marks[symbol] - each.entry) for symbol, each in traded.items()), ZERO)
    world = open_world(reported.value, _first_day(live))
    first = replace(
        world,
        cash=world.cash - unrealised,
        positions={
            symbol: Position(symbol, each.size, each.size * each.entry, reported.at) for symbol, each in traded.items()
        },
        leverage={symbol: each.leverage for symbol, each in traded.items()},
        marks=marks,
    )
    return _paper_account(live, feed, terms, first)
