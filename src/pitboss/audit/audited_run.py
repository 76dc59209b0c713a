"""A run under audit: its complete replay, and reruns of the ticks before a cut on other data.

Everything goes through the path of a backtest: the venue prepares the request on a lake, builds the course with its own
ports and decider, and `sim.replay` drives it. Nothing is stored.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pitboss.audit.recordings import AuditRecordings
from pitboss.audit.tool_probe import ToolProbe
from pitboss.bootstrap.settings import Settings
from pitboss.core import codec
from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.core.instant import Instant
from pitboss.core.past import DECISIONS
from pitboss.core.snapshot import Record
from pitboss.core.state import State
from pitboss.data.lake import Lake
from pitboss.runs.venue import Venue
from pitboss.sim.connections import Connections
from pitboss.sim.course import Course
from pitboss.sim.past import RunPast, receipts_of
from pitboss.sim.prepared_run import PreparedRun
from pitboss.sim.replay import replay
from pitboss.sim.watch import Watch

LATER = 30
"""Records from after its present that are added to a history, if it need not drop old ones for them."""

Connect = Callable[[AuditRecordings, int, bool], Connections]
"""Makes the connections of a rerun from the number of its first record; with True every reply must fit its request."""


@dataclass(slots=True)
class Rerun:
    """The records of some ticks, and the state after each commit. It is the journal of their replay.

    When the tick at `armed_after` is recorded, the probe is armed for the next one, and the history of the run, which
    must not show them, gets later records.
    """

    earlier: Sequence[Record] = ()
    armed_after: Instant = -1
    probe: ToolProbe | None = None
    past: RunPast | None = None
    later: Sequence[Record] = ()
    new: list[Record] = field(default_factory=list[Record])
    states: list[State] = field(default_factory=list[State])

    async def commit(self, batch: Sequence[Record], state: State, progress: float) -> None:
        """Keep the records; that of the end of the range is none of a tick."""
        del progress
        if batch[-1].kind == "close":
            return
        self.new.extend(batch)
        self.states.append(state)
        if state.tick_at != self.armed_after:
            return
        if self.probe is not None:
            self.probe.is_armed = True
        if self.past is not None:
            for record in self.later:
                receipts = [receipt for receipt in receipts_of(record) if receipt.at >= self.later[0].tick_at]
                self.past.add_tick(record, receipts, codec.loads(record.covered)["flags"])

    def records(self) -> Iterable[Record]:
        """All records so far."""
        return (*self.earlier, *self.new)

    def digests(self) -> dict[str, int]:
        """The digests of all records, with their numbers."""
        return {record.digest: record.seq for record in self.records()}


@dataclass(slots=True, eq=False)
class AuditedRun:
    """One run, prepared on the complete data. `stored` are the records of a stored run, which it must reproduce."""

    name: str
    venue: Venue
    prepared: PreparedRun
    settings: Settings
    connect: Connect
    recordings: AuditRecordings
    stored: Sequence[Record] = ()
    start: State | None = None
    """The state in which a fork begins; None for a run that begins at its first tick."""
    probe: ToolProbe | None = None
    reference: Rerun = field(default_factory=Rerun)
    _course: Course | None = None

    @property
    def ticks(self) -> list[Instant]:
        """The ticks that were replayed."""
        last_at = self.reference.states[-1].tick_at or 0
        return [at for at in self.prepared.tick_at.tolist() if at <= last_at]

    async def replay_all(self, to_at: Instant, watch: Watch) -> None:
        """Replay the range once, to have the state before any tick."""
        course = self.prepared.course(self.connect(self.recordings, 0, False))
        self._course = None if self.stored else course
        state = self.start or self.venue.first_state(course)
        self.reference.new.extend(self.stored[: state.seq])
        await replay(course.until(to_at), self.reference, state, watch)

    def state_before(self, at: Instant, ticks: int) -> State | None:
        """The last state from at least `ticks` ticks before a tick; `start` if that is the beginning."""
        tick_at = self.prepared.tick_at
        index = int(tick_at.searchsorted(at)) - ticks
        if index <= 0:
            return self.start
        states = self.reference.states
        position = bisect_right(states, int(tick_at[index - 1]), key=lambda state: state.tick_at or 0)
        return states[position - 1] if position else self.start

    def eventful_ticks(self) -> list[list[Instant]]:
        """The ticks with a decision to act, those with receipts of more than funding, and those with a reflection."""
        acts: list[Instant] = []
        changes: list[Instant] = []
        reflections: list[Instant] = []
        for record in self.reference.new:
            if record.kind != "tick":
                continue
            body = codec.loads(record.covered)
            if any(verdict["outcome"] != "noop" for verdict in body["verdicts"]):
                acts.append(record.tick_at)
            if any(receipt["kind"] != "funded" for receipt in body["receipts"]):
                changes.append(record.tick_at)
            if "reflection" in body:
                reflections.append(record.tick_at)
        return [acts, changes, reflections]

    async def rerun_whole(self, start: State | None, at: Instant) -> Rerun:
        """Run the ticks after a state up to `at` again on the complete data."""
        course, later = self._course, self._later_records(at)
        if course is None:
            return await self._rerun_connected(self.prepared, self.recordings, start, at, later)
        return await self._rerun(course, start, at, later)

    async def rerun_on(
        self, prepared: PreparedRun, recordings: AuditRecordings, start: State | None, at: Instant
    ) -> Rerun:
        """Run the ticks after a state up to `at` on other data."""
        return await self._rerun_connected(prepared, recordings, start, at)

    def prepare_on(self, lake: Lake, at: Instant, to_at: Instant, folder: Path) -> PreparedRun:
        """Prepare the run on a copy of the lake, up to `to_at`, with a tick at `at`."""
        request = self.prepared.request
        # a decisions file names ticks after the cut; the decider of the complete run holds the same decisions
        decisions = None if request.decisions is None else ""
        request = replace(request, to_at=to_at, data_venue=self.prepared.data_venue, decisions=decisions)
        prepared = self.venue.prepare(self.venue.cut_request(request, at, folder), lake, self.settings)
        if difference := self.venue.course_difference(self.prepared, prepared):
            raise UserError(f"{difference} differs on the data up to then")
        return prepared.with_tick(at)

    async def _rerun_connected(
        self,
        prepared: PreparedRun,
        recordings: AuditRecordings,
        start: State | None,
        at: Instant,
        later: Sequence[Record] = (),
    ) -> Rerun:
        seq = 0 if start is None else start.seq
        with suppress(ReplayMismatch):  # the prompt differs; the recorded decision then shows where
            return await self._rerun(prepared.course(self._connections(recordings, seq, True)), start, at, later)
        return await self._rerun(prepared.course(self._connections(recordings, seq, False)), start, at, later)

    def _connections(self, recordings: AuditRecordings, seq: int, exact: bool) -> Connections:
        connections = self.connect(recordings, seq, exact)
        if self.prepared.request.decisions is None or connections.decider is not None:
            return connections
        return replace(connections, decider=self.prepared.course().ports.decider)

    async def _rerun(self, course: Course, start: State | None, at: Instant, later: Sequence[Record] = ()) -> Rerun:
        state = self.venue.first_state(course) if start is None else start
        before = int(self.prepared.tick_at.searchsorted(at)) - 1
        rerun = Rerun(
            self.reference.new[: state.seq], int(self.prepared.tick_at[before]), self.probe, course.past, later
        )
        try:
            await replay(course.until(at + 1), rerun, state, Watch())
        finally:
            if self.probe is not None:
                self.probe.is_armed = False
        return rerun

    def _later_records(self, at: Instant) -> Sequence[Record]:
        """Some records from a tick on, which a history must not show; none if it would drop old ones for them."""
        index = bisect_left(self.reference.new, at, key=lambda record: record.tick_at)
        records = self.reference.new[: index + LATER]
        return records[index:] if len(records) <= DECISIONS else ()
