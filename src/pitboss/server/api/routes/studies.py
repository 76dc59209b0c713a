"""`/api/studies`: sweeps and arenas: start, list, show, cancel."""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, ConfigDict, Field

from pitboss.core.errors import UserError
from pitboss.jobs.estimate import needs_consent
from pitboss.jobs.plan import planned_runs
from pitboss.jobs.study import cancel_study
from pitboss.jobs.study_page import page_of, result_document
from pitboss.jobs.study_status import progress_of_study, study_list, study_summary
from pitboss.jobs.submit_study import estimate_open_runs, submit_study
from pitboss.report.shell import html_document
from pitboss.runs.run import prepare
from pitboss.server.access.caller import Author, OwnWorkspace, Viewer
from pitboss.server.api.lookup import named_study
from pitboss.server.api.run_body import EstimateDocument, confirmation
from pitboss.server.api.run_documents import EXAMPLE_ID
from pitboss.server.api.study_body import NewStudy
from pitboss.server.api.tagged import NOT_MODIFIED, tagged_json
from pitboss.server.problem import responses

router = APIRouter(prefix="/studies", tags=["studies"], responses=responses())
EXAMPLE_STUDY = "7c56aa01b2c3"
_CURSOR = re.compile(r"[0-9a-f]{1,64}")


class StudyEstimate(EstimateDocument):
    """What a study would cost, and its id: equal definitions are the same study."""

    study_id: str = Field(examples=[EXAMPLE_STUDY])
    total_runs: int = Field(examples=[12], description="All runs of the study; `runs` are those not complete yet.")
    confirm_above_usd: float = Field(examples=[5.0])
    needs_confirmation: bool = Field(examples=[False])


class StudySubmitted(BaseModel):
    """A queued study."""

    study_id: str = Field(examples=[EXAMPLE_STUDY])
    run_ids: list[str] = Field(examples=[[EXAMPLE_ID]])
    estimate: EstimateDocument


class StudySummary(BaseModel):
    """A study in a list."""

    study_id: str = Field(examples=[EXAMPLE_STUDY])
    kind: str = Field(examples=["grid"], description="grid, random, search, walk or arena.")
    name: str
    skill: str = Field(examples=["trend-thesis"])
    vary: list[str] = Field(examples=[["risk.max_leverage=1,2,5"]])
    by: str = Field(examples=["sharpe"])
    runs: int = Field(examples=[12])
    counts: dict[str, int] = Field(examples=[{"complete": 12}], description="Runs by status.")
    first_at: str | None
    last_at: str | None


class StudyPage(BaseModel):
    """One page of a list of studies, newest first."""

    studies: list[StudySummary]
    next: str | None = Field(description="The value of `before` for the next page; null on the last one.")


class StudyDocument(BaseModel):
    """A study with its trials, best first. The result document has more keys, according to its kind."""

    model_config = ConfigDict(extra="allow")

    study_id: str = Field(examples=[EXAMPLE_STUDY])
    skill: str
    venue: str
    by: str
    runs: int


class StudyProgress(BaseModel):
    """How far a study is."""

    study_id: str = Field(examples=[EXAMPLE_STUDY])
    runs: int = Field(examples=[12])
    expected_runs: int = Field(
        examples=[12], description="All runs that it will have; a search and a walk-forward queue them in steps."
    )
    counts: dict[str, int] = Field(examples=[{"complete": 7, "running": 2, "queued": 3}])
    progress_pct: float = Field(examples=[63.5])
    is_ended: bool
    stopped_text: str | None = Field(None, description="Why it was not carried on although it is not complete.")


class StudyCancelled(BaseModel):
    """What a cancel has done."""

    study_id: str = Field(examples=[EXAMPLE_STUDY])
    cancelled: int = Field(examples=[5], description="Runs that are cancelled or will stop at their next tick.")


@router.post("/estimate", operation_id="estimate_study", summary="Estimate the cost of a study")
def estimate_study(body: NewStudy, caller: Viewer, workspace: OwnWorkspace) -> StudyEstimate:
    """Nothing is stored and no model is called. The same body starts the study at `POST /api/studies`."""
    del caller
    built = body.checked(workspace)
    planned = planned_runs(built.plan, built.expected_trials)
    prepare(workspace, planned[0].request)
    cost, above_usd = estimate_open_runs(workspace, built, planned), workspace.settings.confirm_above_usd
    return StudyEstimate(
        **cost.plain(),
        study_id=built.plan.id,
        total_runs=len({run.run_id(built.plan.id) for run in planned}),
        confirm_above_usd=float(above_usd),
        needs_confirmation=cost.usd is None or needs_consent(cost, above_usd),
    )


