"""The same study on a Ray cluster of several nodes: `python ray_study.py HOME KIND LOSE_A_NODE DATABASE`. Prints JSON.

A separate process, because Ray leaves threads, warnings and sockets open that would fail a test run.
"""

import asyncio
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import ray
from job_workspace import study_plan, study_results
from ray.cluster_utils import Cluster

import history_check
from pitboss.bootstrap.settings import Settings, load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.jobs import study as studying
from pitboss.jobs.executors import ray as executor
from pitboss.jobs.study import study
from pitboss.jobs.study_queue import StudyObserver, StudySettings
from pitboss.jobs.worker_settings import open_queue
from pitboss.store import events
from pitboss.store.studies import Studies

MEMORY = 100 * 2**20
CANARY = "A_SECRET_OF_THE_QUEUEING_PROCESS"
PATIENCE_S = 240
MIDDLE = 0.6
"""A run with less progress than this does not end before its node is removed."""


class EnvironmentReader:
    """Reads the environment of the workers once the study is running."""

    def __init__(self) -> None:
        self.surroundings: dict[str, list[str]] = {}

    def moved(self, run_id: str, status: str, done: float) -> None:
        """The progress of one run."""
        del run_id, done
        if status != "queued" and not self.surroundings:  # a short run may have ended by now; its worker stays
            # A worker answers between two runs.
            self.surroundings = {name: environment_names(name) for name in worker_names()}


class NodeLoss(threading.Thread):
    """Removes the node of a run that is about half done. `at` is the progress of the study at that moment."""

    def __init__(self, settings: Settings, cluster: Cluster, nodes: list[Any], study_id: str) -> None:
        super().__init__(daemon=True)
        self.at: float | None = None
        self._settings, self._cluster, self._nodes, self._study_id = settings, cluster, nodes, study_id

    def run(self) -> None:
        """Poll often: runs are short."""
        pause = threading.Event()
        with open_workspace(self._settings) as workspace:
            while self.at is None:
                pause.wait(0.05)
                lines = Studies(workspace.database).progress(self._study_id)
                middle = [line.id for line in lines if line.status == "running" and 0 < line.progress < MIDDLE]
                for run_id in middle:
                    worker = workspace.runs.get(run_id).worker
                    if worker is not None:
                        self.at = round(sum(line.progress for line in lines) / len(lines), 3)
                        self._lose(worker.partition(":")[0].removeprefix("ray-"))
                        break

    def _lose(self, node_id: str) -> None:
        victim = next(node for node in self._nodes if node.node_id.startswith(node_id))
        self._cluster.remove_node(victim, allow_graceful=False)


def main(home: str, kind: str, lose: str, database: str) -> None:
    """Start a cluster, run the study on it, print its results."""
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": MEMORY, "include_dashboard": False}
    )
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=MEMORY) for _ in range(2)]
    os.environ.update({CANARY: "canary", "LLM_API_KEY": "key-of-a-model", "LLM_BASE_URL": "http://127.0.0.1:9/v1"})
    changes = {
        "ray_address": cluster.address,
        "executor": "ray",
        "max_workers": 2,
        "ray_memory_mb": 64,
        "worker_idle_s": 5.0,
        "lease_heartbeat_s": 0.5,
        "lease_stale_s": 3.0,
        "scan_s": 0.5,
        "log_commits": True,
        "commit_records": 2,
        "database_url": "" if database == "sqlite" else database,
    }
    settings = load_settings(Path(home)).model_copy(update=changes)
    with open_workspace(settings) as workspace:
        queue, plan = open_queue(workspace), study_plan(kind)
        # Source files may change while this runs; builds have tests of their own.
        studying.ensure_workers = lambda workspace: executor.ensure(workspace, queue, any_build=True)
        watcher, loss = EnvironmentReader(), NodeLoss(settings, cluster, nodes, plan.plan.id)
        if lose == "lose":
            loss.start()
        observer = StudyObserver() if lose == "lose" else StudyObserver(moved=watcher.moved)
        started_s = time.monotonic()
        result = asyncio.run(study(workspace, plan.plan, plan.method, StudySettings("workers"), observer))
        took_s = time.monotonic() - started_s
        wait_until(lambda: not worker_names(), "the workers did not end")
        results = study_results(workspace, plan, result)
        history = history_check.check(events.read_events(workspace.database), list(results["digests"]), stale_ms=3_000)
        workers = {event.worker for event in events.read_events(workspace.database) if event.kind == "claimed"}
    surroundings = watcher.surroundings.values()
    figures = {
        "ends": history.ends,
        "violations": history.violations,
        "requeues": history.requeues,
        "nodes": len({str(worker).split(":")[0] for worker in workers}),
        "lost_at": loss.at,
        "took_s": round(took_s, 1),
        "looked_at": len(surroundings),
        "canaries": sum(CANARY in names for names in surroundings),
        "keys": sum("LLM_API_KEY" in names for names in surroundings),
    }
    print(json.dumps({**results, **figures}))
    sys.stdout.flush()
    ray.shutdown()
    cluster.shutdown()


def worker_names() -> list[str]:
    """The names of all workers."""
    actors: Any = ray.util.list_named_actors(all_namespaces=True)
    return [actor["name"] for actor in actors]


def environment_names(name: str) -> list[str]:
    """The names of the environment variables of a worker's process."""
    actor = ray.get_actor(name, namespace=executor.NAMESPACE)
    return ray.get(actor.__ray_call__.remote(lambda self: sorted(os.environ)), timeout=60)


def wait_until(true: Any, otherwise: str) -> None:
    until, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while not true():
        if time.monotonic() > until:
            raise SystemExit(otherwise)
        pause.wait(0.2)


if __name__ == "__main__":
    main(*sys.argv[1:])
