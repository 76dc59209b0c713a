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
from pitboss.core.intent import Decision
from pitboss.core.money import ZERO
from pitboss.core.ports import Model, ModelReply, ModelRequest
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.sim.course import Course
from pitboss.sim.scout import Scout
from pitboss.sim.speculation import Speculation, Tally
from pitboss.sim.speculation_budget import ALIKE, Purse
from pitboss.sim.speculation_window import Holds, best_window
from pitboss.tick import TickResult

MOST_TURNS = 4
"""Turns of the event loop until a newly made request is on its way."""

SPARE = 3
"""Ticks prepared beyond the current window, for the next window, which may be a little wider."""

REST = 16
"""Ticks without speculation after a speculative request failed, to spare a provider in trouble."""


@dataclass(slots=True, eq=False)
class _Ask:
    """A speculative request. Once dropped it sends nothing more; calls already sent are awaited by the cache."""

    started: bool = False
    sent: bool = False
    dropped: bool = False
    short: bool = False
    holds: bool = False
    calls: int = 0
    paid_usd: Decimal = ZERO
    flies: bool = False
    bound_usd: Decimal = ZERO
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
        if self.open or self.short:
            return False
        return self.decision is None or "model_error" in self.decision.flags


@dataclass(frozen=True, slots=True)
class _Gate:
    """The model as seen by one speculative request: closed once the reply is not needed or becomes too expensive.

    A window is sized by the most expensive decision so far. A guess that takes longer stops there; its replies up to
    that point are in the cache, and the replay continues from them.
    """

    inner: Model
    ask: _Ask
    tally: Tally
    purse: Purse
    fits: Callable[[Decimal], bool]

    @property
    def name(self) -> str:
        return self.inner.name

    async def complete(self, request: ModelRequest) -> ModelReply:
        ask = self.ask
        ask.sent = True
        if ask.dropped:
            raise TransientError("nobody waits for this answer any more")
        if ask.paid_usd and ask.paid_usd * (ask.calls + 1) > self.tally.most_usd * ask.calls:
            ask.short = True
            raise TransientError("this guess would cost more than any decision so far")
        bound = self.purse.bound(request)
        if not self.fits(bound):
            ask.short = True
            raise TransientError("this guess could cost more than may be wasted")
        ask.flies, ask.bound_usd = True, bound
        reply = await self.inner.complete(request)
        ask.flies, ask.bound_usd = False, ZERO
        ask.calls += 1
        ask.paid_usd += reply.cost_usd or ZERO
        self.purse.called(reply.cost_usd)
        return reply


