"""The pulse of a worker: a thread that says for all its runs that it is alive, and hears what is to become of them.

A thread of its own, because a run that computes does not let the event loop go for as long as it computes; silence would
then look like death. It also looks for runs whose workers were lost, and wakes who was stopped with the database file locked.
It decides nothing: what it hears it passes on, and a run that was lost is given up by the worker.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from pitboss.bootstrap.machine import stopwatch
from pitboss.core.errors import UserError
from pitboss.store.queue import HEARTBEAT_MS, SCAN_MS, STALE_MS, Queue
from pitboss.store.retry import Unreachable
from pitboss.store.runs import Runs

LOG = logging.getLogger("pitboss.jobs")
POLL_S = 1.0
"""How often it looks whether somebody asked for a run to stop: a person waits for it."""

COURTESY_S = 2.0
"""After the database was away nobody is judged for so long: the others may not have had the time to say they are alive."""

News = Literal["lost", "cancelled"]


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How often a worker does what it does besides its runs."""

    heartbeat_s: float = HEARTBEAT_MS / 1_000
    stale_s: float = STALE_MS / 1_000
    scan_s: float = SCAN_MS / 1_000


class Pulse:
    """The thread. `leases` gives what the worker has at the moment, `tell` takes what became of one of them.

    Both are called in the thread, so they must be safe there.
    """

    def __init__(
        self,
        queue: Queue,
        runs: Runs,
        rhythm: Rhythm,
        leases: Callable[[], Mapping[str, int]],
        tell: Callable[[str, int, News], None],
    ) -> None:
        self._queue = queue
        self._runs = runs
        self._rhythm = rhythm
        self._leases = leases
        self._tell = tell
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._live, name="pulse", daemon=True)

    def __enter__(self) -> "Pulse":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join(timeout=self._rhythm.heartbeat_s + 15)

    def _live(self) -> None:
        beat_s = scan_s = turn_s = stopwatch()  # when each is due, and when the last turn began
        pause_s = min(POLL_S, self._rhythm.heartbeat_s, self._rhythm.scan_s)
        while not self._done.is_set():
            now_s = stopwatch()
            if now_s - turn_s > self._rhythm.stale_s / 2:  # this process stood still, and perhaps the whole machine did
                scan_s = max(scan_s, now_s + COURTESY_S)
            turn_s = now_s
            try:
                if now_s >= beat_s:
                    beat_s = now_s + self._rhythm.heartbeat_s
                    self.beat()
                else:
                    self._look()
                if (
                    now_s >= scan_s and stopwatch() - now_s <= self._rhythm.stale_s / 2
                ):  # the beat itself may have waited
                    scan_s = now_s + self._rhythm.scan_s
                    self._scan()
            except Unreachable:
                beat_s, scan_s = now_s, stopwatch() + COURTESY_S
            except Exception as error:  # noqa: BLE001 - a worker without a pulse is a dead one: this thread must not end
                LOG.error("pulse", extra={"fields": {"error": repr(error)}})
            self._done.wait(pause_s)

    def beat(self) -> None:
        """Say that all runs are being worked on, in one transaction."""
        leases = dict(self._leases())
        if not leases:
            return
        heard = self._queue.beat(leases)
        for run_id in heard.lost:
            self._tell(run_id, leases[run_id], "lost")
        for run_id in heard.cancelled:
            self._tell(run_id, leases[run_id], "cancelled")

    def _look(self) -> None:
        for run_id, epoch in self._leases().items():
            if self._runs.cancel_requested(run_id):
                self._tell(run_id, epoch, "cancelled")

    def _scan(self) -> None:
        try:
            swept = self._queue.sweep(int(self._rhythm.stale_s * 1_000))
        except Unreachable:
            raise
        except UserError as error:
            LOG.error("sweep", extra={"fields": {"error": error.message}})
            return
        if swept.requeued or swept.failed or swept.cancelled:
            LOG.warning(
                "workers were lost",
                extra={"fields": {"requeued": swept.requeued, "failed": swept.failed, "cancelled": swept.cancelled}},
            )
