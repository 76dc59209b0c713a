"""`/api/first-steps`: the generated market and an example skill, for a first backtest in an empty workspace."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from pitboss.runs.first_steps import prepare_first_run
from pitboss.server.access.caller import Author, OwnWorkspace
from pitboss.server.problem import responses

router = APIRouter(prefix="/first-steps", tags=["data"], responses=responses())


class PreparedFirstRun(BaseModel):
    """The saved example skill, and a body for `POST /api/runs` that needs no key and costs nothing."""

    skill: str = Field(examples=["trend-thesis"])
    version: int
    run: dict[str, Any] = Field(examples=[{"skill": "trend-thesis", "from": "2025-01-20", "to": "2025-02-12"}])


@router.post("", response_model=PreparedFirstRun, operation_id="prepare_first_run", summary="Prepare a first backtest")
def prepare(caller: Author, workspace: OwnWorkspace) -> dict[str, Any]:
    """Write the generated market (it is not real) and save the example skill. Doing it again changes nothing."""
    del caller
    prepared = prepare_first_run(workspace)
    return {"skill": prepared.skill, "version": prepared.version, "run": prepared.request()}
