"""Workers on a Ray cluster: the same worker, as named actors, as many as the cluster has room for.

Ray places an actor (by the cores and memory it requests) and restarts it elsewhere when its node is lost; which worker owns a
run is decided by the lease alone. No data of a run passes through Ray: workers talk to the database. Needs
`pip install 'pitboss[ray]'`, the same build on all nodes, a lake in object storage (`data/remote_lake.py`) or under the same
path on all of them, and a Postgres database unless all nodes are one machine.
"""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError

from pitboss.bootstrap.logs import start_logs
from pitboss.bootstrap.machine import lend
from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace, lake_variables
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.data.object_storage import read_address
from pitboss.jobs.capacity import worker_target
from pitboss.jobs.credentials import model_variables, models_in_queue
from pitboss.jobs.worker import Worker
from pitboss.jobs.worker_settings import open_queue, wait_for_workspace, worker_name, worker_settings
from pitboss.store.queue import Queue

LOG = logging.getLogger("pitboss.jobs")
NAMESPACE = "pitboss"
PATIENCE_S = 10.0
"""How long an actor may take to reply; an actor that the cluster has no room for yet does not reply, and need not."""
TRIES = 3
GUARDS = 2
"""How many idle workers stay while another has a run, to detect its loss."""


class RayWorker:
    """A worker as an actor. It starts to work when it is created, and ends itself when there is nothing to do."""

    def __init__(
        self, settings: Mapping[str, Any], variables: Mapping[str, str], any_build: bool, is_guard: bool
    ) -> None:
        self._settings = Settings.model_construct(**settings)
        self._any_build = any_build
        self._is_guard = is_guard
        self._worker: Worker | None = None
        self._queue: Queue | None = None
        self._poked = True
        self._is_exiting = False
        lend(variables)
        start_logs(self._settings.log_level, None)
        self._life = asyncio.get_event_loop().create_task(self._live())

    async def poke(self, variables: Mapping[str, str]) -> bool:
        """Notify the worker of new runs. False if it is exiting, and another must be created."""
        lend(variables)
        self._poked = True
        return not self._is_exiting

    async def drain(self) -> None:
        """Release all runs and exit."""
        if self._worker is not None:
            self._worker.stop()
        await self._life

    def try_release(self) -> bool:
        """Whether an idle worker may exit: not one of the guards while another worker has a run."""
        assert self._queue is not None
        depth = self._queue.depth()
        return not depth.later and not (depth.working and self._is_guard)

    def reacquire(self) -> None:
        """Nothing was released."""

    async def _live(self) -> None:
        try:
            with await wait_for_workspace(self._settings) as workspace:
                self._queue = open_queue(workspace)
                terms = worker_settings(
                    self._settings, idle_exit_s=self._settings.worker_idle_s, any_build=self._any_build
                )
                stopped = False
                while self._poked and not stopped:
                    self._poked = False
                    name = worker_name(f"ray-{ray.get_runtime_context().get_node_id()[:8]}")
                    self._worker = Worker(workspace, self._queue, name, terms, self)
                    await self._worker.run()
                    stopped = self._worker.stopped
        finally:
            self._is_exiting = True
            ray.kill(ray.get_runtime_context().current_actor, no_restart=True)


def ensure(workspace: Workspace, queue: Queue, any_build: bool = False) -> int:
    """Create or notify one worker for each run, up to the limit. Returns how many; safe to call at any time."""
    settings = workspace.settings
    connect(settings)
    count = worker_target(queue.depth(), cluster_worker_limit(settings))
    variables = (
        {**model_variables(workspace, models_in_queue(workspace)), **lake_credentials(settings)} if count else {}
    )
    return sum(_notify(settings, number, variables, any_build) for number in range(count))


def lake_credentials(settings: Settings) -> dict[str, str]:
    """The variables that a lake in object storage is opened with, and no others; empty where the lake is a folder."""
    return lake_variables(read_address(settings.lake)) if settings.lake else {}


def connect(settings: Settings) -> None:
    """Join the cluster, once for each process, and check that it can use the database."""
    if not ray.is_initialized():
        try:
            ray.init(
                address=settings.ray_address or "auto",
                namespace=NAMESPACE,
                log_to_driver=False,
                logging_level=logging.WARNING,
                configure_logging=False,
            )
        except ConnectionError:
            location = f"at {settings.ray_address}" if settings.ray_address else "on this machine"
            raise UserError(
                f"no Ray cluster can be reached {location}",
                "`ray start --head`, or set ray_address; or set executor to local",
            ) from None
    hosts = {node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"]}
    if len(hosts) > 1 and "://" not in settings.database_url:
        raise UserError(
            "workers on several machines cannot share a database file",
            "give a Postgres address with --db or database_url",
        )


def cluster_worker_limit(settings: Settings) -> int:
    """How many workers the cluster may have: the setting, or as many as it has room for now; at least one, so that it can grow."""
    if settings.max_workers:
        return settings.max_workers
    return max(1, int(ray.cluster_resources().get("CPU", 0) / settings.ray_cpus))


def actor_name(settings: Settings, number: int) -> str:
    """The name of a worker's actor. Workspaces that share a database share their workers."""
    portable = _portable(settings)
    owner = codec.digest([portable["database_url"] or str(portable["home"])])[:12]
    return f"worker-{owner}-{number}"


def _notify(settings: Settings, number: int, variables: Mapping[str, str], any_build: bool) -> bool:
    """Notify a worker of new runs; creates it if necessary."""
    for _ in range(TRIES):
        actor = _actor(settings, number, variables, any_build)
        try:
            ready, _ = ray.wait([reply := actor.poke.remote(variables)], timeout=PATIENCE_S)
            if not ready or ray.get(reply):
                return True
        except RayActorError:
            LOG.info("a worker on Ray was exiting", extra={"fields": {"place": number}})
    return False


def _actor(settings: Settings, number: int, variables: Mapping[str, str], any_build: bool) -> Any:
    """The actor of a worker, created if there is none. Two processes that do this at once get the same actor."""
    resources: dict[str, Any] = {"num_cpus": settings.ray_cpus}
    if settings.ray_memory_mb:
        resources["memory"] = settings.ray_memory_mb * 2**20
    actor_class = ray.remote(RayWorker).options(
        name=actor_name(settings, number),
        namespace=NAMESPACE,
        get_if_exists=True,
        lifetime="detached",
        max_restarts=-1,
        max_task_retries=0,
        scheduling_strategy="SPREAD",
        **resources,
    )
    return actor_class.remote(_portable(settings), dict(variables), any_build, number < GUARDS)


def _portable(settings: Settings) -> dict[str, Any]:
    """The settings with absolute paths, for use in another folder or on another machine."""
    url = settings.database_url
    database = str(Path(url).resolve()) if url and "://" not in url else url
    return {**settings.model_dump(), "home": settings.home.resolve(), "database_url": database}
