"""`/api/runs`: start, list, show, cancel, resume, fork, compare and verify runs. Files of runs are in `run_files.py`."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import ConfigDict, Field

from pitboss.core.errors import UserError
from pitboss.jobs.enqueue import enqueue_again, ensure_workers
from pitboss.jobs.submit import submit, submit_fork
from pitboss.runs.compare import compare
from pitboss.runs.fork import ForkChange
from pitboss.runs.listing import short
from pitboss.runs.new_request import repeated
from pitboss.runs.run import refuse_live, request_cancel
from pitboss.runs.stored import long_document
from pitboss.runs.verification import verify_stored
from pitboss.server.access.caller import Author, OwnWorkspace, Viewer
from pitboss.server.api.lookup import named_run, named_study, page_of_runs, run_cursor
from pitboss.server.api.run_body import BacktestBody, Confirmed, EstimateDocument, Override, Usd, confirmation
from pitboss.server.api.run_documents import (
    RunDifference,
    RunDocument,
    RunPage,
    RunState,
    RunStatus,
    Submitted,
    Verification,
)
from pitboss.server.api.tagged import NOT_MODIFIED, tagged_json
from pitboss.server.problem import refused_as, responses

router = APIRouter(prefix="/runs", tags=["runs"], responses=responses())


class NewRun(BacktestBody, Confirmed):
    """A backtest to be queued, and the consent to its cost."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"skill": "trend-thesis", "from": "2025-02-10", "to": "2025-03-10", "model": "policy/momentum"},
                {"skill": "trend-thesis", "from": "2025-02-10", "to": "2025-03-10", "confirm_usd": 7.5},
            ]
        }
    )
    priority: int = Field(0, ge=-1_000, le=1_000, description="Runs with a higher priority go first.")


