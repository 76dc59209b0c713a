"""`/api/costs`: what was spent, by day, skill and model."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS
from pitboss.runs.costs import costs_document, first_day
from pitboss.server.access.caller import OwnWorkspace, Viewer
from pitboss.server.api.run_body import read_moment
from pitboss.server.problem import responses

router = APIRouter(tags=["costs"], responses=responses())
USUAL_DAYS = 30


class CostTotals(BaseModel):
    """What calls have cost together."""

    cost_usd: float = Field(examples=[1.25])
    uncertain_usd: float = Field(examples=[0.0], description="What may have been charged besides, without a reply.")
    calls: int = Field(examples=[812])
    unpriced_calls: int = Field(examples=[0], description="Calls of models without a known price.")


class DayCosts(CostTotals):
    """The costs of a UTC day."""

    day: str = Field(examples=["2026-11-17"])


class SkillCosts(CostTotals):
    """The costs of a skill."""

    skill: str = Field(examples=["trend-thesis"])


class ModelCosts(CostTotals):
    """The costs of a model."""

    model: str = Field(examples=["openai/gpt-5-mini"])


class CostRow(DayCosts, SkillCosts, ModelCosts):
    """The costs of one model for one skill on one day."""


class DailyBudget(BaseModel):
    """Today's budget. Without a limit `daily_usd` and `left_usd` are null."""

    day: str = Field(examples=["2026-11-17"])
    daily_usd: float | None = Field(examples=[5.0])
    spent_usd: float
    reserved_usd: float = Field(description="Held back for runs that have not ended.")
    left_usd: float | None


class CostsDocument(CostTotals):
    """The spending of a range of days."""

    model_config = ConfigDict(populate_by_name=True)

    from_: str = Field(alias="from", examples=["2026-10-19T00:00:00Z"])
    to: str = Field(examples=["2026-11-18T00:00:00Z"])
    budget: DailyBudget
    days: list[DayCosts]
    skills: list[SkillCosts]
    models: list[ModelCosts]
    rows: list[CostRow]


@router.get("/costs", operation_id="show_costs", summary="What was spent")
def show_costs(
    caller: Viewer,
    workspace: OwnWorkspace,
    from_: Annotated[
        str, Query(alias="from", max_length=40, description="First day (UTC); by default 30 days back.")
    ] = "",
    to: Annotated[str, Query(max_length=40, description="End, exclusive; by default the end of today.")] = "",
) -> CostsDocument:
    """All paid replies, on the day of the reply, and uncertain charges, on the day on which their run began."""
    del caller
    now = workspace.now()
    from_at = read_moment("from", from_, lambda: now) if from_ else first_day(now, USUAL_DAYS)
    to_at = read_moment("to", to, lambda: now) if to else now - now % DAY_MS + DAY_MS
    if to_at <= from_at:
        raise UserError("the range is empty: to is not after from", "choose a later `to`")
    return CostsDocument.model_validate(costs_document(workspace, from_at, to_at))
