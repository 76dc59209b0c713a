"""The heartbeat of a worker: a thread that renews the leases of all its runs and reports runs that were lost or cancelled.

It is a thread because a run that computes blocks the event loop, and a missed heartbeat would look like a dead worker. It
also requeues the runs of other workers whose leases have expired. It does not stop runs itself: the worker does.
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
"""How often cancel requests are looked for: a person waits for the effect."""

RECOVERY_GRACE_S = 2.0
"""For how long after an outage of the database no lease is declared expired: other workers may not have renewed theirs yet."""

LeaseNotice = Literal["lost", "cancelled"]


@dataclass(frozen=True, slots=True)
class HeartbeatSettings:
    """How often leases are renewed, after which silence they expire, and how often expired ones are looked for."""

    heartbeat_s: float = HEARTBEAT_MS / 1_000
    stale_s: float = STALE_MS / 1_000
    scan_s: float = SCAN_MS / 1_000


class Heartbeat:
    """The thread. `leases` returns the current leases of the worker; `notify` is called for each that is lost or cancelled.

    Both are called in this thread and must be safe there.
    """

    def __init__(
        self,
        queue: Queue,
        runs: Runs,
        settings: HeartbeatSettings,
        leases: Callable[[], Mapping[str, int]],
        notify: Callable[[str, int, LeaseNotice], None],
    ) -> None:
        self._queue = queue
        self._runs = runs
        self._settings = settings
        self._leases = leases
        self._notify = notify
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="heartbeat", daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped.set()
        self._thread.join(timeout=self._settings.heartbeat_s + 15)

    def _loop(self) -> None:
        beat_s = scan_s = turn_s = stopwatch()  # when each is due, and when the last turn began
        pause_s = min(POLL_S, self._settings.heartbeat_s, self._settings.scan_s)
        longest_turn_s = self._settings.stale_s / 2
        while not self._stopped.is_set():
            now_s = stopwatch()
            if now_s - turn_s > longest_turn_s:  # this process was suspended, and perhaps the whole machine was
                scan_s = max(scan_s, now_s + RECOVERY_GRACE_S)
            turn_s = now_s
            try:
                if now_s >= beat_s:
                    beat_s = now_s + self._settings.heartbeat_s
                    self.beat()
                else:
                    self._poll_cancels()
                if now_s >= scan_s and stopwatch() - now_s <= longest_turn_s:  # the heartbeat itself may have waited
                    scan_s = now_s + self._settings.scan_s
                    self._scan()
            except Unreachable:
                beat_s, scan_s = now_s, stopwatch() + RECOVERY_GRACE_S
            except Exception as error:  # noqa: BLE001 - a worker without heartbeats loses its runs: this thread must not end
                LOG.error("heartbeat", extra={"fields": {"error": repr(error)}})
            self._stopped.wait(pause_s)

    def beat(self) -> None:
        """Renew all leases in one transaction."""
        leases = dict(self._leases())
        if not leases:
            return
        reply = self._queue.beat(leases)
        for run_id in reply.lost:
            self._notify(run_id, leases[run_id], "lost")
        for run_id in reply.cancelled:
            self._notify(run_id, leases[run_id], "cancelled")

    def _poll_cancels(self) -> None:
        for run_id, epoch in self._leases().items():
            if self._runs.cancel_requested(run_id):
                self._notify(run_id, epoch, "cancelled")

    def _scan(self) -> None:
        try:
            swept = self._queue.sweep(int(self._settings.stale_s * 1_000))
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
