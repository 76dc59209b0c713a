"""`/api/venues` and `/api/deployments`: the installed venues, and the live runs of this workspace."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from pitboss.runs.listing import live_runs
from pitboss.runs.venues import installed, venue_named
from pitboss.server.access.caller import OwnWorkspace, Viewer
from pitboss.server.api.run_documents import EXAMPLE_ID, RunStatus
from pitboss.server.problem import responses

router = APIRouter(responses=responses())


class VenueDocument(BaseModel):
    """An installed venue."""

    name: str = Field(examples=["perp"])
    package: str = Field(examples=["pitboss"])
    version: str
    summary: str
    money: str = Field(examples=["USD"], description="The unit of its accounts.")
    has_account: bool
    uses_bars: bool
    can_be_blind: bool
    judged_by: str = Field(examples=["total_return_pct"], description="The metric that ranks trials by default.")
    policies: dict[str, str] = Field(examples=[{"hold": "never trades"}])


class DeploymentDocument(BaseModel):
    """A live run."""

    deployment_id: str = Field(examples=[EXAMPLE_ID])
    run_id: str = Field(examples=[EXAMPLE_ID])
    venue: str = Field(examples=["predict"])
    mode: str = Field(examples=["paper"])
    skill: str
    model: str
    status: RunStatus
    started_at: str | None
    finished_at: str | None
    silent_s: int | None = Field(description="Seconds since it last committed a record; null if it is not active.")
    cost_usd: float | None


@router.get("/venues", tags=["catalogue"], operation_id="list_venues", summary="List the installed venues")
def list_venues(caller: Viewer) -> list[VenueDocument]:
    """Every installed venue with what its runs have."""
    del caller
    return [_venue(name) for name in installed()]


def _venue(name: str) -> VenueDocument:
    entry, venue = installed()[name], venue_named(name)
    facts: dict[str, Any] = {
        fact: getattr(venue, fact)
        for fact in ("summary", "money", "has_account", "uses_bars", "can_be_blind", "judged_by")
    }
    policies = dict(venue.policies())
    return VenueDocument(name=name, package=entry.distribution, version=entry.version, policies=policies, **facts)


@router.get("/deployments", tags=["deployments"], operation_id="list_deployments", summary="List live runs")
def list_deployments(caller: Viewer, workspace: OwnWorkspace) -> list[DeploymentDocument]:
    """The live runs that are stored in this workspace, newest first: active ones and ended ones."""
    del caller
    return [DeploymentDocument(**document) for document in live_runs(workspace)]
