"""`runs fork`: branch a run at a tick, with the same history before it and different decisions from there on.

The history is copied, not simulated again: the records before the tick are those of the source run, byte for byte, and
the state after them is rebuilt by replaying the recorded decisions and comparing every digest. The branch is then an
ordinary run that is resumed from that state. Model costs that the source run paid count as saved.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeVar

from pitboss.agent.decider import Judge, Plan
from pitboss.bootstrap import decider_source
from pitboss.bootstrap.machine import new_id
from pitboss.bootstrap.workspace import PUSH, Workspace
from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.core.instant import Instant, iso, parse_range_end, resolved
from pitboss.core.intent import Decision, Step, ToolResult
from pitboss.core.market import Ints
from pitboss.core.snapshot import Record
from pitboss.core.state import State
from pitboss.models.replayed import Replayed
from pitboss.runs.lineage import FORKED_FROM, fork_point, fork_record
from pitboss.runs.run import prepare_stored, refuse_live, stored_form
from pitboss.runs.stored import journal_of, request_of
from pitboss.runs.venues import venue_of
from pitboss.sim.connections import Connections
from pitboss.sim.prepared_run import PreparedRun
from pitboss.sim.replay import replay
from pitboss.sim.request import BacktestRequest
from pitboss.sim.watch import Watch
from pitboss.skill.load import override
from pitboss.store.import_run import insert_run
from pitboss.store.journal import StoredJournal
from pitboss.store.runs import Run

STAND_IN = "standin/analyst"
"""Replaces any model where no model is called: it needs no key and receives the same prompts."""

R = TypeVar("R", bound=BacktestRequest)


@dataclass(frozen=True, slots=True)
class ForkChange:
    """What differs from the fork tick on. `also` holds other fields of the request by name."""

    model: str = ""
    settings: Sequence[str] = ()
    also: tuple[tuple[str, Any], ...] = ()

    def apply(self, request: R) -> R:
        """Return the request of the branch."""
        sets_model = any(setting.partition("=")[0].strip() == "model" for setting in self.settings)
        return replace(
            request,
            skill=override(request.skill, self.settings, venue_of(request.skill).skill_type()),
            model=self.model or ("" if sets_model else request.model),
            decisions=None if self.model or sets_model else request.decisions,
            **dict(self.also),
        )


async def fork(workspace: Workspace, run_id: str, at: str, change: ForkChange) -> str:
    """Create the branch, ready to be resumed, and return its id. No model is called."""
    source = workspace.runs.get(run_id)
    refuse_live(source)
    request = change.apply(request_of(source))
    request = replace(request, data_venue=source.params["data_venue"])
    prepared = venue_of(request.skill).prepare(request, workspace.lake_of(source.params), workspace.settings)
    decider_source.check(workspace, prepared.request)
    before = prepare_stored(workspace, source, without_model(request_of(source)))
    _check_same_course(before, prepared)
    journal = journal_of(workspace, source)
    tick_at = _tick(at, source, before, journal)
    records, state = await rebuild_past(workspace, source, before, journal.records(), tick_at)
    origin = {FORKED_FROM: fork_record(source, tick_at, len(records))}
    branch = _queued(workspace, source, prepared, origin, _progress(before, tick_at))
    insert_run(workspace.database, branch, map(_as_saved, records), state if records else None)
    return branch.id


@dataclass(frozen=True, slots=True)
class RebuiltPast:
    """The records before a tick, as they were recorded, and the state after them."""

    records: Sequence[Record]
    state: State


async def rebuild_past(
    workspace: Workspace, run: Run, prepared: PreparedRun, records: Iterable[Record], tick_at: Instant
) -> tuple[list[Record], State]:
    """Return the records of a run before a tick and the state after them, as `replay_until` does.

    Where a fork has changed the model or the settings, the part before it is replayed as its source was made, and the rest
    from there on. `prepared` is the run itself, without a model.
    """
    records = list(records)
    try:
        return await replay_until(prepared, records, tick_at)
    except ReplayMismatch:
        origin = fork_point(run)
        if origin is None:
            raise
    source_id, forked_at = origin
    try:
        source = workspace.runs.get(source_id)
    except UserError:
        raise UserError(
            f"the past of run {run.id} cannot be replayed: it was forked from {source_id}, which is not here",
            "fork or look at a run whose source is still there",
        ) from None
    before = prepare_stored(workspace, source, without_model(request_of(source)))
    shared, state = await rebuild_past(workspace, source, before, records, min(forked_at, tick_at))
    if forked_at >= tick_at:
        return shared, state
    return await replay_until(prepared, records, tick_at, past=RebuiltPast(shared, state) if shared else None)


async def replay_until(
    prepared: PreparedRun,
    records: Iterable[Record],
    tick_at: Instant,
    connections: Connections | None = None,
    past: RebuiltPast | None = None,
) -> tuple[list[Record], State]:
    """Return the records before a tick and the state after them; every digest is compared on the way.

    A span of holds that extends beyond the tick is cut in two; all other records are unchanged. Without connections
    the recorded decisions are replayed; with `past` only those after it.
    """
    before = [record for record in records if record.tick_at < tick_at and record.kind != "close"]
    if connections is not None:
        return await _replay(prepared, before, tick_at, connections, past)
    own = before if past is None else before[len(past.records) :]
    replies = Connections(model=Replayed(own))
    try:
        return await _replay(prepared, before, tick_at, replace(replies, decider=RecordedDecider(own)), past)
    except ReplayMismatch as mismatch:
        # Rules may depend on what a model was shown, so the replies go through prompts and tools again.
        try:
            return await _replay(prepared, before, tick_at, replies, past)
        except ReplayMismatch:
            raise mismatch from None


async def _replay(
    prepared: PreparedRun,
    before: Sequence[Record],
    tick_at: Instant,
    connections: Connections,
    past: RebuiltPast | None,
) -> tuple[list[Record], State]:
    course = prepared.course(connections)
    state = venue_of(prepared.request.skill).first_state(course) if past is None else past.state
    course = course.until(tick_at)
    if not len(course.tick_at):
        return [], state
    journal = _ComparingJournal(before, tick_at, () if past is None else past.records)
    await replay(course, journal, state, Watch())
    if journal.state is None or len(journal.matched) != len(before):
        raise ReplayMismatch(f"the replay of the past did not reproduce record {len(journal.matched)}")
    return journal.matched, journal.state


class _ComparingJournal:
    """A journal that compares each new record with the recorded one and keeps the recorded one."""

    def __init__(self, recorded: Sequence[Record], tick_at: Instant, matched: Iterable[Record] = ()) -> None:
        self._recorded = recorded
        self._tick_at = tick_at
        self.matched = list(matched)
        self.state: State | None = None

    async def commit(self, batch: Sequence[Record], state: State, progress: float) -> None:
        del progress
        if batch[-1].kind == "close":  # the replay ends at the fork tick and closes there; the source run did not
            return
        for record in batch:
            self.matched.append(self._match(record))
        self.state = state

    def records(self) -> Iterable[Record]:
        return self.matched

    def _match(self, record: Record) -> Record:
        expected = self._recorded[record.seq] if record.seq < len(self._recorded) else None
        if expected is not None and expected.digest == record.digest:
            return expected
        if expected is not None and expected.kind == record.kind == "span" and self._ends_after_tick(expected):
            return record
        raise ReplayMismatch(f"record {record.seq} at {iso(record.tick_at)} came out differently when it was replayed")

    def _ends_after_tick(self, span: Record) -> bool:
        return codec.loads(span.covered)["until_at"] >= self._tick_at


class RecordedDecider:
    """A decider that repeats the recorded decisions."""

    name = "recorded"

    def __init__(self, records: Iterable[Record]) -> None:
        self._records = {record.tick_at: record for record in records if record.kind == "tick"}

    async def decide(self, observation: Any, judge: Judge) -> Decision:
        """Return the recorded decision of this tick."""
        del judge
        record = self._records.get(observation.at)
        if record is None:
            raise ReplayMismatch(f"no decision is recorded for tick {iso(observation.at)}")
        return recorded_decision(record)

    def plan(self, market: Market, tick_at: Ints, symbols: tuple[str, ...], interval: str) -> Plan:
        """Plan to act at every tick that has a record of its own."""
        del market, symbols, interval
        return _RecordedPlan([index for index, at in enumerate(tick_at.tolist()) if at in self._records], len(tick_at))


def recorded_decision(record: Record) -> Decision:
    """The decision in the record of a tick."""
    body = codec.loads_exact(record.covered)
    return Decision(
        intents=tuple(body["proposals"]),
        text=body["text"],
        steps=tuple(map(_step, body["steps"])),
        flags=tuple(body["flags"]),
        finish_reason=body["finish_reason"],
        prompt=_stored_prompt(record),
    )


def _stored_prompt(record: Record) -> tuple[str, str] | None:
    """The stored prompt of a tick at which a server did not answer, which cannot be rebuilt.

    Its digest is compared too.
    """
    if b"## Notes" not in record.extra:
        return None
    prompt = codec.loads(record.extra).get("prompt")
    return None if prompt is None else (prompt[0], prompt[1])


@dataclass(frozen=True, slots=True)
class _RecordedPlan:
    ticks: Sequence[int]
    count: int

    def next_tick(self, index: int, world: Any) -> int:
        """The next tick with a record of its own."""
        del world
        position = bisect_left(self.ticks, index)
        return self.ticks[position] if position < len(self.ticks) else self.count


def _step(plain: dict[str, Any]) -> Step:
    calls = [
        ToolResult(call["name"], codec.number_fragments(call["arguments"]), call["result"], call["failed"])
        for call in plain["calls"]
    ]
    return Step(plain["text"], tuple(calls), finish_reason=plain["finish_reason"])


def without_model(request: R) -> R:
    """The request with the stand-in in place of a model: same ticks, data and prompts."""
    return request if request.is_program else replace(request, model=STAND_IN)


def _check_same_course(before: PreparedRun, after: PreparedRun) -> None:
    """Require that the branch has the same ticks and prices as the source; everything else may change."""
    changed = "the venue" if type(before) is not type(after) else ""
    if not changed and before.tick_at.tolist() != after.tick_at.tolist():
        changed = "schedule.every"
    changed = changed or venue_of(before.request.skill).course_difference(before, after)
    if changed:
        raise UserError(
            f"a fork cannot change {changed}: the shared past depends on it",
            "change the model, the strategy, the caps, the tools or the rest of the context",
        )


def _tick(at: str, source: Run, prepared: PreparedRun, journal: StoredJournal) -> Instant:
    """Parse `--at`, a record number, a time or one before the end of the run, into the first tick that is decided again."""
    ticks = prepared.tick_at
    first, last = int(ticks[0]), int(ticks[-1])
    if at.strip().isdecimal():
        record = next(iter(journal.records(int(at[:18]))), None)
        if record is None or record.kind == "close":
            raise UserError(f"--at {at}: run {source.id} has no tick with this number", "a number from 0, or a time")
        return record.tick_at
    try:
        requested = resolved(parse_range_end(at), lambda: source.params["to_at"])
    except (OverflowError, OSError):
        raise UserError(f"--at: {at!r} is outside of the calendar", f"from {iso(first)} to {iso(last)}") from None
    reached = _reached(journal)
    if not first <= requested <= last or (reached is not None and requested > reached + 1):
        end = last if reached is None else min(last, reached)
        raise UserError(f"--at {at}: run {source.id} has no tick there", f"from {iso(first)} to {iso(end)}")
    return int(ticks[ticks >= requested][0])


def _reached(journal: StoredJournal) -> Instant | None:
    """The last instant that a run has reached."""
    stored = journal.latest_state()
    return None if stored is None else stored[1]["tick_at"]


def _progress(prepared: PreparedRun, tick_at: Instant) -> float:
    ticks = prepared.tick_at
    return int((ticks < tick_at).sum()) / len(ticks)


def _queued(workspace: Workspace, source: Run, prepared: PreparedRun, also: dict[str, Any], progress: float) -> Run:
    """Create the branch's row: queued and already claimed once, so that resuming it loads the existing records."""
    request = prepared.request
    saved, params = stored_form(workspace, prepared)
    params |= also
    # the branch uses the same lake as its source
    params |= {name: source.params[name] for name in (PUSH,) if name in source.params}
    return replace(
        source,
        id=new_id(),
        skill_id=saved.id,
        skill_version=saved.version,
        status="queued",
        model=decider_source.model_name(request, params),
        params=params,
        data_digest=prepared.data_digest,
        progress=progress,
        error_text=None,
        metrics=None,
        baselines=None,
        digest=None,
        cost_usd=Decimal(0),
        saved_usd=Decimal(0),
        wasted_usd=Decimal(0),
        wall_s=0.0,
        ticks=0,
        report=None,
        created_at=workspace.now(),
        started_at=None,
        finished_at=None,
        heartbeat_at=None,
        lease_epoch=1,
        cancel_requested=False,
        owner=workspace.owner,
        build=None,
    )


def _as_saved(record: Record) -> Record:
    """The record with its model cost counted as saved, because another run paid it.

    Costs are not covered by the digest.
    """
    extra = codec.loads(record.extra)
    if extra.get("cost_usd") == "0" and not extra.get("steps"):
        return record
    saved = Decimal(extra.get("cost_usd") or 0) + Decimal(extra.get("saved_usd") or 0)
    extra.update(cost_usd=Decimal(0), saved_usd=saved)
    for step in extra.get("steps") or ():
        step["cost_usd"] = Decimal(0)
    return replace(record, extra=codec.dumps(extra))
