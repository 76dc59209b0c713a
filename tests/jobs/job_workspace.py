"""`JobWorkspace`: a workspace with a queue, and short jobs and studies for it."""

from dataclasses import dataclass
from typing import Any

from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import iso, parse_instant
from pitboss.jobs.study import StudyResult
from pitboss.jobs.study_page import result_document
from pitboss.jobs.study_plans import BuiltPlan, sweep_plan
from pitboss.jobs.worker import Worker, WorkerSettings
from pitboss.runs.run import job_of
from pitboss.sim.study.axis import parse_axes
from pitboss.store.queue import Queue
from pitboss.venues.perp.assembly import PerpRequest
from pitboss.venues.perp.testing import plain_skill

MODELS = "model=standin/analyst,policy/momentum"
FROM, END = parse_instant("2025-03-28"), parse_instant("2025-03-31")
HOUR_MS = 3_600_000


@dataclass(frozen=True)
class JobWorkspace:
    """A workspace and its queue."""

    workspace: Workspace
    queue: Queue

    @property
    def settings(self) -> Settings:
        return self.workspace.settings

    def enqueue(
        self, count: int = 1, model: str = "policy/momentum", every: str = "15m", hours: int = 48, **more: Any
    ) -> list[str]:
        """Queue jobs that differ by their seeds. `more` is for the request where it has such a field, else for the job."""
        fields = {name: more.pop(name) for name in list(more) if name in PerpRequest.__dataclass_fields__}
        skill = plain_skill(["BTC"], every, model=model)
        to = FROM + hours * HOUR_MS
        requests = [PerpRequest(skill, FROM, to, seed=seed, repeat=seed, **fields) for seed in range(count)]
        return self.queue.enqueue([job_of(self.workspace, request, **more) for request in requests])

    def worker(self, name: str = "one", **terms: Any) -> Worker:
        return Worker(self.workspace, self.queue, name, WorkerSettings(**{"idle_exit_s": 0.0, "logged": True, **terms}))

    def status(self, run_id: str) -> str:
        return self.workspace.runs.get(run_id).status


def study_requests(count: int) -> list[PerpRequest]:
    """Two skills over several ranges."""
    skills = [plain_skill(["BTC"], "15m", model=model) for model in ("standin/analyst", "policy/momentum")]
    starts = [FROM + number * HOUR_MS for number in range(count)]
    return [PerpRequest(skills[n % 2], start, start + 24 * HOUR_MS, seed=n) for n, start in enumerate(starts)]


def study_plan(kind: str) -> BuiltPlan:
    """A study of two models: a sweep over ranges, or a walk-forward."""
    skill = plain_skill(["BTC"], "5m", model="policy/momentum")
    if kind == "walk":
        request = PerpRequest(skill, FROM, FROM + 48 * HOUR_MS)
        return sweep_plan(
            request, parse_axes([MODELS, "risk.max_position_pct=10,30"]), walk="24h/12h", by="total_return_pct"
        )
    starts = [FROM + number * HOUR_MS for number in range(8)]
    ranges = ",".join(f"{iso(start)}/{iso(start + 40 * HOUR_MS)}" for start in starts)
    return sweep_plan(
        PerpRequest(skill, FROM, FROM + 48 * HOUR_MS), parse_axes([MODELS, f"range={ranges}"]), by="total_return_pct"
    )


def study_results(workspace: Workspace, plan: BuiltPlan, result: StudyResult) -> dict[str, Any]:
    """The results of a study, without times."""
    runs = [run for trial_runs in result.trials.values() for run in trial_runs]
    document = result_document(workspace, plan.plan.id)
    return {
        "study_id": result.id,
        "digests": {run.id: run.digest for run in runs},
        "trials": [[one["trial"], one["point"], one["score"]] for one in document["trials"]],
        "chosen": [one["point"] for one in document.get("forward", {}).get("windows", [])],
    }
