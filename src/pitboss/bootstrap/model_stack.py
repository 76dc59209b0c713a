"""From a model's name to something a run can ask: key, price, limits, budget and cache, one stack for each run.

Outermost first: traced, cached, retried, budgeted, priced, limited, one try of a client. What a person must put right (a
name, a key, a package, a price) is said by `check_line` before anything of a run is stored; connections are opened when
it begins and closed with it. The HTTP client is imported only then. Whether a run needs a line at all says `gateway.py`.
"""

import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import Any, Literal, TypeVar
from weakref import WeakKeyDictionary

from pitboss.agent.loop import ToolLoop
from pitboss.bootstrap.keys import Values, open_secrets
from pitboss.bootstrap.machine import SystemClock, environment, stopwatch
from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import SECOND_MS, Instant
from pitboss.core.money import ZERO
from pitboss.core.ports import Message, Model, ModelRequest, ToolSpec
from pitboss.core.trace import Tracer
from pitboss.models import catalog, native
from pitboss.models.budgeted import Budget, Budgeted, usd
from pitboss.models.cached import Cached, Flights
from pitboss.models.limited import Lane, Limited, Limiter, fingerprint
from pitboss.models.local import LocalModel, LocalServer, find_weights
from pitboss.models.priced import Priced
from pitboss.models.prices import FREE, ModelPrice, flat, price
from pitboss.models.providers import OWN, Route, entry, route
from pitboss.models.replayed import Replayed
from pitboss.models.retried import Retried, SingleAttempt
from pitboss.models.traced import Traced
from pitboss.sim.request import BacktestRequest, PreparedRun
from pitboss.sim.speculation_budget import Purse
from pitboss.sim.speculator import Speculation
from pitboss.store.answers import Answers
from pitboss.store.database import Database
from pitboss.store.journal import StoredJournal
from pitboss.store.uncertain_charges import UncertainCharges

P = TypeVar("P", bound=PreparedRun)


@dataclass(slots=True)
class ModelConnection:
    """An open line to a model for one run: what to ask, and what has come of the money."""

    model: Model
    forcing: Literal["call", "schema"] = "call"
    rescue: bool = True
    cached: Cached | None = None
    budget: Budget | None = None
    speculation: Speculation | None = None

    def bind(self, assembly: P) -> P:
        """The same backtest with its loop asking this model."""
        ports = assembly.script.ports
        loop = ports.decider
        assert isinstance(loop, ToolLoop)
        asking = replace(loop, model=self.model, forcing=self.forcing, rescue=self.rescue)
        writing = ports.reflector and replace(ports.reflector, model=self.model, forcing=self.forcing)
        bound = replace(ports, decider=asking, reflector=writing)
        script = replace(assembly.script, ports=bound, speculation=self.speculation)
        return replace(assembly, script=script)

    @property
    def paid_usd(self) -> Decimal:
        """Everything this run has paid for, used or not."""
        return ZERO if self.cached is None else self.cached.paid_usd()

    def news(self) -> str:
        """What calls and asking ahead have come to, in a line."""
        if self.cached is None:
            return ""
        said = f"asked {self.cached.calls} times, {self.cached.hits} answers were known or under way"
        tally = self.speculation.tally if self.speculation else None
        if tally is not None and tally.launched:
            said += f"; ahead of time {tally.launched}, of which {tally.wasted} in vain ({tally.waste_pct:.0f} %)"
        if self.budget is not None and self.budget.uncertain:
            said += f"; up to {usd(self.budget.uncertain)} more for calls that were cut off and may have been charged"
        return said


def check_line(workspace: Workspace, request: BacktestRequest) -> None:
    """Refuse a model that cannot be asked."""
    provider, _, rest = request.source.partition("/")
    if provider == catalog.REPLAY:
        workspace.runs.find(rest)
    elif provider == catalog.LOCAL:
        find_weights(rest, workspace.home / "models")
    else:
        found = route_of(workspace, request.source)
        if found.provider.native:
            native.load(_kind(found))
        known_price(request, found)


def route_of(workspace: Workspace, name: str) -> Route:
    """Who is asked under a name, with which key."""
    return route(name, Values(environment, open_secrets(workspace.home)))


