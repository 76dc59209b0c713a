"""`/api/venues/{venue}/actions/{action}`: what an operator does on a page of a venue, such as approving a transaction."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from pitboss.runs.web_section import WebRequest, web_sections
from pitboss.server.access.caller import Operator, OwnWorkspace
from pitboss.server.problem import Problem, refused_as, responses

router = APIRouter(prefix="/venues", tags=["venues"])
Name = Annotated[str, Path(min_length=1, max_length=64, pattern="^[a-z][a-z0-9_-]*$")]


class ActionBody(BaseModel):
    """What the action is about."""

    model_config = ConfigDict(extra="forbid")

    target: Annotated[str, Field(min_length=1, max_length=200, examples=["3f2a91c04be7"])]


class ActionResult(BaseModel):
    """What was done, in words."""

    message: str = Field(examples=["approved 3f2a91c04be7"])


@router.post("/{venue}/actions/{action}", responses=responses(404, 409))
def act(venue: Name, action: Name, body: ActionBody, caller: Operator, workspace: OwnWorkspace) -> ActionResult:
    """Carry out an action of a venue's page."""
    for section in web_sections():
        for offered in section.actions:
            if (section.venue, offered.name) == (venue, action):
                with refused_as(409, "conflict"):
                    return ActionResult(message=offered.act(WebRequest(workspace, caller.owner, True), body.target))
    raise Problem(404, "not_found", f"the venue {venue} has no action {action}")
