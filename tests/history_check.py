"""Checks a log of run events: no run lost, duplicated or stuck, no write of a worker that had lost its lease.

Reads the log alone, in order, and reports every violation as a sentence. It does not read the tables that the queue writes:
a fault that they no longer show (a record of a worker that had lost its run, overwritten since) is still in the log.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from pitboss.core.instant import Instant
from pitboss.store.events import RunEvent

END = frozenset({"complete", "error", "cancelled"})
SLACK_MS = 10_000
"""A commit reads the time before it waits for the run's row, so an event may be this much older than its predecessor."""
State = Literal["unknown", "queued", "held", "ended"]


@dataclass(frozen=True, slots=True)
class Findings:
    """The violations in a log, and how much was checked."""

    violations: list[str] = field(default_factory=list[str])
    runs: int = 0
    claims: int = 0
    commits: int = 0
    requeues: int = 0
    refused: int = 0
    ends: dict[str, int] = field(default_factory=dict[str, int])
    reclaims_ms: list[int] = field(default_factory=list[int])
    """The time from the last heartbeat of each lost worker (not from when it was missed) to the next claim of its run."""

    @property
    def longest_reclaim_ms(self) -> int:
        """The longest of these times; 0 if no worker was lost."""
        return max(self.reclaims_ms, default=0)


@dataclass(slots=True)
class _RunHistory:
    """The state of one run after the events read so far."""

    state: State = "unknown"
    epoch: int = 0
    at: Instant = 0
    next_seq: int | None = None
    requeues: int = 0
    cancel: bool = False
    lost_at: Instant | None = None
    alive_at: Instant = 0
    completed: int = 0


def check(
    events: Iterable[RunEvent],
    expected: Collection[str] | None = None,
    ended: bool = True,
    stale_ms: int | None = None,
    most: int = 3,
    reclaim_ms: int | None = None,
) -> Findings:
    """Check a log.

    `expected` are the runs that must be in it; with `ended` all runs must have ended; `stale_ms` is the silence after which a
    worker counts as lost; `most` limits the requeues of a run without a commit between them; `reclaim_ms` limits the time from the last heartbeat of a lost
    worker to the next claim of its run.
    """
    histories: dict[str, _RunHistory] = {}
    violations: list[str] = []
    counts: dict[str, int] = dict.fromkeys(("claims", "commits", "requeues", "refused"), 0)
    ends: dict[str, int] = {}
    reclaims: list[int] = []
    last = 0
    for event in events:
        if event.id <= last:
            violations.append(f"event {event.id} comes after event {last}")
        last = event.id
        history = histories.setdefault(event.run_id, _RunHistory())
        violations += [
            f"run {event.run_id}: {problem} (event {event.id})"
            for problem in _step(history, event, stale_ms, most, counts, reclaims)
        ]
        if event.kind in END:
            ends[event.kind] = ends.get(event.kind, 0) + 1
    violations += [
        f"run {run_id} is lost: it is not in the log" for run_id in sorted(set(expected or ()) - set(histories))
    ]
    if ended:
        violations += [
            f"run {run_id} is stuck: {history.state}"
            for run_id, history in histories.items()
            if history.state != "ended"
        ]
    if reclaim_ms is not None:
        late = [waited for waited in reclaims if waited > reclaim_ms]
        violations += [f"a run waited {waited} ms to be claimed again, more than {reclaim_ms}" for waited in late]
    return Findings(
        violations,
        len(histories),
        counts["claims"],
        counts["commits"],
        counts["requeues"],
        counts["refused"],
        ends,
        reclaims,
    )


