"""Where jobs are queued and done in tests: a workspace, a queue on it, and jobs that are quick to do."""

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

WHO = "model=standin/analyst,policy/momentum"
FROM, END = parse_instant("2025-03-28"), parse_instant("2025-03-31")
HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Yard:
    """Where jobs are queued and done."""

    workspace: Workspace
    queue: Queue

    @property
    def settings(self) -> Settings:
        return self.workspace.settings

    def put(
        self, count: int = 1, model: str = "policy/momentum", every: str = "15m", hours: int = 48, **more: Any
    ) -> list[str]:
        """Queue jobs that differ by their seeds. `more` is for the request where it has such a field, else for the job."""
        asked = {name: more.pop(name) for name in list(more) if name in PerpRequest.__dataclass_fields__}
        skill = plain_skill(["BTC"], every, model=model)
        to = FROM + hours * HOUR_MS
        requests = [PerpRequest(skill, FROM, to, seed=seed, repeat=seed, **asked) for seed in range(count)]
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


def story(kind: str) -> BuiltPlan:
    """A study: two skills that take a while and differ in what they do, as a sweep over ranges or walked forward."""
    skill = plain_skill(["BTC"], "5m", model="policy/momentum")
    if kind == "walk":
        request = PerpRequest(skill, FROM, FROM + 48 * HOUR_MS)
        return sweep_plan(
            request, parse_axes([WHO, "risk.max_position_pct=10,30"]), walk="24h/12h", by="total_return_pct"
        )
    starts = [FROM + number * HOUR_MS for number in range(8)]
    ranges = ",".join(f"{iso(start)}/{iso(start + 40 * HOUR_MS)}" for start in starts)
    return sweep_plan(
        PerpRequest(skill, FROM, FROM + 48 * HOUR_MS), parse_axes([WHO, f"range={ranges}"]), by="total_return_pct"
    )


def study_results(workspace: Workspace, made: BuiltPlan, done: StudyResult) -> dict[str, Any]:
    """What a study came to, without what only time changes."""
    runs = [run for found in done.trials.values() for run in found]
    document = result_document(workspace, made.plan.id)
    return {
        "study_id": done.id,
        "digests": {run.id: run.digest for run in runs},
        "trials": [[one["trial"], one["point"], one["score"]] for one in document["trials"]],
        "chosen": [one["point"] for one in document.get("forward", {}).get("windows", [])],
    }
