"""`/api/models`: the names that a skill may give as its model."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from pitboss.runs.model_list import model_rows
from pitboss.server.access.caller import OwnWorkspace
from pitboss.server.problem import responses

router = APIRouter(prefix="/models", tags=["catalogue"], responses=responses())


class ListedModel(BaseModel):
    """A model, or a provider of models. A price of null is not known here; it depends on the model."""

    name: str = Field(examples=["standin/analyst"])
    kind: str = Field(examples=["standin"])
    summary: str
    language_model: bool
    price_usd: float | None = Field(examples=[0])
    host: str | None = None
    key: str | None = Field(None, description="The name of the key that is set, never the key itself.")


@router.get(
    "",
    response_model=list[ListedModel],
    response_model_exclude_unset=True,
    operation_id="list_models",
    summary="List models",
)
def list_models(workspace: OwnWorkspace) -> list[dict[str, Any]]:
    """The list of `pitboss models list`."""
    return model_rows(workspace.home)
