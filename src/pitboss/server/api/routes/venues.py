"""`/api/venues`: the installed venues."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from pitboss.runs.venues import installed, venue_named
from pitboss.server.access.caller import Viewer
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
