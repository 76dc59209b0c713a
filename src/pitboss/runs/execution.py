"""One execution of a run under its lease: connect the model, replay from the last committed record, store the result.

Which run is executed, and what happens when it is stopped, is decided by `runs/run.py`.
"""

import dataclasses
from decimal import Decimal
from math import ceil
from typing import TYPE_CHECKING, Any

from pitboss.bootstrap.connections import connected
from pitboss.bootstrap.machine import stopwatch
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import BudgetExceeded, InvariantError, ReplayMismatch, TransientError, UserError
from pitboss.core.money import ZERO
from pitboss.core.trace import Tracer
from pitboss.runs.hold_prior import hold_prior
from pitboss.runs.speculation_progress import stored_counts
from pitboss.runs.spend_progress import SpendProgress
from pitboss.runs.venue import Venue
from pitboss.runs.venues import venue_of
from pitboss.sim.outcome import Ledger
from pitboss.sim.prepared_run import PreparedRun
from pitboss.sim.replay import replay
from pitboss.sim.speculator import Speculation
from pitboss.sim.watch import Watch
from pitboss.store.journal import StoredJournal
from pitboss.store.retry import Unreachable, retry_while_unreachable

if TYPE_CHECKING:
    from pitboss.bootstrap.model_stack import ModelConnection

BUDGET = "budget: "
"""How the stored error of a run begins that a limit on its cost ended."""
UNKNOWN = Decimal("NaN")
"""The cost of a run that called a model without a known price."""


class RunExecution:
    """Execute a run while holding its lease, from its last committed record.

    Stores the result, or partial figures if the run does not finish.
    """

    def __init__(self, workspace: Workspace, journal: StoredJournal, spent_s: float) -> None:
        self._workspace = workspace
        self._journal = journal
        self._spent_s = spent_s
        self._started = stopwatch()
        self._connection: ModelConnection | None = None

    def wall_s(self) -> float:
        """Wall-clock seconds spent on the run, over all executions."""
        return self._spent_s + stopwatch() - self._started

    def figures(self, venue: Venue | None) -> dict[str, Any]:
        """Figures of a run that did not finish. Only stored records count, because the commit may be what failed."""
        try:
            ledger = None if venue is None else venue.read_ledger(self._journal.records())
        except Unreachable:
            raise
        except (ReplayMismatch, UserError):
            ledger = None
        if ledger is None:
            return {"wall_s": self.wall_s()}  # all other figures stay as they are
        return {"wall_s": self.wall_s(), "ticks": ledger.ticks, **_money(ledger, self._connection)}

    async def run(self, prepared: PreparedRun, watch: Watch, tracer: Tracer) -> None:
        """Run to the end and store the result."""
        workspace, journal, venue = self._workspace, self._journal, venue_of(prepared.request.skill)
        run_id, epoch = journal.run_id, journal.epoch
        stored = (
            journal.latest_state()
        )  # also on the first claim: it is worked on again after an outage of the database
        ledger = venue.read_ledger(() if stored is None else journal.records())
        async with connected(workspace, prepared, venue.tools(), run_id, tracer) as (connections, model):
            self._connection = model
            if model is not None and model.budget is not None:
                watch = dataclasses.replace(watch, progress=SpendProgress(watch, model.budget).progress)
            if connections.speculation is not None:
                prior = hold_prior(workspace, workspace.runs.get(run_id), venue, ledger)
                speculation = dataclasses.replace(connections.speculation, prior=prior)
                connections = dataclasses.replace(connections, speculation=speculation)
            course = prepared.course(connections)
            state = venue.first_state(course) if stored is None else venue.read_state(stored[1])
            for note in (*venue.notes(prepared), *connections.server_tools.notes()):
                watch.message(f"note: {note}")
            _restore_waste(connections.speculation, ledger, model)
            async with stored_counts(workspace.database, run_id, epoch, connections.speculation):
                state = await replay(course, journal, state, watch, ledger)
        if model is not None and model.summary():
            watch.message(model.summary() if stored is None else f"since the resume: {model.summary()}")
        if journal.status != "computing_metrics":  # all records existed already, so no commit has set the status
            workspace.runs.set_status(run_id, "computing_metrics", epoch)
        metrics, baselines = venue.measure(prepared, course, ledger)

        def finish() -> None:
            workspace.runs.finish(
                run_id,
                epoch,
                digest=state.prev_digest,
                metrics=metrics,
                baselines=baselines,
                wall_s=self.wall_s(),
                ticks=ledger.ticks,
                **_money(ledger, model),
            )

        # retried with the same result: the first attempt may have succeeded and only its reply been lost
        await retry_while_unreachable(finish)


def _restore_waste(plan: Speculation | None, ledger: Ledger, model: "ModelConnection | None") -> None:
    """Restore the wasted cost of a resumed run, so that stopping and resuming does not raise the cap on waste."""
    used = ledger.cost_usd
    if plan is None or model is None or not used:
        return
    wasted = max(ZERO, model.paid_usd - used)
    plan.tally.useful, plan.tally.useful_usd = ledger.asked, used
    plan.tally.wasted, plan.tally.wasted_usd = ceil(wasted / used * ledger.asked), wasted


def _money(ledger: Ledger, model: "ModelConnection | None") -> dict[str, Any]:
    """The cost of a run: paid, saved by the cache, and wasted on unused speculation."""
    used, total = ledger.cost_usd, ZERO if model is None else model.paid_usd
    if used is None:
        return {"cost_usd": UNKNOWN, "saved_usd": ledger.saved_usd}
    total = max(used, total)
    return {"cost_usd": total, "saved_usd": ledger.saved_usd, "wasted_usd": total - used}


def cause(error: Exception) -> str:
    """The error text stored with a run that ended in error."""
    if isinstance(error, BudgetExceeded):
        return f"{BUDGET}{error}"
    if isinstance(error, TransientError | InvariantError | UserError):
        return str(error)
    return f"unexpected fault: {error!r}"
