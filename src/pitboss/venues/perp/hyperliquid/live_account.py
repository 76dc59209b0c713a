"""Opens the account of a deployment on Hyperliquid: its transport, its signer, its stored orders, and the broker over them.

Everything is checked before the first tick: the signing process must hold an agent's key for exactly this account and network,
and the address of the API must belong to that network.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import NoReturn

from pitboss.bootstrap.machine import stopwatch, unit_random
from pitboss.bootstrap.trading_accounts import TradingAccount
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.money import ZERO
from pitboss.runs.live_deployment import LiveDeployment
from pitboss.signer.hyperliquid.client import HyperliquidSignerClient, HyperliquidSignerState
from pitboss.venues.perp.hyperliquid.account_news import AccountNews
from pitboss.venues.perp.hyperliquid.account_reader import AccountReader, VenueAccount, VenueClock, agent_problem
from pitboss.venues.perp.hyperliquid.account_stream import AccountStream
from pitboss.venues.perp.hyperliquid.broker import HyperliquidBroker
from pitboss.venues.perp.hyperliquid.exchange_access import ExchangeAccess
from pitboss.venues.perp.hyperliquid.exchange_client import ExchangeClient
from pitboss.venues.perp.hyperliquid.info_client import HyperliquidInfo
from pitboss.venues.perp.hyperliquid.order_building import AccountSetup
from pitboss.venues.perp.hyperliquid.order_sender import FencedSender
from pitboss.venues.perp.hyperliquid.order_store import StoredOrders
from pitboss.venues.perp.hyperliquid.protection import Protector
from pitboss.venues.perp.hyperliquid.rate_budget import RateBudget
from pitboss.venues.perp.hyperliquid.reconcile import MarkSource, Reconciler
from pitboss.venues.perp.hyperliquid.transport import MAINNET_URL, TESTNET_URL
from pitboss.venues.perp.hyperliquid.universe import read_universe
from pitboss.venues.perp.hyperliquid.ws_connection import MOST_SNAPSHOT_BYTES, open_connector
from pitboss.venues.perp.state import TradingTerms

NETWORK_URLS = {MAINNET_URL: "mainnet", TESTNET_URL: "testnet"}


@dataclass(frozen=True, slots=True)
class AccountLine:
    """An open connection to one account, for reading."""

    info: HyperliquidInfo
    budget: RateBudget
    reader: AccountReader
    clock: VenueClock
    exchange: ExchangeClient

    async def read(self) -> VenueAccount:
        """Read the whole account once."""
        await self.clock.read()
        return await self.reader.read(self.clock.newest, 0)


def check_network(url: str, account: TradingAccount) -> None:
    """Refuse an account of one network with the API of the other."""
    network = NETWORK_URLS.get(url.rstrip("/"))
    if network is not None and network != account.network:
        raise UserError(
            f"the account is on {account.network}, and {url} is {network}", "change hyperliquid_url or the account"
        )


async def matching_signer(
    workspace: Workspace, account: TradingAccount, on_build: Callable[[str], None] = lambda build: None
) -> HyperliquidSignerState:
    """Return what the signing process says; refuse one that holds the key of another account or network, or that is halted."""
    state = await HyperliquidSignerClient(account.signer_socket(workspace.home), on_build=on_build).describe()
    if state.account.lower() != account.address.lower():
        raise UserError(
            f"the signer signs for {state.account}, not for {account.address}", "start the signer of this account"
        )
    if state.network != account.network:
        raise UserError(f"the signer signs for {state.network}, and the account is on {account.network}")
    if state.halt_reason:
        raise UserError(f"the signer is halted: {state.halt_reason}", "`pitboss signer lift --reason …` lifts it")
    return state


async def check_signer(
    workspace: Workspace, account: TradingAccount, info: HyperliquidInfo, on_build: Callable[[str], None]
) -> None:
    """Refuse a signing process that does not match the account, or that the exchange does not know as its agent."""
    state = await matching_signer(workspace, account, on_build)
    problem = await agent_problem(info, state.address, account.address)
    if problem:
        raise UserError(problem, "approve the address of the signer as an agent of the account")


def account_line(
    access: ExchangeAccess,
    address: str,
    now: Callable[[], Instant],
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> AccountLine:
    """Return the connection to the account of an address, within the rate budget of the market data. It can sign nothing."""
    clock = VenueClock(access.info, now)
    reader = AccountReader(access.info, address, clock, now)
    exchange = ExchangeClient(access.transport, access.budget, now, sleep)
    return AccountLine(access.info, access.budget, reader, clock, exchange)


async def with_account_fees(line: AccountLine, terms: TradingTerms) -> TradingTerms:
    """Return trading terms with the fee rates that the exchange has for the account; a rebate counts as no fee."""
    maker, taker = await line.reader.fee_rates()
    return replace(terms, maker_bps=max(ZERO, maker).scaleb(4), taker_bps=max(ZERO, taker).scaleb(4))


async def make_broker(
    live: LiveDeployment,
    line: AccountLine,
    account: TradingAccount,
    symbols: tuple[str, ...],
    terms: TradingTerms,
    data_problem: Callable[[str], str] = lambda symbol: "",
) -> HyperliquidBroker:
    """Build the broker of a deployment's account. Its key is with the signing process."""
    workspace, deployment_id = live.workspace, live.deployment.id
    universe = read_universe(await line.info.post({"type": "meta"}))
    setup = AccountSetup(deployment_id, symbols, universe, terms)
    store = StoredOrders(workspace.database, deployment_id, workspace.now)
    signer = HyperliquidSignerClient(account.signer_socket(workspace.home), on_build=live.heard_signer)
    sender = FencedSender(account.network, store, signer, line.exchange, line.reader, line.clock, workspace.now)
    marks = MarkSource(line.info, setup, workspace.now)
    protector = Protector(setup, sender, workspace.now, alarm=live.alarm)
    reconciler = Reconciler(setup, sender, protector, marks, workspace.now, withdraws_opens=live.withdraws_opens)
    gate, now = live.open_refusal, workspace.now
    return HyperliquidBroker(setup, sender, reconciler, marks, line.budget, gate, now, data_problem)


@asynccontextmanager
async def followed_account(
    url: str, account: TradingAccount, news: AccountNews, *more: Awaitable[NoReturn]
) -> AsyncIterator[AccountStream]:
    """Follow the streams of an account for the duration of the block, with further endless tasks beside."""
    async with open_connector(url, MOST_SNAPSHOT_BYTES) as connect:
        stream = AccountStream(connect, account.address, news, elapsed=stopwatch, random=unit_random())
        async with stream.followed(*more):
            yield stream
