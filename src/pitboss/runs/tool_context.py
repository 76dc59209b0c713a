"""The context of a tool call outside a run, on every venue: at a tick of a stored run, or of a skill with a fresh account.

The tool gets what an agent would get at that tick: the view cut there, the account before the decision, the past before
it. The account of a stored run is rebuilt by replaying its recorded decisions and comparing every digest. No model is
called and nothing is written.
"""

from dataclasses import replace
from typing import Any

from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, iso
from pitboss.core.past import NO_PAST, Past
from pitboss.core.state import State
from pitboss.data.lake import Lake
from pitboss.runs.fork import rebuild_past, without_model
from pitboss.runs.stored import journal_of, request_of
from pitboss.runs.stored_past import StoredPast
from pitboss.runs.venue import Venue
from pitboss.runs.venues import venue_of
from pitboss.sim.course import Course
from pitboss.sim.prepared_run import PreparedRun
from pitboss.store.recordings import StoredRecordings
from pitboss.store.runs import Run
from pitboss.tick.ports import Ports
from pitboss.tools.define import Mode, ToolContext


async def of_run(workspace: Workspace, run_id: str, at: Instant | None = None, mode: Mode = "read") -> ToolContext:
    """Return the context at a tick of a stored run, before its decision; `at` defaults to the latest tick reached."""
    run = workspace.runs.get(run_id)
    if run.params.get("mode"):
        raise UserError(
            f"run {run.id} is a live run: the prices that it saw are not stored", "call the tool with --skill instead"
        )
    venue, lake = venue_of(run.params["skill"]), workspace.lake_of(run.params)
    prepared = venue.prepare(without_model(request_of(run)), lake, workspace.settings)
    if run.data_digest and run.data_digest != prepared.data_digest:
        raise UserError(
            "the data of this run has changed since it began, so what it saw cannot be rebuilt",
            "restore the data, or start a new backtest",
        )
    course = prepared.course()
    at, state = await _account(workspace, venue, run, prepared, course, at)
    ports = _observing_ports(venue, prepared, course, lake, workspace.settings)
    past = StoredPast(workspace.database, run.id, venue.span(run.params)[2], venue.decision().tool)
    return replace(_context(ports, state, at, mode, past), recordings=StoredRecordings(workspace.database))


def of_skill(
    venue: Venue, request: Any, lake: Lake, settings: Settings, at: Instant | None = None, mode: Mode = "read"
) -> ToolContext:
    """Return the context at the first tick of a run of this skill that starts at `at`: a fresh account, no past."""
    course, state, at = venue.course_at(request, lake, settings, at)
    return _context(course.ports, state, at, mode, NO_PAST)


async def _account(
    workspace: Workspace, venue: Venue, run: Run, prepared: PreparedRun, course: Course, at: Instant | None
) -> tuple[Instant, State]:
    journal = journal_of(workspace, run)
    stored = journal.latest_state()
    reached: Instant | None = None if stored is None else stored[1]["tick_at"]
    if stored is None or reached is None:
        raise UserError(f"run {run.id} has not reached its first tick", "wait for it, or resume it")
    tick_at = reached if at is None else at
    if tick_at == reached == course.to_at:  # the run has ended there, and its final state is stored
        return tick_at, venue.read_state(stored[1])
    ticks = course.tick_at
    first = int(ticks[0])
    if not first <= tick_at <= reached:
        raise UserError(
            f"--at {iso(tick_at)} is outside run {run.id}", f"choose a tick from {iso(first)} to {iso(reached)}"
        )
    if tick_at not in ticks:
        before = int(ticks[ticks < tick_at][-1])
        raise UserError(f"--at {iso(tick_at)} is not a tick of run {run.id}", f"the previous tick is {iso(before)}")
    _, state = await rebuild_past(workspace, run, prepared, journal.records(), tick_at)
    offsets = dict(zip(ticks.tolist(), course.tick_offsets(), strict=True))
    start = 0 if state.tick_at is None else offsets[state.tick_at]
    return tick_at, state.after(world=course.advance(state.world, start, offsets[tick_at]).world)


def _observing_ports(venue: Venue, prepared: PreparedRun, course: Course, lake: Lake, settings: Settings) -> Ports:
    """The ports with all that a prompt shows, even if the run itself built no prompts and did not load it."""
    if prepared.request.builds_prompts:
        return course.ports
    try:
        return venue.prepare(replace(prepared.request, prompts=True), lake, settings).course().ports
    except UserError:
        return course.ports  # only what the run itself loaded is available


def _context(ports: Ports, state: State, at: Instant, mode: Mode, past: Past) -> ToolContext:
    observation = ports.observe(state, at)
    return ToolContext(observation, mode, lambda intent: ports.guard(observation, state, intent, at).verdict, past)
