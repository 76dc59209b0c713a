"""Whether a log of events can have come from a queue that works: nothing lost, doubled or stuck, no write of a zombie.

Reads the log alone, in order, and says every violation in plain words. It knows nothing of the tables that the queue
writes: a fault that they hide (a record written by a worker that had lost its run, and overwritten since) is still here.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from pitboss.core.instant import Instant
from pitboss.store.events import RunEvent

END = frozenset({"complete", "error", "cancelled"})
SLACK_MS = 10_000
"""A commit reads the time before it waits for the run's row, so an event may be this much older than the one before."""
State = Literal["unknown", "queued", "held", "ended"]


@dataclass(frozen=True, slots=True)
class Findings:
    """What a log says: every violation, and how much was looked at."""

    violations: list[str] = field(default_factory=list[str])
    runs: int = 0
    claims: int = 0
    commits: int = 0
    requeues: int = 0
    refused: int = 0
    ends: dict[str, int] = field(default_factory=dict[str, int])
    reclaims_ms: list[int] = field(default_factory=list[int])
    """From the last sign of life of each worker that was lost (not from when it was missed) to the next claim of its run."""

    @property
    def longest_reclaim_ms(self) -> int:
        """The longest of them; 0 where nobody was lost."""
        return max(self.reclaims_ms, default=0)


@dataclass(slots=True)
class _RunHistory:
    """One run, as far as the log has been read."""

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
    """Every violation in a log.

    `expected` are the runs that must be in it; `ended`, that none may still be under way; `stale_ms`, how long a worker
    must have been silent before it counts as lost; `most`, how often a run may be put back; `reclaim_ms`, how soon after
    the last sign of life of a lost worker its run must be taken again.
    """
    lives: dict[str, _RunHistory] = {}
    bad: list[str] = []
    counts: dict[str, int] = dict.fromkeys(("claims", "commits", "requeues", "refused"), 0)
    ends: dict[str, int] = {}
    reclaims: list[int] = []
    last = 0
    for event in events:
        if event.id <= last:
            bad.append(f"event {event.id} comes after event {last}")
        last = event.id
        life = lives.setdefault(event.run_id, _RunHistory())
        bad += [
            f"run {event.run_id}: {said} (event {event.id})"
            for said in _step(life, event, stale_ms, most, counts, reclaims)
        ]
        if event.kind in END:
            ends[event.kind] = ends.get(event.kind, 0) + 1
    bad += [f"run {run_id} is lost: it is not in the log" for run_id in sorted(set(expected or ()) - set(lives))]
    if ended:
        bad += [f"run {run_id} is stuck: {life.state}" for run_id, life in lives.items() if life.state != "ended"]
    if reclaim_ms is not None:
        late = [waited for waited in reclaims if waited > reclaim_ms]
        bad += [f"a run waited {waited} ms to be taken again, more than {reclaim_ms}" for waited in late]
    return Findings(
        bad,
        len(lives),
        counts["claims"],
        counts["commits"],
        counts["requeues"],
        counts["refused"],
        ends,
        reclaims,
    )


def _step(
    life: _RunHistory, event: RunEvent, stale_ms: int | None, most: int, counts: dict[str, int], reclaims: list[int]
) -> Iterator[str]:
    """What is wrong with one event after those before it."""
    if event.kind == "refused":
        counts["refused"] += 1
        if life.state == "held" and event.epoch >= life.epoch:
            yield f"a write under the lease that holds ({event.epoch}) was refused"
        return
    if event.at < life.at - SLACK_MS:
        yield f"time went back by {life.at - event.at} ms"
    life.at = max(life.at, event.at)
    if event.kind == "enqueued":
        yield from _enqueued(life, event)
    elif event.kind in ("claimed", "taken"):
        counts["claims"] += 1
        yield from _claimed(life, event, reclaims)
    elif event.kind == "cancel":
        life.cancel = True
    elif event.kind == "committed":
        counts["commits"] += 1
        yield from _committed(life, event)
    elif event.kind in ("requeued", "released"):
        yield from _put_back(life, event, stale_ms, most, counts)
    elif event.kind in END:
        yield from _ended(life, event)
    else:
        yield f"nobody knows what {event.kind!r} is"


