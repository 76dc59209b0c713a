"""Where a worker executes a run: on its event loop together with others, or in a child process.

A run that waits for a model costs the loop almost nothing, and hundreds fit on one. A run that only computes blocks the loop
while it lasts: a short one is fastest there, because a process takes a second of computing to start; a long one makes others
wait and leaves other cores idle. A run that has lost its worker more than once may have caused the losses, and is isolated.
"""

from pitboss.bootstrap.decider_source import is_model
from pitboss.runs.stored import request_of
from pitboss.sim.request import BacktestRequest
from pitboss.store.runs import Run

MIN_PROCESS_RUN_S = 0.25
"""How long a run must take to justify a process: a quarter of what one takes to start, since it is reused."""

SUSPECT_LOSSES = 2
"""After so many lost workers a run is isolated. A single loss can have any cause, and a new process is slow to start."""


def is_compute_only(run: Run) -> bool:
    """Whether a run asks no model. True for a run that cannot be read: it ends quickly."""
    try:
        request: BacktestRequest = request_of(run)
        return not is_model(request)
    except Exception:  # noqa: BLE001 - its parameters may be anything; executing it reports what is wrong with them
        return True


def needs_process(run: Run, compute_only: bool, processes: int, is_shared: bool, last_run_s: float) -> bool:
    """Whether a run is executed in a child process.

    `is_shared`: this worker is working on other runs too. `last_run_s`: how long the last compute-only run took; successive
    runs mostly belong to one study and take about as long.
    """
    if not processes:
        return False
    is_long = compute_only and last_run_s >= MIN_PROCESS_RUN_S
    return run.requeues >= SUSPECT_LOSSES or (is_long and (is_shared or processes > 1))
