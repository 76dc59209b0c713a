"""Opens the guardian of a perp deployment for the watchdog: its account, its own connection, and its own signing process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pitboss.bootstrap.machine import unit_random
from pitboss.bootstrap.trading_accounts import account_named
from pitboss.bootstrap.workspace import Workspace
from pitboss.runs.venues import venue_named
from pitboss.signer.hyperliquid.client import HyperliquidSignerClient
from pitboss.skill.load import read_skill
from pitboss.store.deployments import Deployment
from pitboss.venues.perp.exchange_address import exchange_url
from pitboss.venues.perp.hyperliquid.exchange_access import open_access
from pitboss.venues.perp.hyperliquid.guardian import GuardedDeployment, HyperliquidGuardian, SignerCheck
from pitboss.venues.perp.hyperliquid.live_account import account_line, check_network
from pitboss.venues.perp.hyperliquid.order_store import StoredOrders
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.skill import PerpSkill


@asynccontextmanager
async def open_guardian(workspace: Workspace, deployment: Deployment) -> AsyncIterator[HyperliquidGuardian]:
    """Open the guardian of a deployment. The exchange is not asked before it is used."""
    account = account_named(workspace.home, deployment.account, deployment.venue, deployment.owner)
    url = exchange_url(workspace.settings)
    check_network(url, account)
    venue, run = venue_named(deployment.venue), workspace.runs.get(deployment.run_id)
    request = venue.request_of(run.params)
    assert isinstance(request, PerpRequest)
    guarded = GuardedDeployment(deployment.id, account, read_skill(run.params["skill"], PerpSkill), request)
    store = StoredOrders(workspace.database, deployment.id, workspace.now)
    signer = HyperliquidSignerClient(account.watchdog_socket(workspace.home))
    async with open_access(url, workspace.now, unit_random()) as access:
        line = account_line(access, account.address, workspace.now)
        yield HyperliquidGuardian(guarded, line, store, signer, SignerCheck(workspace, account), workspace.now)