async def open_line(
    stack: AsyncExitStack, workspace: Workspace, assembly: PreparedRun, run_id: str, tracer: Tracer
) -> ModelConnection:
    """A line for one run. What it opens is closed with the stack."""
    from pitboss.models.chat import pool

    request, settings = assembly.request, workspace.settings
    provider, _, rest = request.source.partition("/")
    if provider == catalog.REPLAY:
        source = workspace.runs.get(rest)
        records = StoredJournal(workspace.database, source.id, source.lease_epoch).records()
        told = source.params.get("manner") or {}
        return ModelConnection(Replayed(records, source.id), told.get("forcing", "call"), told.get("rescue", False))
    if provider == catalog.LOCAL:
        client = _local(workspace, request.source)
        stack.callback(client.close)
        await stack.enter_async_context(pool.opened())
        return _stacked(stack, workspace, assembly, run_id, client, FREE, None, "schema", tracer)
    found = route_of(workspace, request.source)
    lane = limiter(settings).lane(found.provider.host, fingerprint(found.key.reveal() if found.key else ""))
    client = open_client(found, settings, lane)
    if found.provider.native:
        stack.push_async_callback(client.close)
    else:
        await stack.enter_async_context(pool.opened())
    forcing = _forcing(found, assembly)
    return _stacked(stack, workspace, assembly, run_id, client, known_price(request, found), lane, forcing, tracer)


def _forcing(found: Route, assembly: PreparedRun) -> Literal["call", "schema"]:
    asked = assembly.skill.model_settings.request()
    return "call" if found.provider.native or found.provider.forces(asked) else "schema"


def manner_of(workspace: Workspace, assembly: PreparedRun) -> dict[str, Any] | None:
    """How a run's model is made to decide, kept with the run so that a replay asks in the same way."""
    request = assembly.request
    provider, _, rest = request.source.partition("/")
    if provider == catalog.REPLAY:
        return workspace.runs.get(rest).params.get("manner")
    forcing = "schema" if provider == catalog.LOCAL else _forcing(route_of(workspace, request.source), assembly)
    return {"forcing": forcing, "rescue": True}


def _stacked(
    stack: AsyncExitStack,
    workspace: Workspace,
    assembly: PreparedRun,
    run_id: str,
    client: Any,
    known: ModelPrice | None,
    lane: Lane | None,
    forcing: Literal["call", "schema"],
    tracer: Tracer,
) -> ModelConnection:
    request = assembly.request
    answers = Answers(workspace.database, workspace.now)
    doubts = UncertainCharges(workspace.database, run_id, workspace.runs.get(run_id).lease_epoch)
    budget = Budget(request.max_cost_usd, answers.paid_usd(run_id), doubts.before_usd, doubts.note)
    stack.callback(budget.close)
    # A model on this machine costs nothing and is nobody else's: it may try again by itself.
    asked: Model = client if lane is None else Limited(SingleAttempt(client), lane, run_id)
    asked = budgeted = Budgeted(Priced(asked, known, workspace.now), budget, known)
    if lane is not None:
        settings = workspace.settings
        asked = Retried(asked, random=_dice(), attempts=settings.model_attempts, deadline_s=settings.model_deadline_s)
    cached = Cached(asked, answers, run_id, request.repeat, _flights(workspace.database))
    stack.push_async_callback(cached.close)
    model = Traced(cached, tracer)
    # A model on this machine answers one question at a time.
    ahead = None if lane is None else _speculation(request, Purse(budgeted.worst, budget))
    return ModelConnection(model, forcing, True, cached, budget, ahead)


def _speculation(request: BacktestRequest, purse: Purse) -> Speculation | None:
    if request.speculate == "0":
        return None
    window = None if request.speculate == "auto" else int(request.speculate)
    return Speculation(window, float(request.max_waste_pct), purse=purse)


def open_client(found: Route, settings: Settings, lane: Lane | None = None) -> Any:
    """The bare client of a route. A run asks it try by try; by itself it tries again and gives up in time."""
    from pitboss.models.chat.client import ChatModel

    patience: dict[str, Any] = {
        "timeout_s": settings.model_timeout_s,
        "attempts": settings.model_attempts,
        "deadline_s": settings.model_deadline_s,
        "random": _dice(),
        "clock": stopwatch,
    }
    patience["seen"] = None if lane is None else lane.learn
    if found.provider.native:
        adapter = native.load(_kind(found))
        return adapter(found.name, found.model, found.key, base_url=found.provider.base_url, **patience)
    return ChatModel(found.name, found.provider, found.key, model=found.model, **patience)