def _enqueued(life: _RunHistory, event: RunEvent) -> Iterator[str]:
    if life.state in ("queued", "held"):
        yield f"it was queued while it was {life.state}"
    if life.completed:
        yield "it was queued after it was complete"
    if life.state == "ended" and event.epoch <= life.epoch:
        yield f"it was queued again under the epoch {event.epoch} of its last lease"
    life.state, life.epoch, life.requeues, life.cancel = "queued", event.epoch, 0, False


def _claimed(life: _RunHistory, event: RunEvent, reclaims: list[int]) -> Iterator[str]:
    if event.epoch <= life.epoch:
        yield f"the epoch did not rise: {life.epoch}, then {event.epoch}"
    if event.kind == "claimed":
        if life.state == "held":
            yield f"two leases at once: {life.epoch} and {event.epoch}"
        elif life.state != "queued":
            yield f"it was claimed while it was {life.state}"
        if life.lost_at is not None:
            reclaims.append(event.at - life.lost_at)
    elif life.completed:
        yield "it was taken after it was complete"
    if event.kind == "taken":
        life.cancel, life.requeues = False, 0
    life.state, life.epoch, life.lost_at, life.alive_at = "held", event.epoch, None, event.at


def _committed(life: _RunHistory, event: RunEvent) -> Iterator[str]:
    if life.state != "held" or event.epoch != life.epoch:
        holder = f"the lease is {life.epoch}" if life.state == "held" else f"it is {life.state}"
        yield f"a write under the old epoch {event.epoch} was made, and {holder}"
    first, _, after = event.detail.partition("-")
    if not (first.isdecimal() and after.isdecimal()):
        yield f"a commit says {event.detail!r} of itself"
        return
    if life.next_seq is not None and int(first) != life.next_seq:
        yield f"records {'doubled' if int(first) < life.next_seq else 'lost'}: {life.next_seq} was next, not {first}"
    life.next_seq, life.alive_at = int(after), event.at


def _put_back(
    life: _RunHistory, event: RunEvent, stale_ms: int | None, most: int, counts: dict[str, int]
) -> Iterator[str]:
    if life.state != "held" or event.epoch != life.epoch:
        yield f"it was put back under epoch {event.epoch}, but it is {life.state} under {life.epoch}"
    if event.kind == "requeued":
        counts["requeues"] += 1
        life.requeues += 1
        silent = event.detail.partition(" ")[0]
        if stale_ms is not None and (not silent.isdecimal() or int(silent) <= stale_ms):
            yield f"its worker was given up after {silent} ms, before {stale_ms}"
        if life.requeues > most:
            yield f"it was put back {life.requeues} times, more than {most}"
        if silent.isdecimal():
            life.lost_at = event.at - int(silent)
    if life.cancel:
        yield "it was put back after somebody asked for it to stop"
    life.state, life.epoch = "queued", event.epoch + 1


def _ended(life: _RunHistory, event: RunEvent) -> Iterator[str]:
    if life.state == "ended":
        yield f"it ended twice; this time {event.kind}"
    elif life.state == "held" and event.epoch != life.epoch:
        yield f"it was ended ({event.kind}) under the old epoch {event.epoch}; the lease is {life.epoch}"
    elif life.state == "queued" and event.kind != "cancelled":
        yield f"it was ended ({event.kind}) while nobody had it"
    elif life.state == "unknown":
        yield f"it ended ({event.kind}) before it began"
    if event.kind == "complete":
        life.completed += 1
    life.state, life.epoch = "ended", max(life.epoch, event.epoch)
