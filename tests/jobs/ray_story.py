"""The same study on a Ray cluster of several nodes: `python ray_story.py HOME JOBS LOSE_A_NODE DATABASE`. Prints JSON.

A process of its own, because Ray leaves threads, warnings and sockets behind that a test run would stumble over.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster
from yard import study_requests

from pitboss.bootstrap.runner import job_of
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.jobs.executors import ray as executor
from pitboss.jobs.terms import open_queue
from pitboss.store import events, history_check
from pitboss.store.lifecycle import ENDED

MEMORY = 100 * 2**20
CANARY = "A_SECRET_OF_WHOEVER_QUEUES"
PATIENCE_S = 240


def main(home: str, jobs: str, lose: str, database: str) -> None:
    """Start a cluster, do the study on it, tell what came of it."""
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
        "heartbeat_s": 0.5,
        "stale_s": 3.0,
        "scan_s": 0.5,
        "log_commits": True,
        "commit_records": 2,
        "database_url": "" if database == "sqlite" else database,
    }
    settings = load_settings(Path(home)).model_copy(update=changes)
    with open_workspace(settings) as workspace:
        queue = open_queue(workspace)
        study = [job_of(workspace, request) for request in study_requests(int(jobs))]
        ids = queue.enqueue(study[:2])
        executor.ensure(workspace, queue, any_build=True)
        surroundings = [variables(name) for name in names()]  # answers when the worker is there
        ids += queue.enqueue(study[2:])
        if lose == "lose":
            wait(lambda: busy(workspace), "nobody has a run")
            node_id = busy(workspace)[0].partition(":")[0].removeprefix("ray-")
            victim = next(node for node in nodes if node.node_id.startswith(node_id))
            cluster.remove_node(victim, allow_graceful=False)
        again = 0.0

        def done() -> bool:
            nonlocal again
            if time.monotonic() > again:  # whoever waits sees to it that somebody works
                again = time.monotonic() + 3
                executor.ensure(workspace, queue, any_build=True)
            return all(workspace.runs.get(run_id).status in ENDED for run_id in ids)

        wait(done, "the study did not end")
        wait(lambda: not names(), "the workers did not leave")
        runs = [workspace.runs.get(run_id) for run_id in ids]
        found = history_check.check(events.read(workspace.database), ids, stale_ms=3_000)
        workers = {event.worker for event in events.read(workspace.database) if event.kind == "claimed"}
    told = {
        "digests": [run.digest for run in runs],
        "ends": found.ends,
        "violations": found.violations,
        "requeues": found.requeues,
        "nodes": len({str(worker).split(":")[0] for worker in workers}),
        "canaries": sum(CANARY in names for names in surroundings),
        "keys": sum("LLM_API_KEY" in names for names in surroundings),
    }
    print(json.dumps(told))
    sys.stdout.flush()
    ray.shutdown()
    cluster.shutdown()


def busy(workspace: Workspace) -> list[str]:
    """The workers that have a run of which something is committed, and not all."""
    return [str(run.worker) for run in workspace.runs.look(100, "running").runs if 0 < run.progress < 1]


def names() -> list[str]:
    """The workers that there are."""
    return [one["name"] for one in ray.util.list_named_actors(all_namespaces=True)]


def variables(name: str) -> list[str]:
    """The names of the variables that a worker's process was started with or has."""
    actor = ray.get_actor(name, namespace=executor.NAMESPACE)
    return ray.get(actor.__ray_call__.remote(lambda self: sorted(os.environ)), timeout=60)


def wait(true: Any, otherwise: str) -> None:
    until, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while not true():
        if time.monotonic() > until:
            raise SystemExit(otherwise)
        pause.wait(0.2)


if __name__ == "__main__":
    main(*sys.argv[1:])
