"""Speculation: while a tick waits for its reply, send the requests of the next ticks, assuming that no order is placed.

Speculation only warms the cache in front of the model. The replay takes nothing from it: it builds every prompt and
sends every request as it would alone, and finds the reply in the cache, or under way, if the speculated prompt was the
same. So a run has the same records with and without speculation, and a wrong guess only costs money. That cost is
bounded: the window follows from the share of holds seen so far and from the cap on waste.

The decider must share one call between equal requests and store its reply before returning it (`models.cached`);
without that, every reply would be paid for twice.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from pitboss.agent.loop import ToolLoop
from pitboss.core.errors import TransientError
from pitboss.core.intent import NOT_ASKED, Decision
from pitboss.core.money import ZERO
from pitboss.core.ports import Model, ModelReply, ModelRequest
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.sim.course import Course
from pitboss.sim.scout import Scout
from pitboss.sim.speculation import Speculation, Tally
from pitboss.sim.speculation_budget import UNIFORM_RATIO, SpeculationBudget
from pitboss.sim.speculation_window import Holds, best_window
from pitboss.tick import TickResult

MOST_TURNS = 4
"""Turns of the event loop until a newly made request is on its way."""

SPARE = 3
"""Ticks prepared beyond the current window, for the next window, which may be a little wider."""

PAUSE_TICKS = 16
"""Ticks without speculation after a speculative request failed, to spare a provider in trouble."""


@dataclass(slots=True, eq=False)
class _Guess:
    """A speculative request. Once dropped it sends nothing more; calls already sent are awaited by the cache."""

    started: bool = False
    was_sent: bool = False
    dropped: bool = False
    over_budget: bool = False
    holds: bool = False
    calls: int = 0
    cost_usd: Decimal = ZERO
    in_flight: bool = False
    max_usd: Decimal = ZERO
    """The most that the call under way can cost; 0 if there is none."""
    decision: Decision | None = None
    task: "asyncio.Task[None] | None" = None

    @property
    def open(self) -> bool:
        """Whether it is under way, so that its cost is not known yet."""
        return self.decision is None and self.task is not None and not self.task.done()

    @property
    def failed(self) -> bool:
        """Whether it ended without a decision."""
        if self.open or self.over_budget:
            return False
        return self.decision is None or "model_error" in self.decision.flags


@dataclass(frozen=True, slots=True)
class _GatedModel:
    """The model as seen by one speculative request: closed once the reply is not needed or becomes too expensive.

    A window is sized by the most expensive decision so far. A guess that takes longer stops there; its replies up to
    that point are in the cache, and the replay continues from them.
    """

    inner: Model
    guess: _Guess
    tally: Tally
    budget: SpeculationBudget
    is_affordable: Callable[[Decimal], bool]

    @property
    def name(self) -> str:
        return self.inner.name

    async def complete(self, request: ModelRequest) -> ModelReply:
        guess = self.guess
        guess.was_sent = True
        if guess.dropped:
            raise TransientError("this guess is no longer needed")
        if guess.cost_usd and guess.cost_usd * (guess.calls + 1) > self.tally.most_usd * guess.calls:
            guess.over_budget = True
            raise TransientError("this guess would cost more than any decision so far")
        max_usd = self.budget.max_call_usd(request)
        if not self.is_affordable(max_usd):
            guess.over_budget = True
            raise TransientError("this guess could cost more than may be wasted")
        guess.in_flight, guess.max_usd = True, max_usd
        reply = await self.inner.complete(request)
        guess.in_flight, guess.max_usd = False, ZERO
        guess.calls += 1
        guess.cost_usd += reply.cost_usd or ZERO
        self.budget.add_call(reply.cost_usd)
        return reply


class Speculator:
    """Runs beside one replay, which calls it before and after every tick.

    `close` must be awaited however the replay ends.
    """

    def __init__(self, plan: Speculation, course: Course) -> None:
        self.tally = plan.tally
        self._plan, self._course, self._ports, self._ticks = plan, course, course.ports, len(course.tick_at)
        self._scout = Scout(course)
        self._asks_always = course.asks_always
        self._budget, self._cap = plan.budget, Decimal(plan.max_waste_pct) / 100
        self._holds = Holds(plan.prior)
        self._guesses: dict[int, _Guess] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._filling: asyncio.Task[None] | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._pending_launch: asyncio.Handle | None = None
        self._current, self._window_start, self._window_size, self._is_predicted = -1, -1, 0, False
        self._pause_ticks, self._ended = 0, plan.window == 0

    async def before(self, index: int, state: State, receipts: Sequence[Receipt] = ()) -> None:
        """Called when the replay is about to execute this tick from this state, after these receipts."""
        self._current = index
        if self._pause_ticks:
            self._pause_ticks -= 1
            return
        self._start_next_window()
        await self._process_replies()
        if not self._ended and self._filling is None and not any(later > index for later in self._guesses):
            # Runs only if the tick has to wait: a reply from the cache is available in the same turn of the loop.
            self._pending_launch = asyncio.get_running_loop().call_soon(self._launch, index, state, receipts)

    def after(self, index: int, before: State, result: TickResult) -> None:
        """Called when the tick is done: settles its speculative request and drops the window after a wrong guess."""
        if self._pending_launch is not None:
            self._pending_launch.cancel()
            self._pending_launch = None
        state, decision = result.state, result.decision
        unchanged = self._course.unchanged(before, state)
        was_asked = NOT_ASKED.isdisjoint(decision.flags)
        # After a refusal or a failure the next prompt differs from the speculated one, but the one after it may not.
        last = state.last
        is_predicted = unchanged and not (
            was_asked and last is not None and (last.outcome != "noop" or last.flag != "")
        )
        if was_asked:
            self._holds.add(is_predicted)
            if "model_error" not in decision.flags:
                # another run paid for it, so it is not this run's cost
                saved = decision.saved_usd and not decision.cost_usd
                self.tally.useful += not saved
                self.tally.useful_usd += decision.cost_usd or ZERO
                self.tally.add_cost(decision.cost_usd)
                self._budget.add_tick(decision.cost_usd, decision.saved_usd)
                for step in decision.steps:
                    self._budget.add_call(step.cost_usd)
        guess = self._guesses.pop(index, None)
        if guess is not None:
            same = guess.decision is not None and guess.decision.prompt == decision.prompt
            self._settle(guess, was_asked and (self._is_predicted or same))
        if not unchanged:
            self._drop()
        self._is_predicted = is_predicted

    def begins(self, index: int) -> bool:
        """Whether a window begins with this tick: it was not speculated, or was the first after a window of holds."""
        return index == self._window_start or index not in self._guesses

    async def close(self) -> None:
        """Cancel everything and wait until it has stopped."""
        self._ended = True
        if self._pending_launch is not None:
            self._pending_launch.cancel()
        self._drop()
        for task in self._tasks:
            task.cancel()
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    # The window --------------------------------------------------------------------------------------------------

    def _launch(self, index: int, state: State, receipts: Sequence[Receipt]) -> None:
        """Fill the window behind a tick that is still waiting."""
        self._pending_launch = None
        if self._filling is not None or any(later > index for later in self._guesses):
            return  # this tick's reply has arrived in the meantime, and the next window was started after it
        size = self._window_size = self._choose_size(index)
        if size > 0:
            self._window_start = index
            self._filling = self._start(self._fill(index, state, receipts, size))

    async def _fill(self, index: int, state: State, receipts: Sequence[Receipt], size: int) -> None:
        """Send for each tick of the window the request that the replay would send there."""
        scout = self._scout
        if self._is_predicted and scout.ready and scout.ready[0].index == index:
            scout.ready.popleft()  # the replay has already passed this tick
        else:
            scout.begin(index, state, receipts)
        while size and (scout.ready or scout.step()):
            size -= self._send_next()
            await asyncio.sleep(0)  # let the replay run first
        self._preparing = self._start(self._prepare())

    async def _prepare(self) -> None:
        """Build the requests that follow if the whole window holds, while everything waits for replies."""
        scout, decider = self._scout, self._ports.decider
        await asyncio.sleep(0)
        while len(scout.ready) < self._window_size + SPARE and scout.step():
            if scout.ready and isinstance(decider, ToolLoop):
                decider.prompt(scout.ready[-1].observation)  # caches the prompt in the decider's context
            await asyncio.sleep(0)

    def _start_next_window(self) -> None:
        """Start the next window early once every tick of this one is known to hold."""
        ready, guesses = self._scout.ready, self._guesses
        if (
            not (guesses and ready and self._is_predicted and self._current > self._window_start)
            or self._ended
            or self._pause_ticks
        ):
            return
        if self._filling is not None or not all(guess.holds for guess in guesses.values()):
            return
        size = self._choose_size(ready[0].index, len(guesses))
        if size <= 0 or len(ready) <= size:
            return  # the replay sends its own request in a moment
        self._window_start, self._window_size = ready[0].index, size
        for _ in range(1 + size):
            self._send_next()
        if self._preparing is None:
            self._preparing = self._start(self._prepare())

    async def _process_replies(self) -> None:
        """Process replies that have arrived, and send what follows from them, before the replay continues."""
        if all(guess.decision is not None for guess in self._guesses.values()):
            return  # every reply is processed, so another turn of the loop would change nothing
        all_sent = False
        for _ in range(MOST_TURNS):
            await asyncio.sleep(0)
            if all_sent:
                return  # one more turn after they were made, so that they are under way
            all_sent = all(guess.was_sent for guess in self._guesses.values())

    def _choose_size(self, index: int, known_holds: int = 0) -> int:
        """The size of the window behind a tick, after `known_holds` further ticks that are known to hold.

        Even if the whole window is wasted, the total waste must end within the cap.
        """
        plan, tally, ahead = self._plan, self.tally, 1
        if self._asks_always:  # the model is called at every remaining tick, so their cost can be relied on
            ahead = self._ticks - index
        # a speculative request for this very tick, most likely with a different prompt
        doomed = index in self._guesses and not self._is_predicted
        room = plan.max_waste_pct / 100 * (tally.useful + known_holds + ahead) - tally.wasted - doomed
        most = room
        if tally.most_usd:  # in money: planned with the most expensive decision so far, and never beyond what is safe
            room = min(room, self._planned_room_usd(known_holds + ahead) / float(tally.most_usd) - doomed)
            max_usd = max(self._budget.max_call_usd(), tally.most_usd)
            most = min(room, float(self._safe_room_usd(known_holds + ahead) / max_usd) - doomed)
        size = best_window(self._holds.after(known_holds).rates(), room, ahead) if plan.window is None else plan.window
        return min(size, int(most + 1e-9))

    def _planned_room_usd(self, ahead: int) -> float:
        """The money that may still be wasted."""
        tally = self.tally
        useful = float(tally.useful_usd + ahead * tally.least_usd)
        return self._plan.max_waste_pct / 100 * useful - float(tally.wasted_usd)

    def _safe_room_usd(self, ahead: int) -> Decimal:
        """The money that may still be put at risk; guesses under way count as wasted at their highest cost."""
        cost_usd = max_usd = ZERO
        in_flight = 0
        for guess in self._guesses.values():
            cost_usd, max_usd = cost_usd + guess.cost_usd, max_usd + guess.max_usd
            in_flight += guess.in_flight
        wasted_usd = self._budget.max_wasted_usd(self.tally.wasted_usd, self.tally.useful_usd, cost_usd, in_flight)
        useful_usd = self._budget.min_useful_usd(self.tally.useful_usd, ahead)
        return self._cap * useful_usd - wasted_usd - cost_usd - max_usd

    def _is_affordable(self, max_usd: Decimal) -> bool:
        """Whether waste stays within the cap even if a guess costs this much more and all guesses are wasted."""
        if not max_usd:
            return True
        ahead = self._ticks - max(self._current, 0) if self._asks_always else 1
        if self._budget.most_call_usd:
            return max_usd <= self._safe_room_usd(ahead)
        # Their cost is unknown yet; if all cost about the same, this many may be wasted.
        in_flight = sum(guess.in_flight for guess in self._guesses.values())
        return (in_flight + 1) * UNIFORM_RATIO * UNIFORM_RATIO <= self._cap * ahead

    def _send_next(self) -> bool:
        """Send the next prepared request, unless the replay has passed its tick."""
        if not self._scout.ready:
            return False
        tick = self._scout.ready.popleft()
        if tick.index <= self._current:
            return False
        guess = self._guesses[tick.index] = _Guess()
        guess.task = self._start(self._decide(guess, tick.state, tick.observation))
        return True

    async def _decide(self, guess: _Guess, state: State, observation: Any) -> None:
        """Decide as the replay would. Errors are ignored: the replay meets them itself or not at all."""
        ports, at, decider = self._ports, observation.at, self._ports.decider
        guess.started = True
        self.tally.launched += 1
        if isinstance(decider, ToolLoop):
            decider = replace(
                decider, model=_GatedModel(decider.model, guess, self.tally, self._budget, self._is_affordable)
            )
        guess.decision = await decider.decide(
            observation, lambda intent: ports.guard(observation, state, intent, at).verdict
        )
        self.tally.add_cost(guess.cost_usd if guess.over_budget else guess.decision.cost_usd)
        if guess.failed and not guess.dropped:
            self._pause_ticks = PAUSE_TICKS
        verdicts = [ports.guard(observation, state, intent, at).verdict for intent in guess.decision.intents]
        guess.holds = not guess.decision.flags and all(verdict.outcome == "noop" for verdict in verdicts)
        if guess.holds:
            self._start_next_window()

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if task is self._filling:
            self._filling = None
        if task is self._preparing:
            self._preparing = None
        error = None if task.cancelled() else task.exception()
        if isinstance(error, TransientError):
            self._pause_ticks = PAUSE_TICKS
        elif error is not None:  # no money, no key or a fault: speculation cannot help
            self._ended = True

    # Results -----------------------------------------------------------------------------------------------------

    def _drop(self) -> None:
        """Drop the rest of the window, whose assumption about the account was wrong; unsent requests are never sent."""
        for task in (self._filling, self._preparing):
            if task is not None:
                task.cancel()
        self._filling = self._preparing = None
        self._scout.forget()
        for guess in self._guesses.values():
            self._settle(guess, used=False)
        self._guesses.clear()

    def _settle(self, guess: _Guess, used: bool) -> None:
        if not guess.started:
            if guess.task is not None:
                guess.task.cancel()
        elif guess.failed:
            self.tally.failed += 1
        elif used:
            self.tally.used += 1
        elif guess.over_budget and not guess.cost_usd:
            self.tally.failed += 1  # never sent
        else:
            guess.dropped = True
            self.tally.wasted += 1
            self.tally.wasted_usd += guess.cost_usd
            if guess.open and guess.in_flight:
                self.tally.wasted_usd += self._budget.most_call_usd
                self._budget.uncertain_usd += guess.max_usd
            if guess.task is not None:
                guess.task.cancel()  # a call already sent completes and is counted at its highest cost