@router.post(
    "", status_code=201, operation_id="create_study", summary="Queue a sweep or an arena", responses=responses(409)
)
def create_study(body: NewStudy, caller: Author, workspace: OwnWorkspace) -> StudySubmitted:
    """Queue the runs of a study and start workers. The same body again continues it: finished runs are kept.

    Of a search or a walk-forward the first runs are queued (`run_ids`); workers queue the next ones from their results. Costs are confirmed as for `POST /api/runs`.
    """
    del caller
    built = body.checked(workspace)
    agree = confirmation(workspace, body.confirm_usd, body.any_price)
    submission = submit_study(workspace, built, agree)
    estimate = EstimateDocument(**submission.estimate.plain())
    return StudySubmitted(study_id=submission.study_id, run_ids=submission.run_ids, estimate=estimate)


@router.get("", operation_id="list_studies", summary="List studies")
def list_studies(
    caller: Viewer,
    workspace: OwnWorkspace,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    before: Annotated[str, Query(max_length=64, description="`next` of the previous page.")] = "",
) -> StudyPage:
    """Sweeps and arenas, newest first, with the number of their runs by status."""
    del caller
    if before and not _CURSOR.fullmatch(before):
        raise UserError("before is not a cursor of this list", "send `next` of the previous page, unchanged")
    studies = sorted(
        study_list(workspace), key=lambda study: (study["first_at"] or "", study["study_id"]), reverse=True
    )
    ids = [study["study_id"] for study in studies]
    start = ids.index(before) + 1 if before in ids else 0
    page = studies[start : start + limit]
    is_more = start + limit < len(studies)
    return StudyPage(
        studies=[StudySummary(**study) for study in page], next=page[-1]["study_id"] if is_more and page else None
    )


@router.get("/{study_id}", operation_id="show_study", summary="Show a study", responses=responses(404))
def show_study(study_id: str, caller: Viewer, workspace: OwnWorkspace) -> StudyDocument:
    """The trials of a study, best first, as far as its runs have ended. Cheap, also while it runs."""
    del caller
    return StudyDocument(**study_summary(workspace, named_study(workspace, study_id)))


@router.get(
    "/{study_id}/result",
    operation_id="study_result",
    summary="The result of a study",
    response_model=StudyDocument,
    responses={**responses(404), **NOT_MODIFIED},
)
def study_result(study_id: str, caller: Viewer, workspace: OwnWorkspace, request: Request) -> Response:
    """The document of `pitboss study show --json`: trials and chance, or the entries of an arena with tiers and pairs."""
    del caller
    return tagged_json(request, result_document(workspace, named_study(workspace, study_id)))


@router.get(
    "/{study_id}/report",
    operation_id="study_report",
    summary="The report of a study as one HTML file",
    response_class=HTMLResponse,
    responses={
        **responses(404),
        200: {"description": "A file that opens offline.", "content": {"text/html": {}}},
    },
)
def study_report(study_id: str, caller: Viewer, workspace: OwnWorkspace) -> Response:
    """The same file as `pitboss study report` writes, without links to the reports of its runs."""
    del caller
    full_id = named_study(workspace, study_id)
    headers = {
        "Content-Security-Policy": "sandbox allow-scripts",
        "Content-Disposition": f'attachment; filename="pitboss-study-{full_id}.html"',
    }
    return HTMLResponse(html_document(page_of(result_document(workspace, full_id))), headers=headers)


@router.get(
    "/{study_id}/progress", operation_id="study_progress", summary="How far a study is", responses=responses(404)
)
def study_progress(study_id: str, caller: Viewer, workspace: OwnWorkspace) -> StudyProgress:
    """The number of its runs by status. Meant to be asked for every second or two."""
    del caller
    document: dict[str, Any] = progress_of_study(workspace, named_study(workspace, study_id))
    return StudyProgress(**document)


@router.post("/{study_id}/cancel", operation_id="cancel_study", summary="Cancel a study", responses=responses(404))
def cancel_study_runs(study_id: str, caller: Author, workspace: OwnWorkspace) -> StudyCancelled:
    """Queued runs leave the queue, active ones stop at their next tick. Queueing the study again continues it."""
    del caller
    full_id = named_study(workspace, study_id)
    return StudyCancelled(study_id=full_id, cancelled=cancel_study(workspace, full_id))
