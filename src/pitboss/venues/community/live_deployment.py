"""Opens a deployment of a community skill: an agent on the forum in the settings, under the agent id that `--account` names."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.plain_http import check_plain_http
from pitboss.runs.live_deployment import DeployRequest, LiveDeployment
from pitboss.venues.community.addresses import split_address
from pitboss.venues.community.live import CommunityDeployment, CommunityLive, open_community
from pitboss.venues.community.runner_token import TOKEN_NAME, runner_token
from pitboss.venues.community.settings import CommunitySettings


def check_deployment(workspace: Workspace, deploy: DeployRequest) -> dict[str, Any]:
    """Refuse a deployment without a forum, an agent id or a token; returns what is stored with its run."""
    url = _server_url(workspace)
    if not deploy.account:
        raise UserError("a community agent needs its id on the forum", "give it as --account")
    runner_token(TOKEN_NAME, workspace.home)
    return {"server": url, "agent_id": deploy.account}


def _server_url(workspace: Workspace) -> str:
    url = CommunitySettings.of(workspace.settings).community_server_url.rstrip("/")
    if not url:
        raise UserError("there is no forum in the settings", "set community_server_url")
    parts = split_address(url, "community_server_url")
    check_plain_http(parts.scheme, parts.hostname, "community_server_url", workspace.settings.http_hosts)
    return url


@asynccontextmanager
async def open_live(live: LiveDeployment) -> AsyncIterator[CommunityLive]:
    """Open the forum and the chain of a deployment."""
    workspace, request = live.workspace, live.request
    token = runner_token(TOKEN_NAME, workspace.home)
    REDACTOR.add(token)
    deployment = CommunityDeployment(
        skill=live.skill,
        model=request.source,
        every_ms=live.skill.every_ms,
        server_url=_server_url(workspace),
        agent_id=live.deployment.account,
        token=token,
        max_cost_usd=request.max_cost_usd,
        max_cost_usd_per_day=live.most_usd_per_day,
        price_in=request.price_in,
        price_out=request.price_out,
        any_price=request.any_price,
    )
    async with open_community(workspace, deployment, live.notify) as side:
        yield side
