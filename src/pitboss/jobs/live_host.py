"""The host of deployments: a process that claims those which no process works on, and runs them all on one event loop.

Several hosts, on several machines, share the deployments of a database: the lease of a deployment's run decides who works on
it, and when a host is lost its deployments continue on another from their last record. It delivers commands to the
deployments it has. `python -m pitboss.jobs.live_host HOME` is the one that `pitboss deploy` starts on this machine; it
exits when there is nothing to work on.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from pitboss.bootstrap.logs import start_logs
from pitboss.bootstrap.machine import stopwatch
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.deployment import OpenCommand
from pitboss.core.errors import UserError
from pitboss.jobs.heartbeat import Heartbeat, HeartbeatSettings, LeaseNotice
from pitboss.jobs.host_listener import HostListener
from pitboss.jobs.live_metrics import LONGEST_TURN_S, HostMetrics, serving_metrics
from pitboss.jobs.live_notices import notifying, open_notifier
from pitboss.jobs.worker_settings import open_queue, wait_for_workspace, worker_name
from pitboss.runs.deployment_run import FAULT, DeploymentRun, Outcome
from pitboss.store.deployment_alarms import overdue_alarms
from pitboss.store.deployment_caps import caps_numbers
from pitboss.store.deployments import Deployment
from pitboss.store.retry import Unreachable

LOG = logging.getLogger("pitboss.live")
POLL_S = 0.1
"""How often commands are looked for: a command takes effect within a quarter of a second."""
CLAIM_S = 1.0
"""How often deployments without a process are looked for."""
FIRST_RETRY_S, LAST_RETRY_S = 2.0, 300.0
"""How long a deployment rests after an outage, at first and at most."""


@dataclass(frozen=True, slots=True)
class HostSettings:
    """How a host works. `only` names the deployments that it takes; empty: any."""

    capacity: int = 1_000
    only: frozenset[str] = frozenset()
    idle_exit_s: float | None = None
    drain_s: float = 10.0
    metrics: tuple[str, int] | None = None
    """The address and port on which figures are served; None: nowhere."""
    heartbeat: HeartbeatSettings = field(default_factory=HeartbeatSettings)


@dataclass(slots=True)
class _Hosted:
    """A deployment that this host works on."""

    run: DeploymentRun
    task: "asyncio.Task[Outcome]"


class LiveHost:
    """One host. It must be stopped, or given `idle_exit_s`, to end. A `lock`, acquired, is released when it ends idle."""

    def __init__(
        self,
        workspace: Workspace,
        settings: HostSettings,
        listener: HostListener | None = None,
        lock: "HostLock | None" = None,
    ) -> None:
        self._workspace = workspace
        self._settings = settings
        self._lock = lock
        self.metrics = HostMetrics(self, workspace)
        self._listener = self.metrics.listening(listener or HostListener())
        self.hosted: dict[str, _Hosted] = {}
        self._resting: dict[str, tuple[float, float]] = {}
        """Deployments after an outage: until when they rest, and for how long."""
        self._stops = 0
        self.turned_s = stopwatch()
        """When the event loop was last seen to turn."""
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def runs(self) -> list[DeploymentRun]:
        """The deployments that it works on."""
        return [each.run for each in self.hosted.copy().values()]

    def stop(self) -> None:
        """Stop: the first call lets the current ticks finish, the second does not."""
        self._stops += 1
        for each in self.hosted.values():
            if self._stops == 1:
                each.run.stop.request()
            else:
                each.task.cancel()
        self._wake.set()

    async def run(self) -> None:
        """Host deployments until stopped, or until there was none for `idle_exit_s`."""
        self._loop = asyncio.get_running_loop()
        queue = open_queue(self._workspace)
        heartbeat = Heartbeat(queue, self._workspace.runs, self._settings.heartbeat, self.leases, self._notice)
        with heartbeat:
            claimed_s, idle_since_s = -float("inf"), stopwatch()
            while not self._stops:
                now_s = stopwatch()
                if now_s - claimed_s >= CLAIM_S:
                    claimed_s = now_s
                    await self._guarded(self._claim)
                await self._guarded(self.deliver)
                if self.hosted:
                    idle_since_s = stopwatch()
                elif self._is_idle_too_long(idle_since_s):
                    if await self._release_lock():
                        break
                    idle_since_s = stopwatch()
                await self._pause(POLL_S)
                self.turned_s = stopwatch()
            await self._drain()

    def _is_idle_too_long(self, since_s: float) -> bool:
        idle_exit_s = self._settings.idle_exit_s
        return idle_exit_s is not None and stopwatch() - since_s >= idle_exit_s and not self._resting

    async def _release_lock(self) -> bool:
        """Release the lock and claim once more: the host of a deployment that is new by then may have met the lock and exited.

        Returns False if there is something to work on, or if the database did not say; then the lock is taken again. If
        another host has it, the two share the deployments by their leases.
        """
        if self._lock is None:
            return True
        self._lock.release()
        is_certain = await self._guarded(self._claim)
        if is_certain and not self.hosted:
            return True
        self._lock.acquire()
        return False

    async def _guarded(self, step: Callable[[], None]) -> bool:
        """Do a step that uses the database. If that fails it is logged, and the next pass of the loop tries again.

        Returns False if the database cannot be reached.
        """
        try:
            step()
        except Unreachable as error:
            LOG.warning("the database is unreachable", extra={"fields": {"error": error.message}})
            await asyncio.sleep(CLAIM_S)
            return False
        except UserError as error:
            LOG.error("host", extra={"fields": {"error": error.message}})
        return True

    # Claiming -------------------------------------------------------------------------------------------------------

    def _claim(self) -> None:
        stale_ms = round(self._settings.heartbeat.stale_s * 1_000)
        for deployment in self._workspace.deployments.unattended(stale_ms):
            if len(self.hosted) >= self._settings.capacity or self._stops:
                return
            if deployment.id in self.hosted or not self._may_take(deployment):
                continue
            try:
                epoch = self._workspace.runs.claim(deployment.run_id, stale_ms, into="running")
            except UserError as error:  # another host was faster, or its run is gone
                LOG.info("not claimed", extra={"fields": {"deployment": deployment.id, "cause": error.message}})
                continue
            self.begin(deployment, epoch)

    def _may_take(self, deployment: Deployment) -> bool:
        only = self._settings.only
        if only and deployment.id not in only:
            return False
        if deployment.state == "halted" and deployment.code == FAULT:
            return False  # it would meet the same fault; a person resumes it
        until_s, _ = self._resting.get(deployment.id, (0.0, 0.0))
        return stopwatch() >= until_s

    def begin(self, deployment: Deployment, epoch: int) -> None:
        listener = self._listener
        run = DeploymentRun(
            self._workspace, deployment, epoch, listener.entry, listener.state, on_command=listener.command
        )
        task = asyncio.create_task(run.work(), name=deployment.id)
        self.hosted[deployment.id] = _Hosted(run, task)
        task.add_done_callback(lambda done: self._ended(deployment.id, done))
        LOG.info("deployment begins", extra={"fields": {"deployment": deployment.id, "epoch": epoch}})
        listener.begun(deployment)

    def _ended(self, deployment_id: str, task: "asyncio.Task[Outcome]") -> None:
        hosted = self.hosted.pop(deployment_id)
        outcome: Outcome = "released" if task.cancelled() else task.result()
        if outcome == "outage":
            _, rested_s = self._resting.get(deployment_id, (0.0, 0.0))
            rest_s = min(LAST_RETRY_S, max(FIRST_RETRY_S, rested_s * 2))
            self._resting[deployment_id] = stopwatch() + rest_s, rest_s
        else:
            self._resting.pop(deployment_id, None)
        LOG.info("deployment ends here", extra={"fields": {"deployment": deployment_id, "outcome": outcome}})
        self._listener.ended(hosted.run.deployment, outcome)
        self._wake.set()

    # Commands -------------------------------------------------------------------------------------------------------

    def deliver(self) -> None:
        if not self.hosted:
            return
        # A halt that another process has stored, such as the watchdog's, counts here too.
        for deployment_id, code in self._workspace.deployments.halted(list(self.hosted)).items():
            if self.hosted[deployment_id].run.control.adopt_halt(code):
                self._listener.state(self._workspace.deployments.get(deployment_id))
        live = [each for each, hosted in self.hosted.items() if hosted.run.deployment.mode == "live"]
        if live:
            for deployment_id, text in overdue_alarms(self._workspace.database, live).items():
                self.hosted[deployment_id].run.halt_for_alarm(text)
        in_effect = caps_numbers(self._workspace.database, list(self.hosted))
        for deployment_id, hosted in self.hosted.items():
            hosted.run.follow_caps(in_effect.get(deployment_id, 0))
        for command in self._workspace.deployments.open_commands(list(self.hosted)):
            hosted = self.hosted.get(command.deployment_id)
            if hosted is None:
                continue
            if command.command == "kill":
                self._kill(hosted, command)
            else:
                hosted.run.control.deliver(command)

    def _kill(self, hosted: _Hosted, command: OpenCommand) -> None:
        """End a deployment at once: nothing is waited for, not even the tick that is being worked on."""
        hosted.run.control.deliver(command)  # from here on nothing opens, even if the database cannot be written yet
        acked = self._workspace.deployments.acknowledge(command, "its process ended at once")
        self._listener.command(acked)
        hosted.run.control.state = "stopped"
        hosted.task.cancel()

    # Stopping -------------------------------------------------------------------------------------------------------

    def leases(self) -> dict[str, int]:
        """Called in the heartbeat thread. An event loop that hangs is silence: then the watchdog acts, and others take over."""
        if stopwatch() - self.turned_s > LONGEST_TURN_S:
            return {}
        return {each.run.deployment.run_id: each.run.epoch for each in self.hosted.copy().values()}

    def _notice(self, run_id: str, epoch: int, notice: LeaseNotice) -> None:
        """Called in the heartbeat thread: a lease was lost, or the run was cancelled by hand."""
        for each in self.hosted.copy().values():
            if each.run.deployment.run_id == run_id and each.run.epoch == epoch and self._loop is not None:
                stop = each.task.cancel if notice == "lost" else each.run.stop.request
                self._loop.call_soon_threadsafe(stop)

    async def _drain(self) -> None:
        for each in self.hosted.values():
            each.run.stop.request()
        until_s = stopwatch() + self._settings.drain_s
        while self.hosted and self._stops < 2 and stopwatch() < until_s:
            await self._guarded(self.deliver)
            await self._pause(POLL_S)
            self.turned_s = stopwatch()
        tasks = [each.task for each in self.hosted.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _pause(self, wait_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._wake.wait()
        self._wake.clear()


async def host(
    workspace: Workspace,
    settings: HostSettings,
    listener: HostListener | None = None,
    lock: "HostLock | None" = None,
) -> bool:
    """Host deployments until SIGINT or SIGTERM; the second signal does not wait for ticks. Returns whether SIGINT came."""
    notifier = open_notifier(workspace)
    live_host = LiveHost(workspace, settings, notifying(listener or HostListener(), notifier, workspace), lock)
    loop = asyncio.get_running_loop()
    numbers, received = (signal.SIGINT, signal.SIGTERM), set[int]()

    def stop(number: int) -> None:
        received.add(number)
        live_host.stop()

    for number in numbers:
        with suppress(ValueError, RuntimeError):  # only the main thread may catch signals
            loop.add_signal_handler(number, stop, number)
    try:
        async with notifier, serving_metrics(live_host.metrics, settings.metrics) as address:
            if address:
                LOG.info("metrics are served", extra={"fields": {"address": address}})
            await live_host.run()
    finally:
        for number in numbers:
            with suppress(ValueError, RuntimeError):
                loop.remove_signal_handler(number)
    return signal.SIGINT in received


class HostLock:
    """The lock of the host that `deploy` starts: one on each machine. It ends with the process that holds it."""

    def __init__(self, home: Path) -> None:
        path = home / "live" / "host.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(path, mode=0o600, blocking=False, fallback_to_soft=False)

    def acquire(self) -> bool:
        """Take it; False if another process has it."""
        try:
            self._lock.acquire()
        except Timeout:
            return False
        return True

    def release(self) -> None:
        """Give it up, if this process has it."""
        self._lock.release()


def main(home: str) -> int:
    """The host that `pitboss deploy` starts; a second one on this machine exits at once."""
    settings = load_settings(Path(home))
    start_logs(settings.log_level, settings.log_file)
    lock = HostLock(settings.home)
    if not lock.acquire():
        return 0
    try:
        with asyncio.run(wait_for_workspace(settings)) as workspace:
            LOG.info("host starts", extra={"fields": {"host": worker_name()}})
            asyncio.run(host(workspace, HostSettings(idle_exit_s=settings.worker_idle_s), lock=lock))
    finally:
        lock.release()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
