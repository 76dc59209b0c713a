"""`/api/runs/{id}/decisions` and `/equity`: what an agent decided at each tick, and what its account was worth."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from pitboss.core.instant import iso
from pitboss.report.chart_series import NO_SERIES
from pitboss.runs.explain import explain_record
from pitboss.runs.run_charts import equity_points
from pitboss.runs.venue import Venue
from pitboss.runs.venues import venue_of
from pitboss.server.access.caller import OwnWorkspace, Viewer
from pitboss.server.api.run_access import Conditions, IndexOfRun, NamedRun, SeriesOfRun, run_tag
from pitboss.server.api.tagged import NOT_MODIFIED, not_modified, tag_headers, tagged_json
from pitboss.server.problem import Problem, refused_as, responses
from pitboss.store.runs import Run

router = APIRouter(prefix="/runs", tags=["runs"], responses=responses(404))
MOST_SEQ = 2**53
HOLD = "Hold"


class DecisionRow(BaseModel):
    """One decision in a list: a proposal, a hold, or a span of holds."""

    row: int = Field(examples=[53], description="Its number among all rows of the run.")
    seq: int = Field(examples=[53], description="The number of its record.")
    place: int = Field(examples=[0], description="Which of the proposals of its tick it is, from 0.")
    tick_at: str = Field(examples=["2025-01-22T05:00:00Z"])
    until: str = Field(examples=["2025-01-22T05:00:00Z"], description="The last tick of a span of holds.")
    times: int = Field(examples=[1], description="How many ticks it stands for.")
    outcome: str = Field(examples=["refused"])
    action: str | None = Field(examples=["open_long"])
    symbol: str | None = Field(examples=["BTC"])
    code: str | None = Field(examples=["R3_POSITION_CAP"], description="The rule that refused it.")
    flags: list[str] = Field(examples=[["reduced"]])
    words: str = Field(examples=["open long BTC for $8,088.08 at 3×"], description="The proposal in words.")
    reason: str = Field(description="The agent's reason, shortened.")
    detail: str = Field(description="What the engine says about it, shortened.")
    cost_usd: float | None = Field(examples=[0.0021])


class DecisionPage(BaseModel):
    """Rows of a run that fulfil the conditions."""

    decisions: list[DecisionRow]
    next: int | None = Field(examples=[153], description="`after` of the next page; null at the end.")
    total: int = Field(examples=[8], description="How many rows fulfil the conditions.")


class DecisionDocument(BaseModel):
    """Everything that is stored of one decision."""

    model_config = ConfigDict(extra="allow")
    run_id: str
    seq: int
    kind: str = Field(examples=["tick"], description="`tick`, `span` of holds, or `close` of the run.")
    tick_at: str
    digest: str
    outcome: str


class EquityDocument(BaseModel):
    """The value of an account over time, with that of the baselines at the same instants."""

    at: list[str] = Field(examples=[["2025-01-20T00:05:00Z"]])
    equity_usd: list[float] = Field(examples=[[10_000.0]])
    baselines: dict[str, list[float]] = Field(
        examples=[{"buy_and_hold": [10_000.0], "cash": [10_000.0]}], description="None until it is final."
    )
    final: bool = Field(
        examples=[True], description="Whether the run has ended and its page is composed, some seconds after its end."
    )


@router.get(
    "/{run_id}/decisions",
    operation_id="list_decisions",
    summary="List the decisions of a run",
    response_model=DecisionPage,
    responses=NOT_MODIFIED,
)
def list_decisions(
    caller: Viewer,
    run: NamedRun,
    index: IndexOfRun,
    request: Request,
    conditions: Conditions,
    after: Annotated[int | None, Query(ge=-1, le=MOST_SEQ, description="Only rows after this `row`.")] = None,
    skip: Annotated[int, Query(ge=0, le=MOST_SEQ, description="How many rows to leave out at the beginning.")] = 0,
    newest: Annotated[bool, Query(description="The last rows, newest first.")] = False,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Response:
    """Decisions in time order: one row for each proposal, and one for each hold or span of holds."""
    del caller
    tag = run_tag(run, "decisions")
    if tag and (unchanged := not_modified(request, tag)):
        return unchanged
    matches = index.find(conditions)
    rest = matches[matches > after] if after is not None else matches
    if newest:
        rest = rest[::-1]
    numbers = rest[skip : skip + limit].tolist()
    venue = venue_of(run.params["skill"])
    document = {
        "decisions": [decision_row(index.row(number), venue) for number in numbers],
        "next": numbers[-1] if numbers and skip + limit < len(rest) else None,
        "total": len(matches),
    }
    return _tagged(request, document, tag)


@router.get(
    "/{run_id}/decisions/{seq}",
    operation_id="show_decision",
    summary="Everything of one decision",
    response_model=DecisionDocument,
    responses=NOT_MODIFIED,
)
def show_decision(run: NamedRun, seq: int, caller: Viewer, workspace: OwnWorkspace, request: Request) -> Response:
    """The prompt if it was stored, every step and tool call, the proposals, the verdicts with all margins, the receipts, the
    account before and after, and the cost. `seq` is the number of the record.
    """
    del caller
    tag = run_tag(run, seq)
    if tag and (unchanged := not_modified(request, tag)):
        return unchanged
    return _tagged(request, decision_values(workspace, run, seq), tag)


@router.get(
    "/{run_id}/equity",
    operation_id="equity_of_run",
    summary="The equity curve of a run",
    response_model=EquityDocument,
    responses=NOT_MODIFIED,
)
def equity_of_run(
    caller: Viewer,
    run: NamedRun,
    index: IndexOfRun,
    series: SeriesOfRun,
    request: Request,
    points: Annotated[
        int, Query(ge=2, le=100_000, description="About how many points; every extreme is kept.")
    ] = 1_000,
) -> Response:
    """Equity over time against the baselines. A venue without accounts has none."""
    del caller
    tag = run_tag(run, "equity", points)
    if tag and (unchanged := not_modified(request, tag)):
        return unchanged
    document = {**equity_points(index, series or NO_SERIES, points), "final": series is not None}
    return _tagged(request, {**document, "at": [iso(at) for at in document["at"]]}, tag if series else "")


def decision_values(workspace: Any, run: Run, seq: int) -> dict[str, Any]:
    """Everything of one decision, or 404."""
    if not 0 <= seq <= MOST_SEQ:
        raise Problem(404, "not_found", f"run {run.id} has no record {seq}")
    with refused_as(404, "not_found"):
        return explain_record(workspace, run, seq)


def decision_row(row: Mapping[str, Any], venue: Venue) -> dict[str, Any]:
    """A row of an index as its public document."""
    quiet = row["outcome"] == "noop" and row["action"] in (None, "no_op", "hold")
    return {
        **{name: row[name] for name in DecisionRow.model_fields if name != "words"},
        "tick_at": iso(row["tick_at"]),
        "until": iso(row["until"]),
        "words": HOLD if quiet else venue.describe_intent(row),
    }


def _tagged(request: Request, document: Any, tag: str) -> Response:
    """A document with the tag of a complete run, or else with one of its content."""
    response = tagged_json(request, document)
    if tag:
        response.headers.update(tag_headers(tag))
    return response
