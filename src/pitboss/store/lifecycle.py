"""The life of a run: its statuses, the moves between them, and the lease that says who may write.

queued → loading → running → computing_metrics → complete
every one of these but complete → error | cancelled
everything but complete → loading, by a claim, which raises the lease epoch (this is also how a run is resumed);
a worker that has loaded already claims straight into running, and a journal that takes the closing record of a running
run moves it on to computing_metrics in the same transaction
loading, running, computing_metrics → queued, when its worker gives it back or is lost; this raises the epoch too, so that
whoever had it is fenced off from that moment on
"""

from typing import Literal

from pitboss.core.errors import InvariantError

Status = Literal["queued", "loading", "running", "computing_metrics", "complete", "error", "cancelled"]

ACTIVE: frozenset[Status] = frozenset({"loading", "running", "computing_metrics"})
ENDED: frozenset[Status] = frozenset({"complete", "error", "cancelled"})

_MOVES: dict[Status, frozenset[Status]] = {
    "queued": frozenset({"error", "cancelled"}),  # into loading only by a claim
    "loading": frozenset({"loading", "running", "error", "cancelled"}),
    "running": frozenset({"running", "computing_metrics", "error", "cancelled"}),
    "computing_metrics": frozenset({"computing_metrics", "complete", "error", "cancelled"}),
    "complete": frozenset(),
    "error": frozenset(),
    "cancelled": frozenset(),
}


class LeaseLost(InvariantError):
    """A worker that was taken for dead is alive after all, and must stop at once without writing anything."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"another worker took this run ({run_id})")


def require_move(run_id: str, before: Status, after: Status) -> None:
    """Raise unless a run may go from one status to the other. Staying where it is, while active, is no move."""
    if after not in _MOVES[before]:
        raise InvariantError(f"run {run_id} cannot go from {before} to {after}")
