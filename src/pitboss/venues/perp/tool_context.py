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
from pitboss.runs.fork import replay_until, without_model
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
    prepared = prepare(without_model(request_of(run)), workspace.lake_of(run.params), workspace.settings)
    if run.data_digest and run.data_digest != prepared.data_digest:
        raise UserError(
            "the data of this run has changed since it began, so what it saw cannot be rebuilt",
            "restore the data, or start a new backtest",
        )
    journal = journal_of(workspace, run)
    course = prepared.course()
    at, state = await _account(run, prepared, course, journal, at)
    base_ms = course.tape.interval_ms
    market = _full_market(prepared, workspace)
    context = _context(course, market, state, at, mode, StoredPast(workspace.database, run.id, base_ms, TERMINAL))
    return with_recordings(context, workspace)


def with_recordings(context: ToolContext, workspace: Workspace) -> ToolContext:
    """Return the same context with the recorded replies of other programs."""
    return replace(context, recordings=StoredRecordings(workspace.database))


async def _account(
    run: Run, prepared: PerpRun, course: PerpCourse, journal: StoredJournal, at: Instant | None
) -> tuple[Instant, State]:
    stored = journal.latest_state()
    reached: Instant | None = None if stored is None else stored[1]["tick_at"]
    if stored is None or reached is None:
        raise UserError(f"run {run.id} has not reached its first tick", "wait for it, or resume it")
    tick_at = reached if at is None else at
    if tick_at == reached == course.to_at:  # the run has ended there, and its final state is stored
        return tick_at, read_state(stored[1])
    first, ticks = int(course.tick_at[0]), course.tick_at
    if not first <= tick_at <= reached:
        raise UserError(
            f"--at {iso(tick_at)} is outside run {run.id}", f"choose a tick from {iso(first)} to {iso(reached)}"
        )
    if tick_at not in ticks:
        before = int(ticks[ticks < tick_at][-1])
        raise UserError(f"--at {iso(tick_at)} is not a tick of run {run.id}", f"the previous tick is {iso(before)}")
    _, state = await replay_until(prepared, journal.records(), tick_at)
    tape, open_at = course.tape, course.tape.open_at
    start = 0 if state.tick_at is None else int(np.searchsorted(open_at, state.tick_at, side="left"))
    advanced = advance(
        state.world, course.ports.terms, tape, start, int(np.searchsorted(open_at, tick_at, side="left"))
    )
    return tick_at, replace(state, world=advanced.world)


def _full_market(prepared: PerpRun, workspace: Workspace) -> Market:
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
    _, at, course = course_at(request, lake, settings, at)
    return _context(course, course.market, first_state(course), at, mode, NO_PAST)


def _context(course: PerpCourse, market: Market, state: State, at: Instant, mode: Mode, before: Past) -> ToolContext:
    ports = replace(course.ports, view=market.view)
    observation = ports.observe(state, at)
    return ToolContext(
        observation,
        mode,
        lambda intent: ports.guard(observation, state, intent, at).verdict,
        before,
    )
