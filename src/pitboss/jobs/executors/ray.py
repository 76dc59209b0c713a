"""Workers on a Ray cluster: the same worker, as a named actor in each place that the cluster has room for.

Ray decides where an actor goes (by the cores and memory it asks for) and starts it again elsewhere when its node is lost;
whose run it was is decided by the lease, which runs out, never by Ray. Nothing of a run passes through Ray: workers talk to
the database. Needs `pip install 'pitboss[ray]'`, the same build on all nodes, a lake in object storage (`data/remote_lake.py`) or
under the same path on all of them, and a Postgres database unless all nodes are one machine.
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
from pitboss.jobs.capacity import wanted
from pitboss.jobs.credentials import loan, models_in_queue
from pitboss.jobs.worker import Worker
from pitboss.jobs.worker_settings import open_queue, terms_of, wait_for_workspace, worker_name
from pitboss.store.queue import Queue

LOG = logging.getLogger("pitboss.jobs")
NAMESPACE = "pitboss"
PATIENCE_S = 10.0
"""How long an actor may take to answer; one that the cluster has no room for yet does not answer, and needs not."""
TRIES = 3
GUARDS = 2
"""So many workers stay as long as another has a run."""


class RayWorker:
    """A worker as an actor. It begins to work when it is made, and ends itself when there is nothing to do."""

    def __init__(self, settings: Mapping[str, Any], loan: Mapping[str, str], any_build: bool, guards: bool) -> None:
        self._settings = Settings.model_construct(**settings)
        self._any_build = any_build
        self._guards = guards
        self._worker: Worker | None = None
        self._queue: Queue | None = None
        self._poked = True
        self._gone = False
        lend(loan)
        start_logs(self._settings.log_level, None)
        self._life = asyncio.get_event_loop().create_task(self._live())

    async def poke(self, loan: Mapping[str, str]) -> bool:
        """There is something to do. False if this worker is on its way out, and another must be made."""
        lend(loan)
        self._poked = True
        return not self._gone

    async def drain(self) -> None:
        """Give all runs back and leave."""
        if self._worker is not None:
            self._worker.stop()
        await self._life

    def leave(self) -> bool:
        """Whether an idle worker may go: not one of those that are to notice that another is lost."""
        assert self._queue is not None
        depth = self._queue.depth()
        return not depth.later and not (depth.working and self._guards)

    def stay(self) -> None:
        """Nothing was given up."""

    async def _live(self) -> None:
        try:
            with await wait_for_workspace(self._settings) as workspace:
                self._queue = open_queue(workspace)
                terms = terms_of(self._settings, idle_exit_s=self._settings.worker_idle_s, any_build=self._any_build)
                stopped = False
                while self._poked and not stopped:
                    self._poked = False
                    name = worker_name(f"ray-{ray.get_runtime_context().get_node_id()[:8]}")
                    self._worker = Worker(workspace, self._queue, name, terms, self)
                    await self._worker.run()
                    stopped = self._worker.stopped
        finally:
            self._gone = True
            ray.kill(ray.get_runtime_context().current_actor, no_restart=True)


def ensure(workspace: Workspace, queue: Queue, any_build: bool = False) -> int:
    """Have as many workers on the cluster as there is work for. Gives how many were made or woken; safe at any time."""
    settings = workspace.settings
    connect(settings)
    depth = queue.depth()
    count = wanted(depth, most_workers(settings))
    keys = {**loan(workspace, models_in_queue(workspace)), **lake_loan(settings)} if count else {}
    return sum(_place(settings, number, keys, any_build) for number in range(count))


def lake_loan(settings: Settings) -> dict[str, str]:
    """The variables that a lake in object storage is opened with, and no others; nothing where the lake is a folder."""
    return lake_variables(read_address(settings.lake)) if settings.lake else {}


def connect(settings: Settings) -> None:
    """Join the cluster, once for each process, and see that it and the database fit together."""
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
            where = settings.ray_address or "on this machine"
            raise UserError(
                f"no Ray cluster can be reached {where}",
                "`ray start --head`, or set ray_address; or set executor to local",
            ) from None
    hosts = {node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"]}
    if len(hosts) > 1 and "://" not in settings.database_url:
        raise UserError(
            "workers on several machines cannot share a database file",
            "give a Postgres address with --db or database_url",
        )


def most_workers(settings: Settings) -> int:
    """How many workers the cluster may have: what was set, or as many as it has room for now; one, so that it may grow."""
    if settings.max_workers:
        return settings.max_workers
    return max(1, int(ray.cluster_resources().get("CPU", 0) / settings.ray_cpus))


def actor_name(settings: Settings, number: int) -> str:
    """The name of a worker's place on the cluster. Workspaces that share a database share their workers."""
    plain = _anywhere(settings)
    whose = codec.digest([plain["database_url"] or str(plain["home"])])[:12]
    return f"worker-{whose}-{number}"


def _place(settings: Settings, number: int, keys: Mapping[str, str], any_build: bool) -> bool:
    """See to it that a place has a worker that knows there is something to do."""
    for _ in range(TRIES):
        actor = _actor(settings, number, keys, any_build)
        try:
            ready, _ = ray.wait([answer := actor.poke.remote(keys)], timeout=PATIENCE_S)
            if not ready or ray.get(answer):
                return True
        except RayActorError:
            LOG.info("a worker on Ray was on its way out", extra={"fields": {"place": number}})
    return False


def _actor(settings: Settings, number: int, keys: Mapping[str, str], any_build: bool) -> Any:
    """The actor of a place, made if there is none. Two who do this at once get the same one."""
    asks: dict[str, Any] = {"num_cpus": settings.ray_cpus}
    if settings.ray_memory_mb:
        asks["memory"] = settings.ray_memory_mb * 2**20
    made = ray.remote(RayWorker).options(
        name=actor_name(settings, number),
        namespace=NAMESPACE,
        get_if_exists=True,
        lifetime="detached",
        max_restarts=-1,
        max_task_retries=0,
        scheduling_strategy="SPREAD",
        **asks,
    )
    return made.remote(_anywhere(settings), dict(keys), any_build, number < GUARDS)


def _anywhere(settings: Settings) -> dict[str, Any]:
    """The settings as they hold in another folder and on another machine."""
    where, plain = settings.database_url, settings.model_dump()
    database = str(Path(where).resolve()) if where and "://" not in where else where
    return {**plain, "home": settings.home.resolve(), "database_url": database}
