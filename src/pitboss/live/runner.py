"""The live driver: at each slot of the schedule it updates the world, calls `tick()`, commits, and then reports the entry.

One loop for every venue; a venue supplies its ports and a `WorldSource`. The world is also updated between ticks, so that
settlements and fills are recorded when they happen and not at the next tick. A tick is one transaction of record and
state, as in the simulator: a killed process loses at most what was not committed, and a resumed one continues from there.
Commands of people (`control.py`) are carried out between two ticks. Every wait has a bound. Decisions are made by the ports,
not here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import localcontext
from typing import Any

from pitboss.core.curve import Curve
from pitboss.core.deployment import OpenCommand
from pitboss.core.errors import TransientError
from pitboss.core.instant import SECOND_MS, Instant, iso
from pitboss.core.money import CONTEXT
from pitboss.core.ports import Clock, Journal
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import ZERO_COST_EXTRA, Record, RecordKind, seal
from pitboss.core.state import State
from pitboss.live.board import Board, Entry
from pitboss.live.control import ENDS, Control
from pitboss.live.deadline import INTERRUPTED, with_deadline
from pitboss.live.halt_checks import HaltChecks
from pitboss.live.operator_decision import decided_by_limit, decided_by_person
from pitboss.live.pace import Pace
from pitboss.live.turns import next_turn
from pitboss.live.world_source import History, WorldSource
from pitboss.tick import Ports, TickResult, WorldEvents, tick

FEED_TIMEOUT = "feed_timeout"
TROUBLE_INTERVAL_MS = 10 * SECOND_MS
"""Minimum time between two remarks about the feed."""
POLL_MS = 2 * SECOND_MS
"""The longest wait: a stop that is requested through the database is seen after it."""
CLOSE_AGAIN_MS = 30 * SECOND_MS
"""How long after an attempt to close at a loss limit the next one is made, between ticks."""
ASKED_WHEN_HALTED = frozenset({"daily_loss", "drawdown", "invariant"})
"""Halts of the account itself: its rules refuse what opens, so the agent is still asked and may close and reduce."""

Pause = Callable[[int], Awaitable[object]]
"""Waits for a number of milliseconds, or until a stop is requested."""


def no_listener(entry: Entry) -> None:
    """Ignore an entry."""
    del entry


def nothing_to_close(world: Any, at: Instant) -> str:
    """No limit demands that anything is closed."""
    del world, at
    return ""


def never() -> bool:
    """No stop is requested."""
    return False


@dataclass(slots=True, eq=False)
class Runner:
    """A live run. `on_entry` receives every entry after its commit; `stop` is polled between steps."""

    ports: Ports
    source: WorldSource
    journal: Journal
    clock: Clock
    pace: Pace
    state: State
    board: Board
    pause: Pause
    stop: Callable[[], bool] = never
    on_entry: Callable[[Entry], None] = no_listener
    most_ticks: int | None = None
    control: Control = field(default_factory=Control)
    history: History | None = None
    checks: HaltChecks = field(default_factory=HaltChecks)
    must_close: Callable[[Any, Instant], str] = nothing_to_close
    """Which loss limit demands that a world's positions are closed; empty if none does."""
    ticked: int = 0
    """Ticks of this process."""
    _curve: Curve = field(default=(), init=False)
    _last: Instant = field(default=0, init=False)
    _trouble: str = field(default="", init=False)
    _trouble_at: Instant = field(default=-TROUBLE_INTERVAL_MS, init=False)
    _clock_is_back: bool = field(default=False, init=False)
    _closed_at: Instant = field(default=-CLOSE_AGAIN_MS, init=False)

    async def run(self) -> State:
        """Tick until a stop is requested or `most_ticks` is reached; in the second case wait for pending outcomes.

        Everything is committed when this returns.
        """
        with localcontext(CONTEXT):
            last = self.state.tick_at
            self._last = self.pace.schedule.before(self.clock.now()) if last is None else last
            await self._record_missed()
            while not self.over():
                await self._step()
            until = self.clock.now() + self.pace.schedule.period_ms
            update_ms = self.pace.update_ms
            while update_ms is not None and self.source.pending(self.state.world) and self.clock.now() < until:
                if self.stop() or self.control.stopped:
                    break
                await self.pause(update_ms)
                await self._between()
            return self.state

    def over(self) -> bool:
        """Whether a stop is requested or `most_ticks` is reached."""
        if self.stop() or self.control.stopped:
            return True
        return self.most_ticks is not None and self.ticked >= self.most_ticks

    @property
    def next_at(self) -> Instant:
        """The slot of the next tick."""
        period = self.pace.schedule.period_ms
        return self._last // period * period + period

    async def close(self) -> State:
        """Write the closing record; the run can no longer be resumed."""
        covered = {"after": self.ports.summary(self.state.world), "flags": []}
        at = max(self.clock.now(), self._last)
        curve = self.source.equity(self.state.world, at, self.pace.schedule.period_ms)
        with localcontext(CONTEXT):
            await self._record("close", at, at, self.state.world, (), covered, curve)
        return self.state

    async def _step(self) -> None:
        await self._obey()
        if self.over():
            return
        due = self.pace.schedule.look(self._settled_now(), self._last)
        if due.back_ms > self.pace.schedule.period_ms and not self._clock_is_back:
            self._remark(f"the clock went back: nothing is done before {iso(self._last)}")
        self._clock_is_back = due.back_ms > self.pace.schedule.period_ms
        if due.missed_slots and due.passed_at is not None:
            first = due.passed_at - (due.missed_slots - 1) * self.pace.schedule.period_ms
            covered = {"until_at": due.passed_at, "ticks": 0, "flags": {}, "missed": due.missed_slots}
            await self._record("span", first, due.passed_at, self.state.world, (), covered)
            self._last = due.passed_at
        if due.at is not None:
            await self._tick(due.at)
        await self._between()
        if not self.over():
            due = self.pace.schedule.look(self._settled_now(), self._last)
            if due.at is None and not due.missed_slots:
                await self.control.wait(self.pause, min(due.wait_ms, self.pace.update_ms or POLL_MS))

    def _settled_now(self) -> Instant:
        """The time by which the schedule is read: behind the clock by the time that data takes to arrive."""
        return self.clock.now() - self.pace.settle_ms

    async def _tick(self, at: Instant) -> None:
        receipts = await self._update_world(at)
        await next_turn()  # many deployments tick at once: no tick waits until all others have built their prompts
        flag = FEED_TIMEOUT if receipts is None else self.source.hold_flag(self.state.world, at)
        self._check_halts(at, bool(flag))
        if not flag and self.must_close(self.state.world, at):
            ports = self._closing_ports(at)
        else:
            flag = self._control_flag() or flag
            ports = with_deadline(self.ports, self.pace.deadline_ms / SECOND_MS, self.control, flag)
        result = await self._run_tick(at, receipts or (), ports)
        self.ticked += 1
        self.checks.add_verdicts(result.covered["verdicts"])
        self._check_halts(at)
        self._check_model(result)

    async def _run_tick(self, at: Instant, receipts: Sequence[Receipt], ports: Ports) -> TickResult:
        """One tick with its commit; the entry is reported after it."""
        curve = self._curve or self.source.equity(self.state.world, at, self.pace.schedule.period_ms)
        if self.history is not None:
            self.history.add_receipts(receipts)
        result = await tick(self.state, at, WorldEvents(receipts, curve), ports)
        await self.journal.commit([result.record], result.state, self._progress(1))
        self.state, self._last, self._curve = result.state, at, ()
        if self.history is not None:
            self.history.add_tick(result.record, result.receipts[len(receipts) :], result.decision.flags)
        self.on_entry(self.board.add(result.record))
        return result

    # Commands and halts -----------------------------------------------------------------------------------------------

    def _control_flag(self) -> str:
        """Why the agent is not asked, as the flag of a no-op; empty if it is."""
        control = self.control
        if control.abandoned:
            return INTERRUPTED
        if control.state == "halted" and control.code in ASKED_WHEN_HALTED:
            return ""
        return "" if control.state == "running" else control.state

    async def _obey(self) -> None:
        """Carry out the commands that have arrived: record each, then acknowledge it."""
        while (command := self.control.next_command()) is not None and not self.control.stopped:
            note = ""
            if command.number > self.board.last_command:  # else it was recorded by a process that was then killed
                note = await self._carry_out(command)
            state = self.control.acknowledge(command, note)
            self._remark(f"{command.command} by {command.user_name}: {state}" + (f" ({note})" if note else ""))

    async def _record_missed(self) -> None:
        """Record the commands and the changes of caps that took effect while no process had the account."""
        at = max(self.clock.now(), self._last)
        commands = [_command_receipt(command, at) for command in self.control.unrecorded(self.board.last_command)]
        caps = [Receipt("caps", at, facts=facts) for facts in self.control.unrecorded_caps(self.board.last_caps)]
        receipts = (*commands, *caps)
        if receipts:
            covered = {"until_at": at, "ticks": 0, "flags": {}, "after": self.ports.summary(self.state.world)}
            await self._record("span", at, self.state.tick_at, self.state.world, receipts, covered)

    async def _carry_out(self, command: OpenCommand) -> str:
        if command.command in ENDS:
            await self._between()  # once more, because the account withdraws what would open
        at = max(self.clock.now(), self._last)
        receipt = _command_receipt(command, at)
        if command.command == "flatten":
            return await self._flatten(at, receipt)
        world, lifted = self.state.world, ()
        if command.command == "resume" and self.control.state == "halted":
            world, lifted = self.ports.lift_halts(world, at)
            self.checks.reset()
        after = self.ports.summary(world)
        covered = {"until_at": at, "ticks": 0, "flags": {}, "after": after}
        await self._record("span", at, self.state.tick_at, world, (receipt, *lifted), covered)
        return ""

    async def _flatten(self, at: Instant, receipt: Receipt) -> str:
        """A tick whose decision is the person's: it is judged and executed like one of the agent."""
        happened = await self._update_world(min(at, self.next_at)) or ()
        intents = self.ports.closing_intents(self.state.world)
        ports = decided_by_person(self.ports, intents, "flatten")
        result = await self._run_tick(at, (*happened, receipt), ports)
        refused = sum(verdict["outcome"] == "refused" for verdict in result.covered["verdicts"])
        if not intents:
            return "nothing was open"
        return f"{len(intents) - refused} of {len(intents)} orders were accepted"

    def _closing_ports(self, at: Instant) -> Ports:
        """The ports of a tick that closes everything, because a loss limit demands it; the agent is not asked."""
        self._closed_at = at
        self._remark(f"closes what is open: {self.must_close(self.state.world, at)}")
        return decided_by_limit(self.ports, self.ports.closing_intents(self.state.world))

    def _check_halts(self, at: Instant, stale: bool | None = None) -> None:
        """Halt the deployment for what the account or the checks say. `stale`: whether its data is unfit, if that is known."""
        code, cause = self.ports.standing_halt(self.state.world, at)
        if not code:
            code, cause = self.checks.halt_cause(at, stale)
        if code and self.control.state not in ("halted", "stopped"):
            self.control.halt(code, cause)
            self._remark(f"halted: {cause}")

    def _check_model(self, result: TickResult) -> None:
        code, cause = self.checks.model_outage(result.state.model_errors)
        if code and self.control.state == "running":
            self.control.pause(code, cause)
            self._remark(f"paused: {cause}")

    async def _between(self) -> None:
        """Update the world between ticks and record events at once, so that none is lost with the process."""
        before = min(self.clock.now(), self.next_at)  # a tick must not see events after its slot
        if self.pace.update_ms is None or self._last > before:  # the clock was set back: the world is ahead of it
            return
        receipts = await self._update_world(before)
        if receipts:
            after = self.ports.summary(self.state.world)
            covered = {"until_at": before, "ticks": 0, "flags": {}, "after": after}
            await self._record("span", before, self.state.tick_at, self.state.world, receipts, covered)
            self._check_halts(before)
        may_close = receipts is not None and self._last < before < self.next_at
        if may_close and before - self._closed_at >= CLOSE_AGAIN_MS and self.must_close(self.state.world, before):
            await self._run_tick(before, (), self._closing_ports(before))

    async def _update_world(self, before: Instant) -> tuple[Receipt, ...] | None:
        """Update the world and return the receipts; None after a timeout or failure, which leave the world unchanged."""
        try:
            async with asyncio.timeout(self.pace.feed_ms / SECOND_MS):
                update = await self.source.update(self.state.world, before)
        except TimeoutError:
            self._report_trouble("the feed does not answer in time")
            return None
        except TransientError as error:
            self._report_trouble(str(error))
            return None
        self._report_trouble(self.source.trouble())
        if update.world is not self.state.world:
            self.state = replace(self.state, world=update.world)
        self._curve = (*self._curve, *update.equity)
        return update.receipts

    async def _record(
        self,
        kind: RecordKind,
        at: Instant,
        done_at: Instant | None,
        world: Any,
        receipts: tuple[Receipt, ...],
        covered: dict[str, Any],
        curve: Curve = (),
    ) -> None:
        """Seal and commit a record that is not a tick. `done_at` is the newest slot that it covers."""
        state = self.state
        body = {**covered, "receipts": receipts, "equity": curve}
        record: Record = seal(state.seq, kind, at, state.prev_digest, body, ZERO_COST_EXTRA)
        after = replace(state, world=world, seq=state.seq + 1, prev_digest=record.digest, tick_at=done_at, seen={})
        await self.journal.commit([record], after, self._progress(0))
        self.state = after
        if self.history is not None:
            self.history.add_receipts(receipts)
        self.on_entry(self.board.add(record))

    def _progress(self, more: int) -> float:
        return 0.0 if self.most_ticks is None else min(1.0, (self.ticked + more) / max(1, self.most_ticks))

    def _report_trouble(self, trouble: str) -> None:
        """Add a remark when a problem of the feed begins, changes or ends."""
        now = self.clock.now()
        if trouble == self._trouble or 0 <= now - self._trouble_at < TROUBLE_INTERVAL_MS:
            return
        self._trouble_at = now
        self._remark(f"feed: {trouble}" if trouble else "feed: prices come again")
        self._trouble = trouble

    def _remark(self, text: str) -> None:
        self.on_entry(self.board.remark(self.clock.now(), text))


def _command_receipt(command: OpenCommand, at: Instant) -> Receipt:
    """The receipt of a command."""
    facts = {"command": command.command, "number": command.number, "by": command.user_name}
    return Receipt("command", at, facts={**facts, "reason": command.reason})
