"""Models by their names, connected for the length of a campaign: the attacker's own, the stand-in, and real ones.

A real model goes through the gateway of every run: key, price, limits, one budget for all its runs, a cache. Its
database is a temporary one; of the user's workspace nothing but keys and local models is read.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from pitboss.agent.loop import ToolLoop
from pitboss.bootstrap import decider_source as gateway
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.ports import Model
from pitboss.models import catalog
from pitboss.redteam.attack_run import CampaignModel, CampaignSetup
from pitboss.redteam.attacks import Attack
from pitboss.redteam.campaign import hijacked, standin
from pitboss.redteam.hostile_model import NAME as HIJACKED
from pitboss.skill.digest import normal
from pitboss.venues.perp.assembly import Assembly, PerpRequest

MANY = 8
"""Runs of a real model that go on at the same time."""


def check(names: Sequence[str]) -> bool:
    """Refuse what cannot be attacked; whether any of them has to be connected."""
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
async def opened(
    names: Sequence[str], ground: CampaignSetup, settings: Settings, folder: Path, money: PerpRequest
) -> AsyncIterator[list[CampaignModel]]:
    """A line for each name. `money` is a request with the price and budget options that the user gave."""
    async with AsyncExitStack() as stack:
        lines: list[CampaignModel] = []
        real = [name for name in names if name != HIJACKED and catalog.describe(name).is_model]
        each = None if money.max_cost_usd is None else money.max_cost_usd / max(1, len(real))
        workspace: Workspace | None = None
        for name in names:
            if name == HIJACKED:
                lines.append(hijacked(ground))
            elif name not in real:
                lines.append(standin())
            else:
                if workspace is None:
                    workspace = stack.enter_context(_workspace(settings, folder))
                lines.append(await _connected(stack, workspace, ground, name, money, each))
        yield lines


def _workspace(settings: Settings, folder: Path) -> Workspace:
    temporary = open_workspace(settings.model_copy(update={"home": folder, "database_url": "", "mcp_catalog": None}))
    return replace(temporary, home=settings.home)


async def _connected(
    stack: AsyncExitStack,
    workspace: Workspace,
    ground: CampaignSetup,
    name: str,
    money: PerpRequest,
    each: Decimal | None,
) -> CampaignModel:
    request = replace(
        ground.request,
        model=name,
        max_cost_usd=each,
        price_in=money.price_in,
        price_out=money.price_out,
        any_price=money.any_price,
    )
    gateway.check(workspace, request)
    saved = workspace.skills.save(ground.skill.name, ground.skill_digest, codec.dumps(normal(ground.skill)))
    run_id = workspace.runs.create(saved.id, saved.version, name, {}, "")
    workspace.runs.claim(run_id)
    assembly = Assembly(request, ground.skill, ground.script, "redteam", "", True)
    ready, line = await stack.enter_async_context(gateway.connected(workspace, assembly, run_id))
    loop = ready.script.ports.decider
    assert isinstance(loop, ToolLoop)
    assert line is not None

    def make(attack: Attack | None, seed: str) -> Model:
        del attack, seed
        return loop.model

    return CampaignModel(name, make, loop.forcing, loop.rescue, MANY, REDACTOR.redact)
