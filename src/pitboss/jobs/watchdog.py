"""The watchdog: a process of its own that acts when the process of a live deployment is silent.

It reads the heartbeats of deployments in mode live. One that is silent for too long is halted first, in the database, so that no
restart goes on trading; then its open orders are cancelled through the venue's `AccountGuardian`, and with `flatten` its
positions are closed. It looks again while the silence lasts: an order that was on its way may arrive late. If the database
cannot be reached either, orders are cancelled and nothing is closed: the deployment itself may be well.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Literal

from pitboss.bootstrap.machine import stopwatch
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.workspace import Workspace
from pitboss.build import build
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import SECOND_MS, Instant
from pitboss.jobs.worker_settings import worker_name
from pitboss.runs.account_guardian import AccountGuardian, GuardianReport
from pitboss.runs.venues import venue_named
from pitboss.store.deployments import Deployment
from pitboss.store.retry import Unreachable
from pitboss.store.watchdog_beats import WatchdogBeat, write_beat

LOG = logging.getLogger("pitboss.watchdog")
CODE = "watchdog"
"""The code of a halt by the watchdog."""
BEAT_S = 2.0
CHECK_S = 5.0
"""How often it checks that it could act: its signer and the venue."""
RETRY_S, FIRST_LOOK_S, LAST_LOOK_S = 2.0, 5.0, 60.0
"""When it acts again: while something is left, and while nothing is, at first and at last."""
CALL_S = 10.0
"""How long one call to a venue may take."""
RECOVERY_S = 7.0
"""How long it waits after a pause of its own, of the machine or of the database: others may have had no chance to be heard."""

EventKind = Literal["watching", "silent", "acted", "failed", "back", "database"]


@dataclass(frozen=True, slots=True)
class WatchdogSettings:
    """After which silence it acts, whether it closes positions too, and which deployments it watches; empty: all that are live."""

    silent_ms: int = 13 * SECOND_MS
    """Two heartbeats may be lost, and orders are cancelled within 15 s of the end of a process."""
    flatten: bool = False
    only: frozenset[str] = frozenset()
    poll_s: float = 0.5


@dataclass(frozen=True, slots=True)
class WatchdogEvent:
    """Something to tell a person."""

    kind: EventKind
    deployment: Deployment | None
    text: str


@dataclass(slots=True)
class _Watched:
    """A deployment and its guardian."""

    deployment: Deployment
    guardian: AccountGuardian | None = None
    heard_at: Instant = 0
    acts_from_s: float = 0.0
    look_s: float = FIRST_LOOK_S
    is_silent: bool = False
    checked_s: float = -CHECK_S
    problem: str = "not checked yet"
    last_event: EventKind | None = None
    """The last event about the action in this silence: `acted` or `failed`."""
    attending: asyncio.Task[None] | None = None
    """What is being done about it; passes go on meanwhile, so that a venue that hangs delays no other deployment."""
    is_checking: bool = False
    """Whether that is a check, which ends when a silence begins."""


class Watchdog:
    """One watchdog. `tell` receives what a person should know; `elapsed` counts seconds."""

    def __init__(
        self,
        workspace: Workspace,
        settings: WatchdogSettings,
        tell: Callable[[WatchdogEvent], None] = lambda event: None,
        elapsed: Callable[[], float] = stopwatch,
    ) -> None:
        self._workspace = workspace
        self._settings = settings
        self._tell = tell
        self._elapsed = elapsed
        self._watched: dict[str, _Watched] = {}
        self._attending: set[asyncio.Task[None]] = set()
        self._guardians = AsyncExitStack()
        self._passed_s = elapsed()
        self._read_s = elapsed()
        self._read_at: Instant = 0
        self._recovers_until_s = 0.0
        self._database_problem = ""
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """End after the current pass."""
        self._stopped.set()

    async def run(self) -> None:
        """Watch until stopped."""
        beating = asyncio.create_task(self._beat_on())
        try:
            while not self._stopped.is_set():
                await self.watch()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._settings.poll_s):
                        await self._stopped.wait()
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
            await self.close()

    async def close(self) -> None:
        """End what is being done, and close the connections to venues."""
        self._watched.clear()
        for task in self._attending:
            task.cancel()
        await asyncio.gather(*self._attending, return_exceptions=True)
        await self._guardians.aclose()

    async def watch(self) -> None:
        """One pass over all deployments. What a venue takes longer than `poll_s` for goes on after it."""
        now_s = self._elapsed()
        if now_s - self._passed_s > self._settings.silent_ms / SECOND_MS / 2 + CALL_S:  # this process was suspended
            self._recovers_until_s = now_s + RECOVERY_S
        self._passed_s = now_s
        is_stored = self._read(now_s)
        now = self._read_at + round((now_s - self._read_s) * SECOND_MS)
        for each in self._watched.values():
            earlier = each.attending
            if earlier is not None and not earlier.done():
                if not each.is_checking or _silent_ms(each, now) <= self._settings.silent_ms:
                    continue
                earlier.cancel()
                each.is_checking = False
            each.attending = asyncio.create_task(self._look_after(each, now, now_s, is_stored, earlier))
            self._attending.add(each.attending)
        if self._attending:
            ended, self._attending = await asyncio.wait(self._attending, timeout=self._settings.poll_s)
            for task in ended:
                if not task.cancelled():
                    task.result()

    def beat(self) -> None:
        """Store that it is there, and for which deployments it could not act."""
        problems = {
            each.deployment.id: REDACTOR.redact(each.problem)[:300] for each in self._watched.values() if each.problem
        }
        settings = self._settings
        watched = tuple(self._watched)
        beat = WatchdogBeat(worker_name(), watched, settings.silent_ms, settings.flatten, problems, build())
        try:
            write_beat(self._workspace.database, beat)
        except (Unreachable, UserError) as error:
            LOG.warning("heartbeat not stored", extra={"fields": {"error": error.message}})

    async def _beat_on(self) -> None:
        while True:
            if self._elapsed() - self._passed_s <= 2 * CALL_S:  # a watchdog that hangs must not look alive
                self.beat()
            await asyncio.sleep(BEAT_S)

    # Reading --------------------------------------------------------------------------------------------------------

    def _read(self, now_s: float) -> bool:
        """Read deployments and heartbeats; False if the database cannot be reached, and the last ones count."""
        try:
            now, listed = self._workspace.deployments.heartbeats("live")
        except (Unreachable, UserError) as error:
            if not self._database_problem:
                self._database_problem = error.message
                self._tell(WatchdogEvent("database", None, f"the database cannot be read: {error.message}"))
            return False
        if self._database_problem:
            self._database_problem = ""
            self._recovers_until_s = now_s + RECOVERY_S
            self._tell(WatchdogEvent("database", None, "the database can be read again"))
        self._read_s, self._read_at = now_s, now
        only = self._settings.only
        current = {each.id: (each, heard_at) for each, heard_at in listed if not only or each.id in only}
        for deployment_id in [each for each in self._watched if each not in current]:
            del self._watched[deployment_id]  # it is stopped; its connection is closed at the end
        for deployment_id, (deployment, heard_at) in current.items():
            watched = self._watched.get(deployment_id)
            if watched is None:
                watched = self._watched[deployment_id] = _Watched(deployment)
                self._tell(
                    WatchdogEvent("watching", deployment, f"watching {deployment.skill} on {deployment.account}")
                )
            watched.deployment = deployment
            # A deployment that no process ever worked on has sent nothing; one that was just resumed gets time for a process.
            resumed_at = deployment.changed_at if deployment.state == "running" else 0
            watched.heard_at = 0 if heard_at is None else max(heard_at, resumed_at)
        return True

    # Acting ---------------------------------------------------------------------------------------------------------

    async def _look_after(
        self, watched: _Watched, now: Instant, now_s: float, is_stored: bool, earlier: asyncio.Task[None] | None
    ) -> None:
        if earlier is not None:
            await asyncio.wait([earlier])  # a check that was cancelled
        silent_ms = _silent_ms(watched, now)
        if silent_ms <= self._settings.silent_ms:
            if watched.is_silent:
                watched.is_silent = False
                self._tell(WatchdogEvent("back", watched.deployment, "its process writes heartbeats again"))
            if now_s - watched.checked_s >= CHECK_S:
                watched.checked_s, watched.is_checking = now_s, True
                try:
                    watched.problem = await self._problem(watched)
                finally:
                    watched.is_checking = False
            return
        if now_s < self._recovers_until_s:
            return
        if not watched.is_silent:
            watched.is_silent, watched.look_s, watched.acts_from_s, watched.last_event = True, FIRST_LOOK_S, 0.0, None
            text = f"its process wrote no heartbeat for {silent_ms / SECOND_MS:.0f} s"
            self._tell(WatchdogEvent("silent", watched.deployment, text))
        if now_s < watched.acts_from_s:
            return
        if is_stored:
            self._halt(watched.deployment, silent_ms)
        is_done = await self._act(watched, with_flatten=self._settings.flatten and is_stored)
        watched.acts_from_s = now_s + (watched.look_s if is_done else RETRY_S)
        if is_done:
            watched.look_s = min(LAST_LOOK_S, watched.look_s * 2)

    def _halt(self, deployment: Deployment, silent_ms: int) -> None:
        """Halt, so that no process goes on with it. A halt or an end that is stored stays as it is."""
        reason = f"its process wrote no heartbeat for {silent_ms / SECOND_MS:.0f} s; halted by the watchdog"
        try:
            self._workspace.deployments.halt(deployment.id, CODE, reason)
        except (Unreachable, UserError) as error:  # orders are cancelled all the same
            LOG.error("not halted", extra={"fields": {"deployment": deployment.id, "error": error.message}})

    async def _act(self, watched: _Watched, with_flatten: bool) -> bool:
        """Cancel, and close if told to. Returns whether nothing is left to do."""
        try:
            async with asyncio.timeout(CALL_S):
                guardian = await self._guardian(watched)
                cancelled = await guardian.cancel_orders()
            closed = GuardianReport(0, 0)
            if with_flatten:
                async with asyncio.timeout(CALL_S):
                    closed = await guardian.flatten()
        except TimeoutError:
            return self._failed(watched, "the venue did not answer in time")
        except (TransientError, UserError, Unreachable) as error:
            return self._failed(watched, str(error))
        except Exception as error:  # a fault for one deployment must not end the watch over the others
            LOG.exception("fault", extra={"fields": {"deployment": watched.deployment.id}})
            return self._failed(watched, f"unexpected fault: {error!r}")
        watched.problem = ""
        text = "; ".join(part for part in (cancelled.detail, closed.detail) if part)
        if cancelled.left + closed.left:
            return self._failed(watched, text)
        if cancelled.done or closed.done or watched.last_event != "acted":
            watched.last_event = "acted"
            self._tell(WatchdogEvent("acted", watched.deployment, text))
        return True

    def _failed(self, watched: _Watched, text: str) -> bool:
        watched.problem = text
        LOG.warning("not done", extra={"fields": {"deployment": watched.deployment.id, "error": REDACTOR.redact(text)}})
        if watched.last_event != "failed":  # once: it is tried again every two seconds
            watched.last_event = "failed"
            self._tell(WatchdogEvent("failed", watched.deployment, text))
        return False

    async def _problem(self, watched: _Watched) -> str:
        try:
            async with asyncio.timeout(CALL_S):
                return await (await self._guardian(watched)).problem()
        except TimeoutError:
            return "the venue did not answer in time"
        except (TransientError, UserError, Unreachable) as error:
            return str(error)
        except Exception as error:  # as above
            LOG.exception("fault", extra={"fields": {"deployment": watched.deployment.id}})
            return f"unexpected fault: {error!r}"

    async def _guardian(self, watched: _Watched) -> AccountGuardian:
        if watched.guardian is None:
            venue = venue_named(watched.deployment.venue)
            opened = venue.open_guardian(self._workspace, watched.deployment)
            watched.guardian = await self._guardians.enter_async_context(opened)
        return watched.guardian


def _silent_ms(watched: _Watched, now: Instant) -> int:
    """How long nothing was heard of a deployment; 0 if no process ever worked on it."""
    return now - watched.heard_at if watched.heard_at else 0
