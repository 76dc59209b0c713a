"""Who decides in a run: a program, or somebody outside who has to be connected first.

The connection itself, with its keys, prices, limits and caches, is `line.py`, and is loaded only where there is one.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.trace import SILENT, Tracer
from pitboss.models import catalog
from pitboss.sim.request import BacktestRequest, PreparedRun

if TYPE_CHECKING:
    from pitboss.bootstrap.model_stack import ModelConnection

P = TypeVar("P", bound=PreparedRun)


def is_model(request: BacktestRequest) -> bool:
    """Whether somebody outside this program decides, who has to be connected first."""
    return request.decisions is None and catalog.describe(request.source).is_model


def may_cost(request: BacktestRequest) -> bool:
    """Whether answers may have to be paid for: all but programs, files of decisions, replays and models of this machine."""
    return is_model(request) and request.source.partition("/")[0] not in (catalog.LOCAL, catalog.REPLAY)


def check(workspace: Workspace, request: BacktestRequest) -> None:
    """Refuse what cannot work before anything is stored."""
    if is_model(request):
        from pitboss.bootstrap.model_stack import check_line

        check_line(workspace, request)


def manner(workspace: Workspace, assembly: PreparedRun) -> dict[str, Any] | None:
    """How a run's model is made to decide, kept with the run so that a replay asks in the same way."""
    if not is_model(assembly.request):
        return None
    from pitboss.bootstrap.model_stack import manner_of

    return manner_of(workspace, assembly)


@asynccontextmanager
async def connected(
    workspace: Workspace, assembly: P, run_id: str, tracer: Tracer = SILENT
) -> "AsyncIterator[tuple[P, ModelConnection | None]]":
    """The backtest with its model connected, for the length of a block; programs need no line."""
    request = assembly.request
    if not is_model(request):
        yield assembly, None
        return
    from pitboss.bootstrap.model_stack import open_line

    async with AsyncExitStack() as stack:
        line = await open_line(stack, workspace, assembly, run_id, tracer)
        yield line.bind(assembly), line
