"""`Cached`: a question that was answered before is answered from what was kept, at once and for nothing.

The key of a question is a digest of everything that can change its answer, and of nothing else: ids that a provider
invents for its calls are numbered in order of appearance, its opaque state and everything about time is left out. An answer
is kept before it is handed on, so nothing is paid twice.

Equal questions that are asked at once share one call: those of one run, and with the same `Flights` those of all runs of this
process. Who asked first pays; who waited for it has saved that much. A call that fails or is given up helps nobody but costs
nobody his answer either: the next who waits asks for himself, the others wait for him. Between two processes there is only
what is kept: both may ask, both pay, and the answer that was kept first is the one that everybody is given from then on.

Not kept: exceptions, and replies of a provider that failed halfway, for another day it may not; a refused, blocked or cut
reply is an answer like any other. Where answers are kept is the caller's (`store/answers.py`).
"""

import asyncio
import hashlib
import json
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Protocol

from pitboss.core import codec
from pitboss.core.errors import TransientError
from pitboss.core.money import ZERO
from pitboss.core.ports import Message, Model, ModelReply, ModelRequest, ToolSpec
from pitboss.models.identity_cache import Remembered
from pitboss.models.retried import INTEREST, Interest


class CachedReply(Protocol):
    """An answer as it was kept."""

    @property
    def run_id(self) -> str: ...
    @property
    def cost_usd(self) -> Decimal | None: ...
    @property
    def reply(self) -> ModelReply: ...


class Keeper(Protocol):
    """Where answers are kept. `put` returns when they are there for good; with `more` to come it may wait a little.

    It tells whether this is the answer that `get` will give, and not one that somebody else had kept before.
    """

    def get(self, key: str) -> CachedReply | None: ...
    async def put(
        self, key: str, model: str, run_id: str, cost_usd: Decimal | None, reply: ModelReply, more: bool = False
    ) -> bool | None: ...
    def paid_usd(self, run_id: str) -> Decimal: ...


def request_key(model: str, request: ModelRequest, repeat: int = 0) -> str:
    """The digest of a question. `repeat` keeps the repeats of a model that answers differently each time apart."""
    plain = {
        "model": model,
        "repeat": repeat,
        "settings": dict(request.settings),
        "system": _text_sha256(request.system),
        "messages": _messages(request.messages),
        "tools": [_tool_sha256(tool) for tool in request.tools],
        "must_call": request.must_call,
        "answer": request.answer,
    }
    return hashlib.sha256(_bytes(plain)).hexdigest()


def _messages(messages: tuple[Message, ...]) -> list[dict[str, object]]:
    """Messages with their call ids replaced by numbers; a result belongs to the latest call of its id."""
    numbers: dict[str, int] = {}
    made: list[dict[str, object]] = []
    count = 0
    for message in messages:
        one: dict[str, object] = {"role": message.role, "text": message.text}
        if message.calls:
            listed: list[tuple[int, str, str]] = []
            for call in message.calls:
                count += 1
                numbers[call.id] = count
                listed.append((count, call.name, call.arguments))
            one["calls"] = listed
        if message.call_id or message.name:
            one["call"] = numbers.get(message.call_id, message.call_id)
            one["name"] = message.name
        made.append(one)
    return made


def _bytes(plain: object) -> bytes:
    try:
        return codec.dumps(plain)
    except TypeError:  # half a surrogate pair, which JSON can name and UTF-8 cannot
        return json.dumps(plain, sort_keys=True, separators=(",", ":"), default=str).encode()


@lru_cache(maxsize=64)
def _text_sha256(words: str) -> str:
    """The system prompt is the same at every tick: it is hashed once."""
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()


MOST_FRESH = 64
"""Answers of this run that are known without looking: more than the widest window has, twice over."""


@Remembered
def _tool_sha256(tool: ToolSpec) -> str:
    """A tool's schema is larger than most prompts and never changes."""
    plain = {"name": tool.name, "description": tool.description, "schema": tool.schema}
    return hashlib.sha256(_bytes(plain)).hexdigest()


@dataclass(slots=True, eq=False)
class _Flight:
    """A call under way, who pays for it, and how many of that run wait for it. Others may wait too, but have no say in it."""

    call: asyncio.Task[ModelReply]
    interest: Interest
    owner: "Cached"
    waiting: int = 0
    answered: bool = False


class Flights:
    """The calls under way of all runs that share their answers, by the key of the question."""

    def __init__(self) -> None:
        self._under_way: dict[str, _Flight] = {}

    def find(self, key: str) -> _Flight | None:
        """The call that will answer a question. One that has ended is none, nor is one of another thread's loop."""
        found = self._under_way.get(key)
        if found is None or found.call.done() or found.call.get_loop() is not asyncio.get_running_loop():
            return None
        return found

    def begin(self, key: str, flight: _Flight) -> None:
        """Let others know of a call."""
        self._under_way[key] = flight

    def end(self, key: str, flight: _Flight) -> None:
        """It is over, or given up; perhaps it has a successor by now."""
        if self._under_way.get(key) is flight:
            del self._under_way[key]


