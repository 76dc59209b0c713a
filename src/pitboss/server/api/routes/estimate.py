"""`/api/estimate`: what a backtest would cost."""

from fastapi import APIRouter
from pydantic import Field

from pitboss.jobs.estimate import estimate, needs_consent
from pitboss.runs.live_progress import ticks_in
from pitboss.runs.new_request import repeated
from pitboss.runs.run import prepare
from pitboss.server.access.caller import OwnWorkspace, Viewer
from pitboss.server.api.run_body import BacktestBody, EstimateDocument
from pitboss.server.problem import responses

router = APIRouter(tags=["runs"], responses=responses())


class RunEstimate(EstimateDocument):
    """An estimate, and whether it has to be confirmed."""

    ticks: int = Field(examples=[2688], description="Ticks of all runs together.")
    confirm_above_usd: float = Field(examples=[5.0], description="The setting: more than this has to be confirmed.")
    needs_confirmation: bool = Field(examples=[False])


@router.post("/estimate", operation_id="estimate_run", summary="Estimate the cost of a backtest")
def estimate_run(body: BacktestBody, caller: Viewer, workspace: OwnWorkspace) -> RunEstimate:
    """Nothing is stored and no model is called. The same body starts the run at `POST /api/runs`."""
    del caller
    request = body.request(workspace)
    prepare(workspace, request)
    cost, above_usd = estimate(workspace, repeated(request, body.repeats)), workspace.settings.confirm_above_usd
    return RunEstimate(
        **cost.plain(),
        ticks=body.repeats * ticks_in(request.skill, request.from_at, request.to_at),
        confirm_above_usd=float(above_usd),
        needs_confirmation=cost.usd is None or needs_consent(cost, above_usd),
    )
