"""Speculation: while a tick waits for its answer, ask for the next ones on clones of the state that assume no order.

It only warms the cache in front of the model. The replay itself never takes anything from here: it builds every prompt
and asks every question as it would alone, and finds the answer already there, or under way, if the prompt it built is
the one that was asked. So a run has the same records with speculation as without, and a wrong guess costs money only.
How much money is bounded: the window follows from the share of holds seen so far and from the cap on waste.

The decider must share one call between equal questions and keep its answer before it hands it on (`models.cached`);
without that everything would be paid twice.
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
from pitboss.tick import Ticked

MOST_TURNS = 4
"""Turns of the loop until a question that was just asked is on its way."""

SPARE = 3
"""So many more than this window has are worked out for the next one, which may be a little wider."""

REST = 16
"""Ticks without speculation after a question of it has failed: a provider in trouble needs no more questions."""


@dataclass(slots=True, eq=False)
class _Ask:
    """A question asked ahead. Once dropped it sends nothing more; what was sent is the cache's to wait for."""

    started: bool = False
    sent: bool = False
    dropped: bool = False
    short: bool = False
    holds: bool = False
    calls: int = 0
    paid_usd: Decimal = ZERO
    flies: bool = False
    bound_usd: Decimal = ZERO
    """Whether a call is under way, and the most that it can cost."""
    decision: Decision | None = None
    task: "asyncio.Task[None] | None" = None

    @property
    def open(self) -> bool:
        """On its way: what it will cost is not known yet."""
        return self.decision is None and self.task is not None and not self.task.done()

    @property
    def failed(self) -> bool:
        """Came to nothing."""
        if self.open or self.short:
            return False
        return self.decision is None or "model_error" in self.decision.flags