def _step(
    history: _RunHistory, event: RunEvent, stale_ms: int | None, most: int, counts: dict[str, int], reclaims: list[int]
) -> Iterator[str]:
    """The violations of one event, given those before it."""
    if event.kind == "refused":
        counts["refused"] += 1
        if history.state == "held" and event.epoch >= history.epoch:
            yield f"a write under the lease that holds ({event.epoch}) was refused"
        return
    if event.at < history.at - SLACK_MS:
        yield f"time went back by {history.at - event.at} ms"
    history.at = max(history.at, event.at)
    if event.kind == "enqueued":
        yield from _enqueued(history, event)
    elif event.kind in ("claimed", "taken"):
        counts["claims"] += 1
        yield from _claimed(history, event, reclaims)
    elif event.kind == "cancel":
        history.cancel = True
    elif event.kind == "committed":
        counts["commits"] += 1
        yield from _committed(history, event)
    elif event.kind in ("requeued", "released"):
        yield from _put_back(history, event, stale_ms, most, counts)
    elif event.kind in END:
        yield from _ended(history, event)
    else:
        yield f"unknown kind of event {event.kind!r}"


def _enqueued(history: _RunHistory, event: RunEvent) -> Iterator[str]:
    if history.state in ("queued", "held"):
        yield f"it was queued while it was {history.state}"
    if history.completed:
        yield "it was queued after it was complete"
    if history.state == "ended" and event.epoch <= history.epoch:
        yield f"it was queued again under the epoch {event.epoch} of its last lease"
    history.state, history.epoch, history.requeues, history.cancel = "queued", event.epoch, 0, False


def _claimed(history: _RunHistory, event: RunEvent, reclaims: list[int]) -> Iterator[str]:
    if event.epoch <= history.epoch:
        yield f"the epoch did not rise: {history.epoch}, then {event.epoch}"
    if event.kind == "claimed":
        if history.state == "held":
            yield f"two leases at once: {history.epoch} and {event.epoch}"
        elif history.state != "queued":
            yield f"it was claimed while it was {history.state}"
        if history.lost_at is not None:
            reclaims.append(event.at - history.lost_at)
    elif history.completed:
        yield "it was taken after it was complete"
    if event.kind == "taken":
        history.cancel, history.requeues = False, 0
    history.state, history.epoch, history.lost_at, history.alive_at = "held", event.epoch, None, event.at


def _committed(history: _RunHistory, event: RunEvent) -> Iterator[str]:
    if history.state != "held" or event.epoch != history.epoch:
        holder = f"the lease is {history.epoch}" if history.state == "held" else f"it is {history.state}"
        yield f"a write under the old epoch {event.epoch} was made, and {holder}"
    first, _, after = event.detail.partition("-")
    if not (first.isdecimal() and after.isdecimal()):
        yield f"a commit says {event.detail!r} of itself"
        return
    if history.next_seq is not None and int(first) != history.next_seq:
        yield f"records {'doubled' if int(first) < history.next_seq else 'lost'}: {history.next_seq} was next, not {first}"
    history.next_seq, history.alive_at, history.requeues = int(after), event.at, 0


def _put_back(
    history: _RunHistory, event: RunEvent, stale_ms: int | None, most: int, counts: dict[str, int]
) -> Iterator[str]:
    if history.state != "held" or event.epoch != history.epoch:
        yield f"it was requeued under epoch {event.epoch}, but it is {history.state} under {history.epoch}"
    if event.kind == "requeued":
        counts["requeues"] += 1
        history.requeues += 1
        silent = event.detail.partition(" ")[0]
        if stale_ms is not None and (not silent.isdecimal() or int(silent) <= stale_ms):
            yield f"its worker was given up after {silent} ms, before {stale_ms}"
        if history.requeues > most:
            yield f"it was requeued {history.requeues} times, more than {most}"
        if silent.isdecimal():
            history.lost_at = event.at - int(silent)
    if history.cancel:
        yield "it was requeued after a cancel request"
    history.state, history.epoch = "queued", event.epoch + 1


def _ended(history: _RunHistory, event: RunEvent) -> Iterator[str]:
    if history.state == "ended":
        yield f"it ended twice; this time {event.kind}"
    elif history.state == "held" and event.epoch != history.epoch:
        yield f"it was ended ({event.kind}) under the old epoch {event.epoch}; the lease is {history.epoch}"
    elif history.state == "queued" and event.kind != "cancelled":
        yield f"it was ended ({event.kind}) without a lease"
    elif history.state == "unknown":
        yield f"it ended ({event.kind}) before it was claimed"
    if event.kind == "complete":
        history.completed += 1
    history.state, history.epoch = "ended", max(history.epoch, event.epoch)
