"""Whether a run calls a model, and opening its model connection. The connection itself is built by `model_stack`.

`model_stack` is imported only when a model is called: it loads keys, prices, limits and caches.
"""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.trace import SILENT, Tracer
from pitboss.models import catalog
from pitboss.models.endpoint import ENDPOINT
from pitboss.models.providers import LOCAL, REPLAY
from pitboss.sim.request import BacktestRequest
from pitboss.skill.schema import SkillDocument

if TYPE_CHECKING:
    from pitboss.bootstrap.model_stack import ModelConnection

NO_PARAMS: Mapping[str, Any] = MappingProxyType({})


def is_model(request: BacktestRequest) -> bool:
    """Whether the decider needs a model connection."""
    return request.decisions is None and catalog.describe(request.source).is_model


def may_cost(request: BacktestRequest) -> bool:
    """Whether replies may cost money: all except those of programs, files, replays and local models."""
    return is_model(request) and request.source.partition("/")[0] not in (LOCAL, REPLAY)


def check(workspace: Workspace, request: BacktestRequest, params: Mapping[str, Any] = NO_PARAMS) -> None:
    """Refuse a model that cannot be called, before anything is stored. `params` are those of a stored run."""
    if is_model(request):
        from pitboss.bootstrap.model_stack import check_model

        check_model(workspace, request, params)


def check_unchanged(workspace: Workspace, params: Mapping[str, Any]) -> None:
    """Refuse to resume a run if the environment now names another model than the one that it began with."""
    if params.get(ENDPOINT):
        from pitboss.bootstrap.model_stack import check_endpoint

        check_endpoint(workspace, params)


def model_params(workspace: Workspace, request: BacktestRequest, skill: SkillDocument) -> dict[str, Any]:
    """What is stored with a run about its model: how it is made to decide, and which server answers."""
    if not is_model(request):
        return {"manner": None}
    from pitboss.bootstrap.model_stack import new_endpoint, policy_of

    endpoint = new_endpoint(workspace, request)
    return {
        "manner": policy_of(workspace, request, skill).plain(),
        **({} if endpoint is None else {ENDPOINT: asdict(endpoint)}),
    }


def model_name(request: BacktestRequest, params: Mapping[str, Any]) -> str:
    """The name under which a run is stored: the provider and its model, also for `llm/`."""
    stored = params.get(ENDPOINT)
    return stored["name"] if stored else request.source


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