@dataclass(frozen=True, slots=True)
class _Gate:
    """The model as one question ahead sees it: closed when nobody wants the answer any more, or it becomes too dear.

    A window is sized by the dearest decision so far. A guess that goes on for longer stops there; what it was answered
    until then is in the cache, and the replay goes on from it.
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
    """Runs beside one replay. It is told before and after every tick; `close` must be awaited however that ends."""

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
        """The replay is about to do this tick from this state, after these receipts."""
        self._here = index
        if self._rest:
            self._rest -= 1
            return
        self._go_on()
        await self._turn()
        if not self._ended and self._filling is None and not any(place > index for place in self._asks):
            # Comes to pass only if the tick has to wait: an answer from the cache is there in the same turn of the loop.
            self._waits = asyncio.get_running_loop().call_soon(self._launch, index, state, receipts)

    def after(self, index: int, before: State, done: Ticked) -> None:
        """The tick is done: what was asked for it is settled, and what follows from a wrong guess is dropped."""
        if self._waits is not None:
            self._waits.cancel()
            self._waits = None
        state, decision = done.state, done.decision
        kept = self._course.unchanged(before, state)
        asked = not ("asleep" in decision.flags or "ruined" in decision.flags)
        if asked:
            self._holds.see(kept)
            if "model_error" not in decision.flags:
                saved = (
                    decision.saved_usd and not decision.cost_usd
                )  # another run paid for it: it is no spending of ours
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
        # After a refusal or a failure the next prompt differs from the one foreseen, but the one after it does not.
        last = state.last
        self._foreseen = kept and not (asked and last is not None and (last.outcome != "noop" or last.flag != ""))

    def begins(self, index: int) -> bool:
        """Whether a window begins with this tick: it was not asked ahead, or as the first after a window of holds."""
        return index == self._head or index not in self._asks

    async def close(self) -> None:
        """Stop everything and wait until it has stopped."""
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
        """The tick is still waiting: fill the window behind it."""
        self._waits = None
        if self._filling is not None or any(place > index for place in self._asks):
            return  # in the meantime the answer to this tick has come, and the next window was asked after it
        size = self._wide = self._size(index)
        if size > 0:
            self._head = index
            self._filling = self._start(self._fill(index, state, receipts, size))

    async def _fill(self, index: int, state: State, receipts: Sequence[Receipt], size: int) -> None:
        """Ask at each tick of the window what the replay would ask there."""
        scout = self._scout
        if self._foreseen and scout.ready and scout.ready[0].place == index:
            scout.ready.popleft()  # it has been here
        else:
            scout.begin(index, state, receipts)
        while size and (scout.ready or scout.step()):
            size -= self._ask_next()
            await asyncio.sleep(0)  # the replay goes first
        self._preparing = self._start(self._prepare())

    async def _prepare(self) -> None:
        """While everybody waits: work out what will be asked next if all of the window holds."""
        scout, decider = self._scout, self._ports.decider
        await asyncio.sleep(0)
        while len(scout.ready) < self._wide + SPARE and scout.step():
            if scout.ready and isinstance(decider, ToolLoop):
                decider.prompt(scout.ready[-1].observation)  # its context keeps it
            await asyncio.sleep(0)

    def _go_on(self) -> None:
        """All of the window is known to hold: the next one need not wait until the replay has come to its end."""
        ready, asks = self._scout.ready, self._asks
        if not (asks and ready and self._foreseen and self._here > self._head) or self._ended or self._rest:
            return
        if self._filling is not None or not all(ask.holds for ask in asks.values()):
            return
        size = self._size(ready[0].place, len(asks))
        if size <= 0 or len(ready) <= size:
            return  # the replay will ask for itself in a moment
        self._head, self._wide = ready[0].place, size
        for _ in range(1 + size):
            self._ask_next()
        if self._preparing is None:
            self._preparing = self._start(self._prepare())

    async def _turn(self) -> None:
        """Let answers that have come be heard, and what follows from them be asked, before the replay works on."""
        if all(ask.decision is not None for ask in self._asks.values()):
            return  # all has been heard: a turn of the loop would bring nothing
        sent = False
        for _ in range(MOST_TURNS):
            await asyncio.sleep(0)
            if sent:
                return  # once more after they were: now they are under way
            sent = all(ask.sent for ask in self._asks.values())

    def _size(self, index: int, held: int = 0) -> int:
        """The window behind a tick, after `held` more that are known to hold.

        Even if all of it came to nothing, waste must end within the cap.
        """
        plan, tally, ahead = self._plan, self.tally, 1
        if self._sure:  # the model is asked at every tick that comes, so what the next ones cost can be counted on
            ahead = self._ticks - index
        doomed = index in self._asks and not self._foreseen  # for this very tick, and most likely with another prompt
        room = plan.max_waste_pct / 100 * (tally.useful + held + ahead) - tally.wasted - doomed
        most = room
        if tally.most_usd:  # in money: planned by the dearest decision so far, and never more than is safe
            room = min(room, self._room_usd(held + ahead) / float(tally.most_usd) - doomed)
            bound = max(self._purse.bound(), tally.most_usd)
            most = min(room, float(self._room_left(held + ahead) / bound) - doomed)
        size = best_window(self._holds.after(held).rates(), room, ahead) if plan.window is None else plan.window
        return min(size, int(most + 1e-9))

    def _room_usd(self, ahead: int) -> float:
        """What may still be wasted."""
        tally = self.tally
        useful = float(tally.useful_usd + ahead * tally.least_usd)
        return self._plan.max_waste_pct / 100 * useful - float(tally.wasted_usd)

    def _room_left(self, ahead: int) -> Decimal:
        """What may still be put at risk: all guesses under way are counted as dear as they may be, and as wasted."""
        paid = bound = ZERO
        flying = 0
        for ask in self._asks.values():
            paid, bound, flying = paid + ask.paid_usd, bound + ask.bound_usd, flying + ask.flies
        lost = self._purse.lost(self.tally.wasted_usd, self.tally.useful_usd, paid, flying)
        return self._cap * self._purse.sure(self.tally.useful_usd, ahead) - lost - paid - bound

    def _fits(self, bound: Decimal) -> bool:
        """Whether waste ends within the cap even if a guess costs this much more and all of them come to nothing."""
        if not bound:
            return True
        ahead = self._ticks - max(self._here, 0) if self._sure else 1
        if self._purse.most_call_usd:
            return bound <= self._room_left(ahead)
        # Nobody knows yet what they cost: so many may be wasted where they cost alike.
        guesses = sum(ask.flies for ask in self._asks.values())
        return (guesses + 1) * ALIKE * ALIKE <= self._cap * ahead

    def _ask_next(self) -> bool:
        """Ask the next of those that were worked out, unless the replay has been there."""
        if not self._scout.ready:
            return False
        guess = self._scout.ready.popleft()
        if guess.place <= self._here:
            return False
        ask = self._asks[guess.place] = _Ask()
        ask.task = self._start(self._decide(ask, guess.state, guess.observation))
        return True

    async def _decide(self, ask: _Ask, state: State, observation: Any) -> None:
        """Ask as the replay would. Whatever goes wrong, the replay will meet it itself or not at all."""
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
        elif error is not None:  # no money, no key, a fault: nothing that guessing could help
            self._ended = True

    # What came of it ---------------------------------------------------------------------------------------------

    def _drop(self) -> None:
        """The account is not what the rest of the window assumed: what was not sent yet never will be."""
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
                ask.task.cancel()  # in a queue it leaves; what was sent is answered and kept, and counted as dear
