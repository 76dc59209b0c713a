"""What is checked when a perp skill is deployed: what it says about its account, before anything is stored."""

from typing import Any

from pitboss.bootstrap.trading_accounts import account_named
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import MINUTE_MS
from pitboss.runs.live_deployment import DeployRequest
from pitboss.runs.live_preflight import require_preflight
from pitboss.venues.perp.exchange_address import exchange_url
from pitboss.venues.perp.hyperliquid.feed_state import BASE_INTERVAL
from pitboss.venues.perp.live_preflight import is_local


def check_deployment(workspace: Workspace, deploy: DeployRequest) -> dict[str, Any]:
    """Refuse a deployment without the account that its mode needs; returns what is stored with its run."""
    if deploy.skill.every_ms % MINUTE_MS:
        raise UserError(
            "a deployment ticks at whole minutes: its bars are those of a minute", "set schedule.every to 1m or more"
        )
    if deploy.mode == "paper":
        if deploy.account:
            raise UserError("paper money has no account", "leave --account out, or deploy in mode shadow or live")
    elif not deploy.account:
        raise UserError(
            f"mode {deploy.mode} needs an account", "add --account; `pitboss live accounts list` lists them"
        )
    else:
        account = account_named(workspace.home, deploy.account, "perp", workspace.owner)
        if deploy.mode == "live" and account.network == "mainnet" and not is_local(exchange_url(workspace.settings)):
            require_preflight(workspace, deploy.account, account, deploy.skill)
    url = exchange_url(workspace.settings)
    return {"data_venue": "hyperliquid", "base_interval": BASE_INTERVAL, "hyperliquid_url": url}
