"""The models of a campaign by name: the hostile one, the stand-in, and real ones, connected for its duration.

A real model uses the same stack as any run: key, price, limits, a cache, and one budget for all its runs. Its database is
temporary; only keys and local models are read from the user's workspace.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from pitboss.bootstrap import decider_source
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.ports import Model
from pitboss.models import catalog
from pitboss.redteam.attack_setup import AttackSetup, CampaignModel
from pitboss.redteam.attacks import Attack
from pitboss.redteam.campaign import HIJACKED, hostile_campaign_model, standin_campaign_model
from pitboss.sim.request import BacktestRequest

CONCURRENT_RUNS = 8
"""Concurrent runs of a real model."""


def check(names: Sequence[str]) -> bool:
    """Refuse models that cannot be attacked; returns whether any is a real model."""
    real = False
    for name in names:
        if name == HIJACKED:
            continue
        entry = catalog.describe(name)
        if entry.is_policy or name.startswith(f"{catalog.REPLAY}/"):
            raise UserError(f"{name} reads no text, so no text can mislead it", "name a model, or hijacked")
        real |= entry.is_model
    return real


@asynccontextmanager
async def connected_models(
    names: Sequence[str], setup: AttackSetup, settings: Settings, folder: Path, money: BacktestRequest
) -> AsyncIterator[list[CampaignModel]]:
    """The models of these names. `money` is a request with the user's price and budget options."""
    async with AsyncExitStack() as stack:
        campaign_models: list[CampaignModel] = []
        real = [name for name in names if name != HIJACKED and catalog.describe(name).is_model]
        budget_usd = None if money.max_cost_usd is None else money.max_cost_usd / max(1, len(real))
        workspace: Workspace | None = None
        for name in names:
            if name == HIJACKED:
                campaign_models.append(hostile_campaign_model(setup))
            elif name not in real:
                campaign_models.append(standin_campaign_model(setup))
            else:
                if workspace is None:
                    workspace = stack.enter_context(_workspace(settings, folder))
                campaign_models.append(await _connected(stack, workspace, setup, name, money, budget_usd))
        yield campaign_models


def _workspace(settings: Settings, folder: Path) -> Workspace:
    temporary = open_workspace(settings.model_copy(update={"home": folder, "database_url": "", "mcp_catalog": None}))
    return replace(temporary, home=settings.home)


async def _connected(
    stack: AsyncExitStack,
    workspace: Workspace,
    setup: AttackSetup,
    name: str,
    money: BacktestRequest,
    budget_usd: Decimal | None,
) -> CampaignModel:
    request = replace(
        setup.request,
        model=name,
        max_cost_usd=budget_usd,
        price_in=money.price_in,
        price_out=money.price_out,
        any_price=money.any_price,
    )
    decider_source.check(workspace, request)
    saved = workspace.skills.save(setup.skill.name, setup.skill_digest, codec.dumps(setup.skill.normal()))
    run_id = workspace.runs.create(saved.id, saved.version, name, {}, "")
    workspace.runs.claim(run_id)
    connection = await decider_source.open_model(stack, workspace, request, setup.skill, run_id)
    assert connection is not None

    def make(attack: Attack | None, seed: str) -> Model:
        del attack, seed
        return connection.model

    return CampaignModel(name, make, connection.policy, CONCURRENT_RUNS, REDACTOR.redact)