class Cached:
    """A model that remembers. `run_id` is who pays for what is not known yet.

    A hit that this run paid for (ahead of its tick, or before a crash) counts as spent by the tick that uses it; a hit
    that another run paid for costs nothing and counts as saved. An unknown cost stays unknown when it is our own.
    """

    def __init__(
        self, inner: Model, answers: Keeper, run_id: str, repeat: int = 0, flights: Flights | None = None
    ) -> None:
        """`flights` is what other runs have that keep their answers in the same place; without it nobody else is heard."""
        self.inner = inner
        self.name = inner.name
        self.run_id = run_id
        self.repeat = repeat
        self.calls = 0
        """Questions that went on to the model."""
        self.hits = 0
        """Questions that were answered from what was kept, or by a call that somebody else had made just before."""
        self._answers = answers
        self._flights = flights or Flights()
        self._own: dict[str, _Flight] = {}
        self._fresh: dict[str, ModelReply] = {}

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The answer that is known, or the one that is asked for now."""
        key = request_key(self.name, request, self.repeat)
        while True:
            flight = self._flights.find(key)
            if flight is not None and flight.owner is not self:
                reply = await self._of_another(flight)
                if reply is not None:
                    return reply
                continue  # it came to nothing: we ask for ourselves, unless the next one who waited does already
            try:
                return await self._one(key, request, flight)
            except TransientError:
                if flight is None:
                    raise  # else a call that we made before has failed: it is asked again

    async def _of_another(self, flight: _Flight) -> ModelReply | None:
        """What another run's call brings; None where it brings no answer, whatever the reason."""
        await asyncio.wait((flight.call,))  # which is not stopped with us, nor we with it
        if flight.call.cancelled() or flight.call.exception() is not None:
            return None
        reply = flight.call.result()
        if not kept(reply):
            return None
        self.hits += 1
        return self._told(reply, flight.owner.run_id, reply.cost_usd)

    async def _one(self, key: str, request: ModelRequest, flight: _Flight | None) -> ModelReply:
        if flight is None:
            fresh = self._fresh.get(key)
            if fresh is not None:
                self.hits += 1
                return replace(fresh, latency_ms=0.0, saved_usd=ZERO)
            known = self._answers.get(key)
            if known is not None:
                self.hits += 1
                return self._told(known.reply, known.run_id, known.cost_usd)
            self.calls += 1
            interest = Interest()
            flight = _Flight(asyncio.create_task(self._ask(key, request, interest)), interest, self)
            flight.call.add_done_callback(_seen)
            self._own[key] = flight
            self._flights.begin(key, flight)
        else:
            self.hits += 1
        flight.waiting += 1
        flight.interest.wanted = True
        try:
            return await asyncio.shield(flight.call)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.answered and not flight.call.done():
                self._lose(key, flight)

    def _lose(self, key: str, flight: _Flight) -> None:
        """Nobody here wants it any more. What is at the provider will be paid for, so its answer is awaited and kept.

        That another run waits for it does not count: it would be us who pays.
        """
        flight.interest.wanted = False
        if not flight.interest.sent:
            flight.call.cancel()
            self._forget(key, flight)

    def _forget(self, key: str, flight: _Flight) -> None:
        if self._own.get(key) is flight:  # given up, it may have a successor
            del self._own[key]
        self._flights.end(key, flight)

    def _remember(self, key: str, reply: ModelReply) -> None:
        self._fresh[key] = reply
        if len(self._fresh) > MOST_FRESH:
            del self._fresh[next(iter(self._fresh))]

    async def close(self) -> None:
        """Give up what is still being asked, and wait until it has ended. What has been answered is kept first."""
        flights = dict(self._own)
        for key, flight in flights.items():
            if not flight.answered:
                flight.call.cancel()
                self._forget(key, flight)
        await asyncio.gather(*(flight.call for flight in flights.values()), return_exceptions=True)

    def knows(self, request: ModelRequest) -> bool:
        """Whether this question would be a hit, or is being asked already."""
        key = request_key(self.name, request, self.repeat)
        return self._flights.find(key) is not None or self._answers.get(key) is not None

    def paid_usd(self) -> Decimal:
        """What this run has paid for answers, used or not."""
        return self._answers.paid_usd(self.run_id)

    def _told(self, reply: ModelReply, run_id: str, cost_usd: Decimal | None) -> ModelReply:
        """An answer that a run has paid for, as it counts for this one."""
        ours = run_id == self.run_id
        return replace(
            reply,
            latency_ms=0.0,
            cost_usd=cost_usd if ours else ZERO,
            saved_usd=ZERO if ours else cost_usd or ZERO,
        )

    async def _ask(self, key: str, request: ModelRequest, interest: Interest) -> ModelReply:
        INTEREST.set(interest)  # the context of a task is its own
        flight = self._own[key]
        try:
            reply = await self.inner.complete(request)
            flight.answered = True  # from here on it is paid for, and kept whoever still waits
            if kept(reply):
                more = any(not one.answered for one in self._own.values())
                first = await self._answers.put(key, self.name, self.run_id, reply.cost_usd, reply, more=more)
                if first:  # what was asked ahead is wanted soon, and reading it back costs as much as a fifth of a tick
                    self._remember(key, reply)
            return reply
        finally:
            self._forget(key, flight)


def kept(reply: ModelReply) -> bool:
    """Whether a reply is an answer to its question. A provider's failure is none, though it may have cost something."""
    return reply.finish_reason != "error" or reply.problem.startswith(_SAID_NO)


_SAID_NO = ("the model refused", "the reply was blocked", "the provider blocked")
"""How the readers of replies begin to tell of these: both kinds of reply end in "error", and only the words differ."""


def _seen(call: asyncio.Task[ModelReply]) -> None:
    """Look at how a call ended, so that nobody complains when all who waited have gone."""
    if not call.cancelled():
        call.exception()