class NewFork(Confirmed):
    """From where on a run is decided again, and what changes."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"at": "2025-02-20T12:00:00Z", "model": "policy/sma_cross"}]},
    )
    at: str = Field(
        min_length=1, max_length=40, description="The first tick to decide again: a time (UTC) or a record number."
    )
    model: str = Field("", max_length=300, description="Model to use from that tick on.")
    set: list[Override] = Field(default_factory=list, max_length=100, description="Fields of the skill to override.")
    max_cost_usd: Usd | None = None
    price_in: Usd | None = None
    price_out: Usd | None = None
    any_price: bool = Field(False, description="Accept a model without a known price.")


@router.post("", status_code=201, operation_id="create_run", summary="Queue a backtest", responses=responses(409))
def create_run(body: NewRun, caller: Author, workspace: OwnWorkspace) -> Submitted:
    """Queue a backtest, or several repeats of it, and start workers.

    A cost above the setting `confirm_above_usd` needs `confirm_usd`: without it, or with less than the upper end of the estimate,
    the response is 409 and holds the estimate. So does a model without a known price, unless `any_price` is set.
    """
    del caller
    request = body.request(workspace)
    agree = confirmation(workspace, body.confirm_usd, body.any_price)
    requests = repeated(request, body.repeats)
    submission = submit(workspace, requests, agree, priority=body.priority)
    estimate = EstimateDocument(**submission.estimate.plain())
    return Submitted(run_id=submission.ids[0], run_ids=submission.ids, estimate=estimate)


@router.get("", operation_id="list_runs", summary="List runs", responses=responses(404))
def list_runs(
    workspace: OwnWorkspace,
    caller: Viewer,
    limit: Annotated[int, Query(ge=1, le=500, description="Most runs of a page.")] = 50,
    before: Annotated[str, Query(max_length=100, description="`next` of the previous page.")] = "",
    status: RunStatus | None = None,
    skill: Annotated[str, Query(max_length=200, description="Only runs of this skill.")] = "",
    model: Annotated[str, Query(max_length=300, description="Only runs of this model.")] = "",
    study: Annotated[str, Query(max_length=100, description="Only runs of this study.")] = "",
) -> RunPage:
    """Runs, newest first. Pages are stable: runs that are created meanwhile do not shift them."""
    del caller
    study_id = named_study(workspace, study) if study else ""
    conditions = (("skill", skill), ("model", model), ("study_id", study_id))
    filters: dict[str, Any] = {name: value for name, value in conditions if value}
    listing, cursor = page_of_runs(workspace, limit, status, before=run_cursor(before), **filters)
    now = workspace.now()
    return RunPage.model_validate(
        {
            "runs": [short(run, now) for run in listing.runs],
            "next": cursor,
            "damaged": listing.damaged,
        }
    )


@router.get(
    "/{run_id}",
    operation_id="show_run",
    summary="Show a run",
    response_model=RunDocument,
    responses={**responses(404), **NOT_MODIFIED},
)
def show_run(run_id: str, caller: Viewer, workspace: OwnWorkspace, request: Request) -> Response:
    """The document of a run, as `pitboss runs show --json` prints it. `run_id` may be the start of an id."""
    del caller
    return tagged_json(request, long_document(workspace, named_run(workspace, run_id)))


@router.post("/{run_id}/cancel", operation_id="cancel_run", summary="Cancel a run", responses=responses(404, 409))
def cancel_run(run_id: str, caller: Author, workspace: OwnWorkspace) -> RunState:
    """An active run is cancelled at its next tick, any other at once. What is done is kept and can be resumed."""
    del caller
    run = named_run(workspace, run_id)
    with refused_as(409, "conflict"):
        status = request_cancel(workspace, run.id)
    return RunState(run_id=run.id, status=status, cancel_requested=True)


@router.post("/{run_id}/resume", operation_id="resume_run", summary="Resume a run", responses=responses(404, 409))
def resume_run(run_id: str, caller: Author, workspace: OwnWorkspace) -> RunState:
    """Queue a run that failed or was cancelled again; it continues from its last committed tick."""
    del caller
    run = named_run(workspace, run_id)
    with refused_as(409, "conflict"):
        refuse_live(run)
        if run.status not in ("error", "cancelled"):
            raise UserError(
                f"run {run.id} is {run.status}", "only a run that ended in error or was cancelled can be resumed"
            )
    enqueue_again(workspace, run.id)
    ensure_workers(workspace)
    return RunState(run_id=run.id, status="queued")


@router.post(
    "/{run_id}/fork",
    status_code=201,
    operation_id="fork_run",
    summary="Fork a run at a tick",
    responses=responses(404, 409),
)
def fork_run(run_id: str, body: NewFork, caller: Author, workspace: OwnWorkspace) -> Submitted:
    """Copy a run up to a tick and queue the rest with another model, strategy or caps. The shared part costs nothing."""
    del caller
    run = named_run(workspace, run_id)
    if (body.price_in is None) != (body.price_out is None):
        raise UserError("price_in and price_out go together", "give both, in USD for a million tokens")
    money = {
        "max_cost_usd": body.max_cost_usd,
        "price_in": body.price_in,
        "price_out": body.price_out,
        "any_price": body.any_price or None,
    }
    changes = tuple((name, value) for name, value in money.items() if value is not None)
    agree = confirmation(workspace, body.confirm_usd, body.any_price)
    submission = submit_fork(workspace, run.id, body.at, ForkChange(body.model, tuple(body.set), changes), agree)
    estimate = EstimateDocument(**submission.estimate.plain())
    return Submitted(run_id=submission.ids[0], run_ids=submission.ids, estimate=estimate)


@router.post("/{run_id}/verify", operation_id="verify_run", summary="Verify a run", responses=responses(404))
def verify_run(run_id: str, caller: Viewer, workspace: OwnWorkspace) -> Verification:
    """Check a run byte for byte: every row, the chain of digests, the metrics."""
    del caller
    with refused_as(404, "not_found"):
        verified = verify_stored(workspace, run_id)
    return Verification(
        ok=not verified.problems, run_id=verified.run_id, digest=verified.digest, problems=verified.problems
    )


@router.get("/{run_id}/diff", operation_id="diff_runs", summary="Compare two runs", responses=responses(404))
def diff_runs(
    run_id: str,
    other: Annotated[str, Query(alias="with", min_length=1, max_length=64, description="The other run.")],
    caller: Viewer,
    workspace: OwnWorkspace,
) -> RunDifference:
    """The first record that differs, and every metric that differs."""
    del caller
    first, second = named_run(workspace, run_id), named_run(workspace, other)
    return RunDifference(**compare(workspace, first, second))


@router.delete(
    "/{run_id}", status_code=204, operation_id="delete_run", summary="Delete a run", responses=responses(404, 409)
)
def delete_run(run_id: str, caller: Author, workspace: OwnWorkspace) -> None:
    """Delete a run with its records and its report. An active run has to be cancelled first."""
    del caller
    run = named_run(workspace, run_id)
    with refused_as(409, "conflict"):
        workspace.runs.delete(run.id)
    workspace.remove_files(run.id)
