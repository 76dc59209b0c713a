"""`/api/compare`: several runs side by side."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from pitboss.jobs.comparison import MOST_RUNS, comparison
from pitboss.server.access.caller import OwnWorkspace, Viewer
from pitboss.server.api.lookup import named_run
from pitboss.server.api.run_documents import EXAMPLE_ID, RunDifference, RunSummary
from pitboss.server.problem import responses

router = APIRouter(tags=["runs"], responses=responses(404))


class ComparedMetric(BaseModel):
    """A metric of each run, in the order of the runs; null where a run does not have it."""

    metric: str = Field(examples=["total_return_pct"])
    label: str = Field(examples=["Return"])
    form: str
    values: list[float | None] = Field(examples=[[3.4, -1.2]])
    intervals: list[Any] = Field(description="The 95 % intervals, where the metric has them.")


class ComparedPair(BaseModel):
    """The final equity of one run relative to another, over the same days."""

    first: str = Field(examples=[EXAMPLE_ID])
    second: str
    percent: float
    interval: list[float] | None = Field(description="It holds for all pairs at once (95 %).")
    p: float | None
    told_apart: bool = Field(description="Whether the difference is significant.")


class ComparisonDocument(BaseModel):
    """Runs side by side."""

    runs: list[RunSummary]
    metrics: list[ComparedMetric]
    pairs: list[ComparedPair]
    days: int
    unpaired: str = Field(description="Why the runs are not compared in pairs; empty if they are.")
    difference: RunDifference | None = Field(description="Of two runs: where they differ first.")


@router.get("/compare", operation_id="compare_runs", summary="Compare several runs")
def compare_runs(
    caller: Viewer,
    workspace: OwnWorkspace,
    run: Annotated[list[str], Query(min_length=2, max_length=MOST_RUNS, description="Ids of the runs.")],
) -> ComparisonDocument:
    """Metrics with intervals, paired differences over the same days, and of two runs the first record that differs."""
    del caller
    runs = [named_run(workspace, run_id) for run_id in run]
    return ComparisonDocument.model_validate(comparison(workspace, runs))
