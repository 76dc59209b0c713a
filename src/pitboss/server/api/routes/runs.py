"""`/api/runs`: stored and queued runs."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from pitboss.runs.listing import short
from pitboss.server.access.caller import OwnWorkspace
from pitboss.server.problem import responses

router = APIRouter(prefix="/runs", tags=["runs"], responses=responses())


@router.get("")
def list_runs(workspace: OwnWorkspace, limit: Annotated[int, Query(ge=1, le=500)] = 50) -> list[dict[str, Any]]:
    """Runs, newest first."""
    return [short(run, workspace.now()) for run in workspace.runs.listing(limit).runs]