def _local(workspace: Workspace, name: str) -> LocalModel:
    from pitboss.models.chat.client import ChatModel

    settings = workspace.settings
    weights = find_weights(name.partition("/")[2], workspace.home / "models")

    def connect(base_url: str) -> Model:
        served = entry("local", base_url, dialect=OWN, needs_key=False, free=True)
        return ChatModel(
            name,
            served,
            model=weights.stem,
            random=_dice(),
            clock=stopwatch,
            timeout_s=settings.local_timeout_s,
            attempts=2,
            deadline_s=2 * settings.local_timeout_s,
        )

    # With its size: another file under the same name must not be answered for by this one's answers in the cache.
    known = f"{name}#{weights.stat().st_size}"
    return LocalModel(known, LocalServer(weights, settings.local_threads), connect)


def known_price(request: BacktestRequest, found: Route) -> ModelPrice | None:
    """What the model costs, or that the person goes on without knowing."""
    if request.price_in is not None and request.price_out is not None:
        return flat(request.price_in, request.price_out)
    if found.provider.free:
        return FREE
    known = price(found.provider.prices, found.model, SystemClock().now())
    if known is None and not request.any_price:
        raise UserError(
            f"nobody knows the price of {found.name}",
            "give --price-in and --price-out (USD per million tokens), or --yes to go on without knowing",
        )
    return known


def _kind(found: Route) -> native.Kind:
    return "anthropic" if found.provider.name == "anthropic" else "google"


_FLIGHTS: WeakKeyDictionary[Database, Flights] = WeakKeyDictionary()


def _flights(database: Database) -> Flights:
    """The calls under way of all runs that keep their answers in one database, as far as they are in this process."""
    return _FLIGHTS.setdefault(database, Flights())


def _dice() -> Callable[[], float]:
    return random.SystemRandom().random


@cache
def _limiter(rpm: int, tpm: int) -> Limiter:
    started_at, began = SystemClock().now(), stopwatch()

    def now() -> Instant:
        """A clock that is set back must not make anybody wait for that long."""
        return started_at + int((stopwatch() - began) * SECOND_MS)

    return Limiter(now, rpm=rpm or None, tpm=tpm or None)


def limiter(settings: Settings) -> Limiter:
    """The one limiter of this process: all runs share what a provider allows."""
    return _limiter(settings.model_rpm, settings.model_tpm)


TRIAL = ToolSpec(
    "answer",
    "Say that you can hear me.",
    {
        "type": "object",
        "additionalProperties": False,
        "required": ["heard"],
        "properties": {"heard": {"type": "boolean", "description": "true"}},
    },
)


async def trial(workspace: Workspace, name: str) -> dict[str, Any]:
    """One small question to a model: does it answer, does it keep to a forced call, how long does it take, what does it
    cost. Nothing is stored."""
    from pitboss.models.chat import pool

    entry_ = catalog.describe(name)
    if not entry_.is_model or name.startswith(f"{catalog.REPLAY}/"):
        raise UserError(f"{name} is not asked over a line: there is nothing to test", "it always works")
    form: Literal["call", "schema"] = "call"
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(pool.opened())
        if name.startswith(f"{catalog.LOCAL}/"):
            client: Any = _local(workspace, name)
            stack.callback(client.close)
            known, form, where = FREE, "schema", "this machine"
        else:
            found = route_of(workspace, name)
            client = open_client(found, workspace.settings)
            if found.provider.native:
                stack.push_async_callback(client.close)
            elif not found.provider.forces():
                form = "schema"
            known = FREE if found.provider.free else price(found.provider.prices, found.model, workspace.now())
            where = found.provider.host
        asked = ModelRequest(
            "You are being tested.",
            (Message("user", "Can you hear me? Answer with heard = true."),),
            (TRIAL,),
            TRIAL.name,
            {"max_tokens": 256},
            form,
        )
        reply = await Priced(client, known, workspace.now).complete(asked)
    said = [call.arguments for call in reply.calls if call.name == TRIAL.name] or [reply.text]
    return {
        "model": name,
        "answered_as": reply.model,
        "host": where,
        "forced_by": "tool call" if form == "call" else "schema",
        "kept_to_it": "heard" in said[0],
        "latency_ms": round(reply.latency_ms, 1),
        "input_tokens": reply.usage.input_tokens,
        "output_tokens": reply.usage.output_tokens,
        "price_known": known is not None,
        "cost_usd": None if reply.cost_usd is None else float(reply.cost_usd),
        "problem": reply.problem,
    }
