"""Runs jobs on a Ray cluster with the lake in object storage: `python objects_ray_program.py HOME JOBS`. Prints JSON.

Keys are read from standard input after the cluster has started, so that no node has them in its environment.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import ray
from job_workspace import study_requests
from ray.cluster_utils import Cluster
from ray_study import MEMORY, environment_names, wait_until, worker_names

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import CACHE, open_workspace
from pitboss.jobs.executors import ray as executor
from pitboss.jobs.worker_settings import open_queue
from pitboss.runs.run import job_of
from pitboss.store.lifecycle import ENDED


def main(home: str, jobs: str) -> None:
    """Start a cluster, execute the jobs on it, print the results."""
    head = {"num_cpus": 0, "object_store_memory": MEMORY, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(2):
        cluster.add_node(num_cpus=1, object_store_memory=MEMORY)
    given = json.loads(sys.stdin.read())
    os.environ.update(given)
    changes = {"ray_address": cluster.address, "executor": "ray", "max_workers": 2, "worker_idle_s": 3.0}
    settings = load_settings(Path(home)).model_copy(update=changes)
    with open_workspace(settings) as workspace:
        queue = open_queue(workspace)
        ids = queue.enqueue([job_of(workspace, request) for request in study_requests(int(jobs))])
        shutil.rmtree(settings.home / CACHE)  # as if the nodes were other machines
        executor.ensure(workspace, queue, any_build=True)
        surroundings = [environment_names(name) for name in worker_names()]
        wait_until(lambda: all(workspace.runs.get(run_id).status in ENDED for run_id in ids), "the study did not end")
        wait_until(lambda: not worker_names(), "the workers did not end")
        runs = [workspace.runs.get(run_id) for run_id in ids]
    result = {
        "digests": [run.digest for run in runs],
        "errors": [run.error_text for run in runs if run.error_text],
        "lake": sorted(path.name for path in settings.home.iterdir()),
        "keys": sum(name in each for each in surroundings for name in given if name.startswith("AWS_")),
    }
    print(json.dumps(result))
    sys.stdout.flush()
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
