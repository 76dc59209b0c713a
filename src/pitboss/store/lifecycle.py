"""The lifecycle of a run: its statuses, the transitions between them, and the lease that permits writing.

queued → loading → running → computing_metrics → complete
all of these but complete → error | cancelled
all but complete → loading, by a claim, which raises the lease epoch (this is also how a run is resumed);
a worker that has loaded already claims straight into running, and the journal changes a running run to computing_metrics in
the transaction that appends its closing record
loading, running, computing_metrics → queued, when its worker releases it or is lost; this raises the epoch too, so that
later writes of that worker are refused
"""

from typing import Literal

from pitboss.core.errors import InvariantError, UserError

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
    """Another worker has claimed the run; this one must stop at once without writing anything."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"another worker took this run ({run_id})")


def being_executed(run_id: str, executor: str) -> UserError:
    """The refusal to resume a run that somebody else executes."""
    return UserError(
        f"run {run_id} is being executed by {executor}", "wait for it, cancel it, or continue it here with --take-over"
    )


def require_move(run_id: str, before: Status, after: Status) -> None:
    """Raise unless the transition is allowed. An active run may keep its status."""
    if after not in _MOVES[before]:
        raise InvariantError(f"run {run_id} cannot go from {before} to {after}")
