"""Builds the context for calling a tool outside a run: at a tick of a stored run, or of a skill with a flat account.

The tool gets what an agent would get at that tick: the view cut there, the account before the decision, the past before
it. The account of a stored run is rebuilt by replaying its recorded decisions and comparing every digest. No model is
called and nothing is written.
"""

from dataclasses import replace

import numpy as np

from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.asof import Market
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, iso
from pitboss.core.past import NO_PAST, Past
from pitboss.core.state import State
from pitboss.data.lake import Lake
from pitboss.runs.fork import past, unasked
from pitboss.runs.stored import journal_of, request_of
from pitboss.runs.stored_past import StoredPast
from pitboss.store.journal import StoredJournal
from pitboss.store.recordings import StoredRecordings
from pitboss.store.runs import Run
from pitboss.tools.define import Mode, ToolContext
from pitboss.venues.perp.assembly import PerpRun, prepare
from pitboss.venues.perp.course import PerpCourse, first_state, read_state
from pitboss.venues.perp.intents import TERMINAL
from pitboss.venues.perp.preview import course_at
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.world import advance

# A stored run -----------------------------------------------------------------------------------------------------------


async def of_run(workspace: Workspace, run_id: str, at: Instant | None = None, mode: Mode = "read") -> ToolContext:
    """Return the context at a tick of a stored run, before its decision; `at` defaults to the latest tick reached."""
    run = workspace.runs.get(run_id)
    prepared = prepare(unasked(request_of(run)), workspace.lake_of(run.params), workspace.settings)
    if run.data_digest and run.data_digest != prepared.data_digest:
        raise UserError(
            "the data under this run has changed since it began; what it saw cannot be shown any more",
            "bring back the data as it was, or start a new backtest",
        )
    journal = journal_of(workspace, run)
    course = prepared.course()
    at, state = await _account(run, prepared, course, journal, at)
    base_ms = course.tape.interval_ms
    market = _whole_market(prepared, workspace)
    found = _context(course, market, state, at, mode, StoredPast(workspace.database, run.id, base_ms, TERMINAL))
    return with_recordings(found, workspace)


def with_recordings(context: ToolContext, workspace: Workspace) -> ToolContext:
    """Return the same context with the recorded replies of other programs."""
    return replace(context, recordings=StoredRecordings(workspace.database))


async def _account(
    run: Run, prepared: PerpRun, script: PerpCourse, journal: StoredJournal, at: Instant | None
) -> tuple[Instant, State]:
    stored = journal.latest_state()
    reached: Instant | None = None if stored is None else stored[1]["tick_at"]
    if stored is None or reached is None:
        raise UserError(f"run {run.id} has not come to its first tick yet", "wait for it, or resume it")
    wanted = reached if at is None else at
    if wanted == reached == script.to_at:  # the run has ended there, and its final state is stored
        return wanted, read_state(stored[1])
    first, ticks = int(script.tick_at[0]), script.tick_at
    if not first <= wanted <= reached:
        raise UserError(
            f"--at {iso(wanted)}: run {run.id} was not there", f"from {iso(first)} to {iso(reached)}, at its ticks"
        )
    if wanted not in ticks:
        before = int(ticks[ticks < wanted][-1])
        raise UserError(f"--at {iso(wanted)} is not a tick of run {run.id}", f"the tick before is {iso(before)}")
    _, state = await past(prepared, journal.records(), wanted)
    tape, open_at = script.tape, script.tape.open_at
    start = 0 if state.tick_at is None else int(np.searchsorted(open_at, state.tick_at, side="left"))
    stretch = advance(state.world, script.ports.terms, tape, start, int(np.searchsorted(open_at, wanted, side="left")))
    return wanted, replace(state, world=stretch.world)


def _whole_market(prepared: PerpRun, workspace: Workspace) -> Market:
    """Return the market with news and higher timeframes, even if the run built no prompts and did not load them."""
    if prepared.request.builds_prompts:
        return prepared.market
    try:
        return prepare(replace(prepared.request, prompts=True), workspace.lake, workspace.settings).market
    except UserError:
        return prepared.market  # only what the run itself loaded is available


# A skill ----------------------------------------------------------------------------------------------------------------


def of_skill(
    request: PerpRequest, lake: Lake, settings: Settings, at: Instant | None = None, mode: Mode = "read"
) -> ToolContext:
    """Return the context at the first tick of a run of this skill that starts at `at`: a flat account, no past."""
    _, at, script = course_at(request, lake, settings, at)
    return _context(script, script.market, first_state(script), at, mode, NO_PAST)


def _context(script: PerpCourse, market: Market, state: State, at: Instant, mode: Mode, before: Past) -> ToolContext:
    ports = replace(script.ports, view=market.view)
    observation = ports.observe(state, at)
    return ToolContext(
        observation,
        mode,
        lambda intent: ports.guard(observation, state, intent, at).verdict,
        before,
    )
