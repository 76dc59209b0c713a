"""Whether a run calls a model, and opening its model connection. The connection itself is built by `model_stack`.

`model_stack` is imported only when a model is called: it loads keys, prices, limits and caches.
"""

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.trace import SILENT, Tracer
from pitboss.models import catalog
from pitboss.models.providers import LOCAL, REPLAY
from pitboss.sim.request import BacktestRequest
from pitboss.skill.schema import SkillDocument

if TYPE_CHECKING:
    from pitboss.bootstrap.model_stack import ModelConnection


def is_model(request: BacktestRequest) -> bool:
    """Whether the decider needs a model connection."""
    return request.decisions is None and catalog.describe(request.source).is_model


def may_cost(request: BacktestRequest) -> bool:
    """Whether replies may cost money: all except those of programs, files, replays and local models."""
    return is_model(request) and request.source.partition("/")[0] not in (LOCAL, REPLAY)


def check(workspace: Workspace, request: BacktestRequest) -> None:
    """Refuse a model that cannot be called, before anything is stored."""
    if is_model(request):
        from pitboss.bootstrap.model_stack import check_model

        check_model(workspace, request)


def manner(workspace: Workspace, request: BacktestRequest, skill: SkillDocument) -> dict[str, Any] | None:
    """How the model is made to decide; stored with the run so that a replay sends the same requests."""
    if not is_model(request):
        return None
    from pitboss.bootstrap.model_stack import forcing_params_of

    return forcing_params_of(workspace, request, skill)


async def open_model(
    stack: AsyncExitStack,
    workspace: Workspace,
    request: BacktestRequest,
    skill: SkillDocument,
    run_id: str,
    tracer: Tracer = SILENT,
) -> "ModelConnection | None":
    """Open the model connection of a run, closed with the stack; None for programs."""
    if not is_model(request):
        return None
    from pitboss.bootstrap.model_stack import open_connection

    return await open_connection(stack, workspace, request, skill, run_id, tracer)