class Speculator:
    """Runs beside one replay, which calls it before and after every tick.

    `close` must be awaited however the replay ends.
    """

    def __init__(self, plan: Speculation, course: Course) -> None:
        self.tally = plan.tally
        self._plan, self._course, self._ports, self._ticks = plan, course, course.ports, len(course.tick_at)
        self._scout = Scout(course)
        self._sure = course.asks_always
        self._purse, self._cap = plan.purse, Decimal(plan.max_waste_pct) / 100
        self._holds = Holds()
        self._asks: dict[int, _Ask] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._filling: asyncio.Task[None] | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._waits: asyncio.Handle | None = None
        self._here, self._head, self._wide, self._foreseen = -1, -1, 0, False
        self._rest, self._ended = 0, plan.window == 0

    async def before(self, index: int, state: State, receipts: Sequence[Receipt] = ()) -> None:
        """Called when the replay is about to execute this tick from this state, after these receipts."""
        self._here = index
        if self._rest:
            self._rest -= 1
            return
        self._go_on()
        await self._turn()
        if not self._ended and self._filling is None and not any(place > index for place in self._asks):
            # Runs only if the tick has to wait: a reply from the cache is available in the same turn of the loop.
            self._waits = asyncio.get_running_loop().call_soon(self._launch, index, state, receipts)

    def after(self, index: int, before: State, done: TickResult) -> None:
        """Called when the tick is done: settles its speculative request and drops the window after a wrong guess."""
        if self._waits is not None:
            self._waits.cancel()
            self._waits = None
        state, decision = done.state, done.decision
        kept = self._course.unchanged(before, state)
        asked = not ("asleep" in decision.flags or "ruined" in decision.flags)
        if asked:
            self._holds.see(kept)
            if "model_error" not in decision.flags:
                # another run paid for it, so it is not this run's cost
                saved = decision.saved_usd and not decision.cost_usd
                self.tally.useful += not saved
                self.tally.useful_usd += decision.cost_usd or ZERO
                self.tally.paid(decision.cost_usd)
                self._purse.ticked(decision.cost_usd, decision.saved_usd)
                for step in decision.steps:
                    self._purse.called(step.cost_usd)
        ask = self._asks.pop(index, None)
        if ask is not None:
            same = ask.decision is not None and ask.decision.prompt == decision.prompt
            self._settle(ask, asked and (self._foreseen or same))
        if not kept:
            self._drop()
        # After a refusal or a failure the next prompt differs from the speculated one, but the one after it does not.
        last = state.last
        self._foreseen = kept and not (asked and last is not None and (last.outcome != "noop" or last.flag != ""))

    def begins(self, index: int) -> bool:
        """Whether a window begins with this tick: it was not speculated, or was the first after a window of holds."""
        return index == self._head or index not in self._asks

    async def close(self) -> None:
        """Cancel everything and wait until it has stopped."""
        self._ended = True
        if self._waits is not None:
            self._waits.cancel()
        self._drop()
        for task in self._tasks:
            task.cancel()
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    # The window --------------------------------------------------------------------------------------------------

    def _launch(self, index: int, state: State, receipts: Sequence[Receipt]) -> None:
        """Fill the window behind a tick that is still waiting."""
        self._waits = None
        if self._filling is not None or any(place > index for place in self._asks):
            return  # this tick's reply has arrived in the meantime, and the next window was started after it
        size = self._wide = self._size(index)
        if size > 0:
            self._head = index
            self._filling = self._start(self._fill(index, state, receipts, size))

    async def _fill(self, index: int, state: State, receipts: Sequence[Receipt], size: int) -> None:
        """Send for each tick of the window the request that the replay would send there."""
        scout = self._scout
        if self._foreseen and scout.ready and scout.ready[0].place == index:
            scout.ready.popleft()  # the replay has already passed this tick
        else:
            scout.begin(index, state, receipts)
        while size and (scout.ready or scout.step()):
            size -= self._ask_next()
            await asyncio.sleep(0)  # let the replay run first
        self._preparing = self._start(self._prepare())

    async def _prepare(self) -> None:
        """Build the requests that follow if the whole window holds, while everything waits for replies."""
        scout, decider = self._scout, self._ports.decider
        await asyncio.sleep(0)
        while len(scout.ready) < self._wide + SPARE and scout.step():
            if scout.ready and isinstance(decider, ToolLoop):
                decider.prompt(scout.ready[-1].observation)  # caches the prompt in the decider's context
            await asyncio.sleep(0)

    def _go_on(self) -> None:
        """Start the next window early once every tick of this one is known to hold."""
        ready, asks = self._scout.ready, self._asks
        if not (asks and ready and self._foreseen and self._here > self._head) or self._ended or self._rest:
            return
        if self._filling is not None or not all(ask.holds for ask in asks.values()):
            return
        size = self._size(ready[0].place, len(asks))
        if size <= 0 or len(ready) <= size:
            return  # the replay sends its own request in a moment
        self._head, self._wide = ready[0].place, size
        for _ in range(1 + size):
            self._ask_next()
        if self._preparing is None:
            self._preparing = self._start(self._prepare())

    async def _turn(self) -> None:
        """Process replies that have arrived, and send what follows from them, before the replay continues."""
        if all(ask.decision is not None for ask in self._asks.values()):
            return  # every reply is processed, so another turn of the loop would change nothing
        sent = False
        for _ in range(MOST_TURNS):
            await asyncio.sleep(0)
            if sent:
                return  # one more turn after they were made, so that they are under way
            sent = all(ask.sent for ask in self._asks.values())

    def _size(self, index: int, held: int = 0) -> int:
        """The size of the window behind a tick, after `held` further ticks that are known to hold.

        Even if the whole window is wasted, the total waste must end within the cap.
        """
        plan, tally, ahead = self._plan, self.tally, 1
        if self._sure:  # the model is called at every remaining tick, so their cost can be relied on
            ahead = self._ticks - index
        # a speculative request for this very tick, most likely with a different prompt
        doomed = index in self._asks and not self._foreseen
        room = plan.max_waste_pct / 100 * (tally.useful + held + ahead) - tally.wasted - doomed
        most = room
        if tally.most_usd:  # in money: planned with the most expensive decision so far, and never beyond what is safe
            room = min(room, self._room_usd(held + ahead) / float(tally.most_usd) - doomed)
            bound = max(self._purse.bound(), tally.most_usd)
            most = min(room, float(self._room_left(held + ahead) / bound) - doomed)
        size = best_window(self._holds.after(held).rates(), room, ahead) if plan.window is None else plan.window
        return min(size, int(most + 1e-9))

    def _room_usd(self, ahead: int) -> float:
        """The money that may still be wasted."""
        tally = self.tally
        useful = float(tally.useful_usd + ahead * tally.least_usd)
        return self._plan.max_waste_pct / 100 * useful - float(tally.wasted_usd)

    def _room_left(self, ahead: int) -> Decimal:
        """The money that may still be put at risk; guesses under way count as wasted at their highest cost."""
        paid = bound = ZERO
        flying = 0
        for ask in self._asks.values():
            paid, bound, flying = paid + ask.paid_usd, bound + ask.bound_usd, flying + ask.flies
        lost = self._purse.lost(self.tally.wasted_usd, self.tally.useful_usd, paid, flying)
        return self._cap * self._purse.sure(self.tally.useful_usd, ahead) - lost - paid - bound

    def _fits(self, bound: Decimal) -> bool:
        """Whether waste stays within the cap even if a guess costs this much more and all guesses are wasted."""
        if not bound:
            return True
        ahead = self._ticks - max(self._here, 0) if self._sure else 1
        if self._purse.most_call_usd:
            return bound <= self._room_left(ahead)
        # Their cost is unknown yet; if all cost about the same, this many may be wasted.
        guesses = sum(ask.flies for ask in self._asks.values())
        return (guesses + 1) * ALIKE * ALIKE <= self._cap * ahead

    def _ask_next(self) -> bool:
        """Send the next prepared request, unless the replay has passed its tick."""
        if not self._scout.ready:
            return False
        guess = self._scout.ready.popleft()
        if guess.place <= self._here:
            return False
        ask = self._asks[guess.place] = _Ask()
        ask.task = self._start(self._decide(ask, guess.state, guess.observation))
        return True

    async def _decide(self, ask: _Ask, state: State, observation: Any) -> None:
        """Decide as the replay would. Errors are ignored: the replay meets them itself or not at all."""
        ports, at, decider = self._ports, observation.at, self._ports.decider
        ask.started = True
        self.tally.launched += 1
        if isinstance(decider, ToolLoop):
            decider = replace(decider, model=_Gate(decider.model, ask, self.tally, self._purse, self._fits))
        ask.decision = await decider.decide(
            observation, lambda intent: ports.guard(observation, state, intent, at).verdict
        )
        self.tally.paid(ask.paid_usd if ask.short else ask.decision.cost_usd)
        if ask.failed and not ask.dropped:
            self._rest = REST
        verdicts = [ports.guard(observation, state, intent, at).verdict for intent in ask.decision.intents]
        ask.holds = not ask.decision.flags and all(verdict.outcome == "noop" for verdict in verdicts)
        if ask.holds:
            self._go_on()

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._gone)
        return task

    def _gone(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if task is self._filling:
            self._filling = None
        if task is self._preparing:
            self._preparing = None
        error = None if task.cancelled() else task.exception()
        if isinstance(error, TransientError):
            self._rest = REST
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
        for ask in self._asks.values():
            self._settle(ask, used=False)
        self._asks.clear()

    def _settle(self, ask: _Ask, used: bool) -> None:
        if not ask.started:
            if ask.task is not None:
                ask.task.cancel()
        elif ask.failed:
            self.tally.failed += 1
        elif used:
            self.tally.used += 1
        elif ask.short and not ask.paid_usd:
            self.tally.failed += 1  # never sent
        else:
            ask.dropped = True
            self.tally.wasted += 1
            self.tally.wasted_usd += ask.paid_usd
            if ask.open and ask.flies:
                self.tally.wasted_usd += self._purse.most_call_usd
                self._purse.doubt_usd += ask.bound_usd
            if ask.task is not None:
                ask.task.cancel()  # a call already sent completes and is counted at its highest cost
