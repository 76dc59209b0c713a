"""`/api/compare`: several runs side by side."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from pitboss.runs.comparison import MOST_RUNS, comparison
from pitboss.server.access.caller import OwnWorkspace, Viewer
from pitboss.server.api.lookup import named_run
from pitboss.server.api.run_access import Reader
from pitboss.server.api.run_documents import EXAMPLE_ID, RunDifference, RunSummary
from pitboss.server.problem import responses

router = APIRouter(tags=["runs"], responses=responses(404))


class ComparedRun(RunSummary):
    """A run of a comparison."""

    label: str = Field(examples=["A"], description="What the comparison calls it.")


class ComparedInput(BaseModel):
    """An input that is not the same in all runs; null where a run has no such input."""

    name: str = Field(examples=["skill.risk.max_leverage"])
    values: list[str | None] = Field(examples=[["3", "5"]])


class ComparedMetric(BaseModel):
    """A metric of each run, in the order of the runs; null where a run does not have it."""

    metric: str = Field(examples=["total_return_pct"])
    label: str = Field(examples=["Return"])
    form: str
    values: list[float | None] = Field(examples=[[3.4, -1.2]])
    intervals: list[Any] = Field(description="The 95 % intervals, where the metric has them.")
    differences: list[float | None] = Field(
        examples=[[None, -4.6]], description="The rounded value less the rounded value of the first run."
    )


class ComparedPair(BaseModel):
    """The final equity of one run relative to another, over the same days."""

    first: str = Field(examples=[EXAMPLE_ID])
    second: str
    percent: float
    interval: list[float] | None = Field(description="It holds for all pairs at once (95 %).")
    p: float | None
    told_apart: bool = Field(description="Whether the difference is significant.")


class DecisionSide(BaseModel):
    """What one run decided at a tick."""

    words: str = Field(examples=["open long BTC for $500.00 at 2×"])
    reason: str
    seq: int = Field(description="The number of the record.")


class DifferingDecision(BaseModel):
    """A tick at which two runs decided differently."""

    tick_at: str = Field(examples=["2025-06-03T08:00:00Z"])
    sentence: str = Field(examples=["at 2025-06-03 08:00 A: open long BTC for $500.00 at 2×; B: held"])
    sides: list[DecisionSide] = Field(description="Of the first run, then of the second.")


class DifferingDecisions(BaseModel):
    """The decisions of another run against those of the first."""

    first: str = Field(examples=[EXAMPLE_ID])
    second: str
    differing: int = Field(description="How many of the common ticks differ.")
    decisions: list[DifferingDecision] = Field(description="The first of them.")
    why_not: str = Field(description="Why they cannot be compared; empty if they can.")


class ComparisonDocument(BaseModel):
    """Runs side by side."""

    runs: list[ComparedRun]
    inputs: list[ComparedInput]
    metrics: list[ComparedMetric]
    pairs: list[ComparedPair]
    days: int
    unpaired: str = Field(description="Why the runs are not compared in pairs; empty if they are.")
    interval_meaning: str = Field(description="What the intervals of the pairs are.")
    decisions: list[DifferingDecisions]
    difference: RunDifference | None = Field(description="Of two runs: where they differ first.")


@router.get("/compare", operation_id="compare_runs", summary="Compare several runs")
def compare_runs(
    caller: Viewer,
    workspace: OwnWorkspace,
    reader: Reader,
    run: Annotated[list[str], Query(min_length=2, max_length=MOST_RUNS, description="Ids of the runs.")],
) -> ComparisonDocument:
    """What differs in inputs, metrics, results over the same days and decisions; of two runs also the first record that differs."""
    del caller
    runs = [named_run(workspace, run_id) for run_id in run]
    return ComparisonDocument.model_validate(comparison(workspace, runs, partial(reader.indexed.index, workspace)))
