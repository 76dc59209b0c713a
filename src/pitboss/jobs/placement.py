"""Where a worker does a run: on its event loop beside the others, or in a process of its own.

A run that waits for a model costs the loop next to nothing, and hundreds fit on one. A run that only computes keeps the loop
for as long as it lasts: where that is short it is the quickest way, as a process takes a second of computing to start; where
it is long, others wait and other cores stand idle. A run that has lost its worker more than once may be what ended it, and is
kept where it can do no harm to others.
"""

from pitboss.bootstrap.decider_source import is_model
from pitboss.runs.stored import request_of
from pitboss.sim.request import BacktestRequest
from pitboss.store.runs import Run

WORTH_S = 0.25
"""From how long on a run is worth a process: a quarter of what one takes to start, and it is used again."""

SUSPECT = 2
"""A run that lost so many workers is suspected. One may have been killed by anything, and a new process is slow to begin."""


def computes(run: Run) -> bool:
    """Whether a run is done by computing alone. One that cannot even be read will not take long."""
    try:
        request: BacktestRequest = request_of(run)
        return not is_model(request)
    except Exception:  # noqa: BLE001 - its parameters may be anything; the work itself says what is wrong with them
        return True


def apart(run: Run, computing: bool, processes: int, company: bool, took_s: float) -> bool:
    """Whether a run goes into a process of its own.

    `company`: others are being worked on by this worker. `took_s`: how long the last run that computed has taken; those that
    come one after the other are mostly of one study, and alike.
    """
    if not processes:
        return False
    return run.requeues >= SUSPECT or (computing and took_s >= WORTH_S and (company or processes > 1))
