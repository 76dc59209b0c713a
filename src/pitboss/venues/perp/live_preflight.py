"""The perp venue's part of a preflight: the exchange, the account on it, its signers, the clock and the stream. Nothing is signed."""

import asyncio
from decimal import Decimal, InvalidOperation
from urllib.parse import urlsplit

from pitboss.bootstrap.machine import unit_random
from pitboss.bootstrap.trading_accounts import TradingAccount
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import TransientError
from pitboss.core.instant import DAY_MS, MINUTE_MS, SECOND_MS, iso
from pitboss.core.money import HUNDRED
from pitboss.core.plain_http import names_this_machine
from pitboss.runs.checklist import Check, Refused, checked
from pitboss.signer.hyperliquid.client import HyperliquidSignerClient, HyperliquidSignerState
from pitboss.venues.perp.exchange_address import exchange_url
from pitboss.venues.perp.hyperliquid.account_reader import VenueAccount, agent_problem
from pitboss.venues.perp.hyperliquid.exchange_access import open_access
from pitboss.venues.perp.hyperliquid.guardian import SignerCheck
from pitboss.venues.perp.hyperliquid.live_account import (
    NETWORK_URLS,
    AccountLine,
    account_line,
    check_network,
    matching_signer,
)
from pitboss.venues.perp.hyperliquid.strict_json import fields_of, int_of, list_of, text_of
from pitboss.venues.perp.hyperliquid.ws_connection import open_connector
from pitboss.venues.perp.skill import PerpSkill

LEAST_BALANCE_USD = Decimal(20)
"""Twice the exchange's smallest order."""
MOST_SKEW_MS = SECOND_MS
AGENT_LEFT_MS = DAY_MS
"""How long the agent's approval must still hold: as long as a preflight does."""
STREAM_S = 10.0


def is_local(url: str) -> bool:
    """Return whether an address is this machine, where a fake exchange or a tunnel listens."""
    return names_this_machine(urlsplit(url).hostname or "")


async def preflight_checks(workspace: Workspace, account: TradingAccount, skill: PerpSkill | None) -> list[Check]:
    """Run the checks of the venue. One that depends on another that failed fails for its own reason."""
    checks: list[Check] = []
    url = exchange_url(workspace.settings)
    await checked(checks, "network", lambda: _network(url, account))
    async with open_access(url, workspace.now, unit_random()) as access:
        line = account_line(access, account.address, workspace.now)
        await checked(checks, "clock", lambda: _clock(line))
        balance = await checked(checks, "exchange account", lambda: _exchange_account(line, account))
        state = await checked(checks, "signer", lambda: _signer(workspace, account))
        if isinstance(state, HyperliquidSignerState):
            await checked(checks, "agent", lambda: _agent(line, state.address, account))
            if skill is not None and isinstance(balance, VenueAccount):
                await checked(checks, "caps", lambda: _caps(state, skill, balance))
        await checked(checks, "watchdog signer", lambda: _watchdog_signer(workspace, line, account))
    await checked(checks, "stream", lambda: _stream(url))
    return checks


async def _network(url: str, account: TradingAccount) -> str:
    check_network(url, account)
    if url.rstrip("/") not in NETWORK_URLS and not is_local(url):
        raise Refused(f"{url} is no address of {account.network} that is known")
    return f"{url} is this machine" if is_local(url) else f"{url} is {account.network}"


async def _clock(line: AccountLine) -> str:
    await line.clock.read()
    problem = line.clock.problem(MOST_SKEW_MS, MINUTE_MS)
    if problem:
        raise Refused(problem)
    return "the clock is within a second of the exchange's"


async def _exchange_account(line: AccountLine, account: TradingAccount) -> tuple[str, VenueAccount]:
    reply = fields_of(await line.info.post({"type": "userRole", "user": account.address}), "userRole")
    role = text_of(reply, "role")
    if role != "user":
        raise Refused(f"the exchange knows {account.address} as {role!r} and not as an account of its own")
    balance = await line.reader.summary()
    if balance.value < LEAST_BALANCE_USD:
        raise Refused(f"the account holds {balance.value} USD, and {LEAST_BALANCE_USD} are needed")
    orders = await line.reader.orders()
    return f"{balance.value} USD, {len(balance.positions)} positions, {len(orders)} open orders", balance


async def _signer(workspace: Workspace, account: TradingAccount) -> tuple[str, HyperliquidSignerState]:
    state = await matching_signer(workspace, account)
    return f"signs for {state.account} on {state.network} with agent {state.address}", state


async def _agent(line: AccountLine, address: str, account: TradingAccount) -> str:
    problem = await agent_problem(line.info, address, account.address)
    if problem:
        raise Refused(problem)
    rows = list_of(await line.info.post({"type": "extraAgents", "user": account.address}), "extraAgents")
    for row in rows:
        fields = fields_of(row, "an agent")
        if text_of(fields, "address").lower() == address.lower():
            until = int_of(fields, "validUntil")
            if until < line.clock.estimate() + AGENT_LEFT_MS:
                raise Refused(f"the approval of agent {address} ends at {iso(until)}")
            return f"agent {address} is approved until {iso(until)}"
    return f"agent {address} is approved; the exchange tells no end for one without a name"


async def _caps(state: HyperliquidSignerState, skill: PerpSkill, account: VenueAccount) -> str:
    """The signer must not allow an order that the skill forbids: it is what holds when everything else is hijacked."""
    try:
        signer_cap = Decimal(state.order_notional_usd)
    except InvalidOperation:
        raise Refused("the signer does not tell its caps") from None
    most = skill.risk.max_position_pct * account.value / HUNDRED
    if skill.risk.max_order_usd is not None:
        most = min(most, skill.risk.max_order_usd)
    if signer_cap > most:
        raise Refused(
            f"the signer allows orders of {signer_cap} USD, and the skill of {most.quantize(Decimal('0.01'))} USD"
        )
    return f"the signer allows orders of {signer_cap} USD, within the skill's {most.quantize(Decimal('0.01'))} USD"


async def _watchdog_signer(workspace: Workspace, line: AccountLine, account: TradingAccount) -> str:
    problem = await SignerCheck(workspace, account).problem()
    if problem:
        raise Refused(problem)
    state = await HyperliquidSignerClient(account.watchdog_socket(workspace.home)).describe()
    return "opens nothing; " + await _agent(line, state.address, account)


async def _stream(url: str) -> str:
    async with open_connector(url) as connect:
        try:
            async with asyncio.timeout(STREAM_S):
                socket = await connect()
                await socket.send('{"method":"ping"}')
                answer = await socket.receive()
                await socket.close()
        except (ConnectionError, TimeoutError) as error:
            raise TransientError(f"the stream cannot be used: {str(error) or 'no answer in time'}") from None
    if '"pong"' not in answer:
        raise Refused("the stream does not answer a ping")
    return "the stream answers"
