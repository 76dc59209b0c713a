"""How often an agent is expected to hold: the prior of its venue, and the earlier runs of its skill with its model.

Speculation starts from it. It changes which requests are sent ahead, and so the cost and the speed of a run; no prompt
and no record depends on it.
"""

from pitboss.bootstrap.workspace import Workspace
from pitboss.runs.venue import Venue
from pitboss.sim.outcome import UNFLAGGED, Ledger
from pitboss.sim.speculation_window import HoldPrior
from pitboss.store.runs import Run

PAST_RUNS = 5
"""The newest runs of a skill that are counted: a skill that was edited soon has a past of its own."""


def hold_prior(workspace: Workspace, run: Run, venue: Venue, ledger: Ledger) -> HoldPrior:
    """The prior for a run. `ledger` has its own ticks so far, if it is resumed."""
    name = str(run.params["skill"].get("name", ""))
    earlier_runs = workspace.runs.listing(PAST_RUNS, "complete", model=run.model, skill=name).runs
    metrics = [earlier.metrics or {} for earlier in earlier_runs]
    asked = ledger.asked + sum(each.get("funnel", {}).get("asked", 0) for each in metrics)
    holds = ledger.noops[UNFLAGGED] + sum(each.get("noops_by_flag", {}).get(UNFLAGGED, 0) for each in metrics)
    return venue.hold_prior().with_past(holds, asked - holds)
