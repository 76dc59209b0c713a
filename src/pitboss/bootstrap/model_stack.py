"""Builds the model connection of a run from a model's name: key, price, limits, budget and cache.

The wrappers, outermost first: traced, cached, first call, retried, budgeted, priced, limited, and a client that makes one
attempt. Errors that the user must fix (a name, a key, a package, a price) are raised by `check_model` before anything
of a run is stored; connections are opened when the run begins and closed with it. The HTTP client is imported only
then. Whether a run needs a model connection at all is decided in `decider_source.py`.
"""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, Literal
from weakref import WeakKeyDictionary

from pitboss.agent.request_policy import DEFAULT_POLICY, RequestPolicy, read_policy
from pitboss.bootstrap.keys import Values, open_secrets
from pitboss.bootstrap.machine import SystemClock, environment, stopwatch, unit_random
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import SECOND_MS, Instant
from pitboss.core.money import ZERO
from pitboss.core.ports import Message, ModelRequest, ToolSpec
from pitboss.core.trace import Tracer
from pitboss.models import catalog
from pitboss.models.budget import Budget, usd
from pitboss.models.budgeted import Budgeted
from pitboss.models.cached import Cached
from pitboss.models.call import DirectClient, ModelClient
from pitboss.models.endpoint import ENDPOINT, Endpoint, check_unchanged, endpoint_of, read_endpoint, route_to
from pitboss.models.families import PLAIN, family_limits, raised_limit
from pitboss.models.first_call import FirstCall
from pitboss.models.lane import Lane
from pitboss.models.limited import Limited
from pitboss.models.limiter import Limiter, fingerprint
from pitboss.models.local import LocalModel
from pitboss.models.local_server import LocalServer
from pitboss.models.local_weights import find_weights
from pitboss.models.price_list import price, similar_model
from pitboss.models.priced import Priced
from pitboss.models.prices import FREE, ModelPrice, flat
from pitboss.models.providers import OWN, entry
from pitboss.models.replayed import Replayed
from pitboss.models.retried import Retried
from pitboss.models.routes import Route, route
from pitboss.models.shared_calls import SharedCalls
from pitboss.models.traced import Traced
from pitboss.sim.request import BacktestRequest
from pitboss.sim.speculation_budget import SpeculationBudget
from pitboss.sim.speculator import Speculation
from pitboss.skill.schema import SkillDocument
from pitboss.store.answers import Answers
from pitboss.store.database import Database
from pitboss.store.journal import StoredJournal
from pitboss.store.runs import is_relative
from pitboss.store.uncertain_charges import UncertainCharges


@dataclass(slots=True)
class ModelConnection:
    """An open connection to a model for one run: the model to call, and the costs so far."""

    model: ModelClient
    policy: RequestPolicy = DEFAULT_POLICY
    cached: Cached | None = None
    budget: Budget | None = None
    speculation: Speculation | None = None

    @property
    def paid_usd(self) -> Decimal:
        """The cost of all replies of this run, used or not."""
        return ZERO if self.cached is None else self.cached.paid_usd()

    def summary(self) -> str:
        """A one-line summary of calls and speculation since this connection was opened."""
        if self.cached is None:
            return ""
        text = f"{self.cached.calls} calls of the model, {self.cached.hits} replies from the cache or a shared call"
        tally = self.speculation.tally if self.speculation else None
        if tally is not None and tally.launched:
            # not `tally.wasted`, which a resumed run begins with the waste of earlier executions
            text += f"; {tally.launched} requested in advance, {tally.launched - tally.used} of them unused"
        if self.budget is not None and self.budget.uncertain:
            text += f"; up to {usd(self.budget.uncertain)} more for interrupted calls that may have been charged"
        return text


def check_model(workspace: Workspace, request: BacktestRequest, params: Mapping[str, Any]) -> None:
    """Refuse a model that cannot be called. `params` are those of a stored run."""
    provider, _, target = request.source.partition("/")
    if provider == catalog.REPLAY:
        run_id = workspace.runs.find(target)
        if is_relative(target):
            raise UserError(f"{request.source} would name another run later", f"write {catalog.REPLAY}/{run_id}")
    elif provider == catalog.LOCAL:
        find_weights(target, workspace.home / "models")
    else:
        known_price(request, _stored_route(workspace, request, params))


def check_endpoint(workspace: Workspace, params: Mapping[str, Any]) -> None:
    """Refuse a stored run whose model's name now stands for another server."""
    endpoint = read_endpoint(params[ENDPOINT])
    if endpoint is not None:
        check_unchanged(endpoint, _values(workspace))


def route_of(workspace: Workspace, name: str) -> Route:
    """The provider, address and key for a model's name."""
    return route(name, _values(workspace))


def _stored_route(workspace: Workspace, request: BacktestRequest, params: Mapping[str, Any]) -> Route:
    endpoint = read_endpoint(params.get(ENDPOINT))
    return route_of(workspace, request.source) if endpoint is None else route_to(endpoint, _values(workspace))


def new_endpoint(workspace: Workspace, request: BacktestRequest) -> Endpoint | None:
    """The endpoint that a model's name stands for now; None for models that are no servers."""
    if request.source.partition("/")[0] in (catalog.LOCAL, catalog.REPLAY):
        return None
    return endpoint_of(request.source, route_of(workspace, request.source))


def _values(workspace: Workspace) -> Values:
    return Values(environment, open_secrets(workspace.home), http_hosts=workspace.settings.http_hosts)


async def open_connection(
    stack: AsyncExitStack,
    workspace: Workspace,
    request: BacktestRequest,
    skill: SkillDocument,
    run_id: str,
    tracer: Tracer,
) -> ModelConnection:
    """Open the model connection of one run. Everything that it opens is closed with the stack."""
    from pitboss.models import http_pool
    from pitboss.models.server_weights import weights_of

    settings = workspace.settings
    provider, _, target = request.source.partition("/")
    params = workspace.runs.get(run_id).params
    policy = read_policy(params["manner"]) if params.get("manner") else policy_of(workspace, request, skill)
    if provider == catalog.REPLAY:
        source = workspace.runs.get(target)
        records = StoredJournal(workspace.database, source.id, source.lease_epoch).records()
        return ModelConnection(DirectClient(Replayed(records, source.id)), policy)
    if provider == catalog.LOCAL:
        client = _local(workspace, request.source)
        stack.callback(client.close)
        await stack.enter_async_context(http_pool.opened())
        return _wrapped(stack, workspace, request, run_id, client, FREE, None, policy, tracer)
    model_route = _stored_route(workspace, request, params)
    lane = limiter(settings).lane(
        model_route.provider.host, fingerprint(model_route.key.reveal() if model_route.key else "")
    )
    client = open_client(model_route, settings)
    await stack.enter_async_context(http_pool.opened())
    weights = await weights_of(model_route, http_pool.session())
    if weights:
        client.name = f"{client.name}#{weights}"
    identity = f"{endpoint_of(request.source, model_route).identity}#{weights}".removesuffix("#")
    price_now = known_price(request, model_route)
    return _wrapped(stack, workspace, request, run_id, client, price_now, lane, policy, tracer, identity)


def policy_of(workspace: Workspace, request: BacktestRequest, skill: SkillDocument) -> RequestPolicy:
    """How the model of a new run is made to decide."""
    provider, _, target = request.source.partition("/")
    if provider == catalog.REPLAY:
        return read_policy(workspace.runs.get(target).params.get("manner"))
    settings = skill.model_settings.request()
    if provider == catalog.LOCAL:
        return RequestPolicy("schema", "within", raised_max_tokens=raised_limit(request.source, settings))
    model_route = route_of(workspace, request.source)
    can_force = model_route.provider.native or model_route.provider.forces(settings)
    return RequestPolicy(
        "call" if can_force else "schema",
        "within",
        family_limits(model_route.model).max_tokens,
        raised_limit(model_route.model, settings),
    )


def _wrapped(
    stack: AsyncExitStack,
    workspace: Workspace,
    request: BacktestRequest,
    run_id: str,
    client: ModelClient,
    model_price: ModelPrice | None,
    lane: Lane | None,
    policy: RequestPolicy,
    tracer: Tracer,
    identity: str = "",
) -> ModelConnection:
    answers = Answers(workspace.database, workspace.now)
    stack.callback(answers.close)
    uncertain_charges = UncertainCharges(workspace.database, run_id, workspace.runs.get(run_id).lease_epoch)
    budget = Budget(
        request.max_cost_usd, answers.paid_usd(run_id), uncertain_charges.before_usd, uncertain_charges.note
    )
    stack.callback(budget.close)
    # A local model is free and has no rate limits; its client retries by itself.
    limited = client if lane is None else Limited(client, lane, run_id)
    budgeted = Budgeted(Priced(limited, model_price, workspace.now), budget, model_price)
    lasting = budgeted if lane is None else FirstCall(retried(budgeted, workspace.settings))
    cached = Cached(lasting, answers, run_id, request.repeat, _shared_calls(workspace.database), identity)
    stack.push_async_callback(cached.close)
    model = Traced(cached, tracer)
    # A local model handles one request at a time.
    speculation = None if lane is None else _speculation(request, SpeculationBudget(budgeted.worst, budget))
    return ModelConnection(model, policy, cached, budget, speculation)


def _speculation(request: BacktestRequest, budget: SpeculationBudget) -> Speculation | None:
    if request.speculate == "0":
        return None
    window = None if request.speculate == "auto" else int(request.speculate)
    return Speculation(window, float(request.max_waste_pct), budget=budget)


def retried(client: ModelClient, settings: Settings) -> Retried:
    """The client with the attempts and the deadline of the settings."""
    limits = family_limits(client.name)
    deadline_s = _or_of_family(settings.model_deadline_s, PLAIN.deadline_s, limits.deadline_s)
    return Retried(client, random=unit_random(), attempts=settings.model_attempts, deadline_s=deadline_s)


def open_client(model_route: Route, settings: Settings) -> ModelClient:
    """The bare client of a route: one attempt per call."""
    from pitboss.models.chat.client import ChatModel
    from pitboss.models.native.client import AnthropicModel, BedrockModel, GoogleModel, ResponsesModel
    from pitboss.models.native.responses_models import needs_responses
    from pitboss.models.openai_client import OpenAIModel

    timeout_s = _or_of_family(settings.model_timeout_s, PLAIN.timeout_s, family_limits(model_route.model).timeout_s)
    name, provider, key = model_route.name, model_route.provider, model_route.key
    if key is not None:
        REDACTOR.add(key.reveal())
    options: dict[str, Any] = {
        "model": model_route.model,
        "timeout_s": timeout_s,
        "clock": stopwatch,
        "hide": REDACTOR.redact,
    }
    if provider.native:
        native = {"anthropic": AnthropicModel, "bedrock": BedrockModel, "google": GoogleModel}
        return native[provider.name](name, provider, key, **options)
    chat, responses = ChatModel(name, provider, key, **options), ResponsesModel(name, provider, key, **options)
    is_listed = provider.name in ("openai", "azure")
    return OpenAIModel(chat, responses, lambda request: is_listed and needs_responses(model_route.model, request))


def _or_of_family(setting: float, default: float, of_family: float) -> float:
    """A limit as it was set; that of the model's family where it was left at its default."""
    return of_family if setting == default else setting


def _local(workspace: Workspace, name: str) -> LocalModel:
    from pitboss.models.chat.client import ChatModel

    settings = workspace.settings
    weights = find_weights(name.partition("/")[2], workspace.home / "models")

    def connect(base_url: str) -> ModelClient:
        provider = entry("local", base_url, dialect=OWN, needs_key=False, free=True)
        timeout_s = settings.local_timeout_s
        client = ChatModel(
            name, provider, model=weights.stem, clock=stopwatch, timeout_s=timeout_s, hide=REDACTOR.redact
        )
        return Retried(client, random=unit_random(), attempts=2, deadline_s=2 * timeout_s)

    # Includes the file's size, so that cached replies are not used for another file of the same name.
    versioned_name = f"{name}#{weights.stat().st_size}"
    return LocalModel(versioned_name, LocalServer(weights, settings.local_threads), connect)


def known_price(request: BacktestRequest, model_route: Route) -> ModelPrice | None:
    """The model's price; None if the user accepted an unknown price."""
    if request.price_in is not None and request.price_out is not None:
        return flat(request.price_in, request.price_out)
    if model_route.provider.free:
        return FREE
    model_price = price(model_route.provider.prices, model_route.model, SystemClock().now())
    if model_price is None and not request.any_price:
        similar = similar_model(model_route.provider.prices, model_route.model)
        otherwise = "add --price-in and --price-out (USD per million tokens), or --yes to run without a price"
        hint = f"did you mean {model_route.provider.name}/{similar}? Otherwise {otherwise}" if similar else otherwise
        raise UserError(f"the price of {model_route.name} is unknown", hint)
    return model_price


_SHARED_CALLS: WeakKeyDictionary[Database, SharedCalls] = WeakKeyDictionary()


def _shared_calls(database: Database) -> SharedCalls:
    """The calls under way of all runs in this process that share one database."""
    return _SHARED_CALLS.setdefault(database, SharedCalls())


@cache
def _limiter(rpm: int, tpm: int) -> Limiter:
    started_at, started_s = SystemClock().now(), stopwatch()

    def now() -> Instant:
        """A clock that never goes back, so that a clock that is set back cannot cause a long wait."""
        return started_at + int((stopwatch() - started_s) * SECOND_MS)

    return Limiter(now, rpm=rpm or None, tpm=tpm or None)


def limiter(settings: Settings) -> Limiter:
    """The limiter of this process: all runs share a provider's limits."""
    return _limiter(settings.model_rpm, settings.model_tpm)


TRIAL_TOOL = ToolSpec(
    "answer",
    "Say that you can hear me.",
    {
        "type": "object",
        "additionalProperties": False,
        "required": ["heard"],
        "properties": {"heard": {"type": "boolean", "description": "true"}},
    },
)


@dataclass(frozen=True, slots=True)
class BareModel:
    """A model that belongs to no run: no cache, no shared rate limits, nothing stored. One call is one attempt unless it is local."""

    client: ModelClient
    price: ModelPrice | None
    forcing: Literal["call", "schema"]
    host: str
    is_local: bool = False


async def open_bare(stack: AsyncExitStack, workspace: Workspace, name: str) -> BareModel:
    """Connect a language model by its name. Everything that is opened is closed with the stack."""
    from pitboss.models import http_pool

    catalog_entry = catalog.describe(name)
    if not catalog_entry.is_model or name.startswith(f"{catalog.REPLAY}/"):
        raise UserError(f"{name} is a program or a replay, not a language model", "name a language model instead")
    await stack.enter_async_context(http_pool.opened())
    if name.startswith(f"{catalog.LOCAL}/"):
        local_model = _local(workspace, name)
        stack.callback(local_model.close)
        return BareModel(local_model, FREE, "schema", "this machine", is_local=True)
    model_route = route_of(workspace, name)
    provider = model_route.provider
    model_price = FREE if provider.free else price(provider.prices, model_route.model, workspace.now())
    forcing = "call" if provider.native or provider.forces() else "schema"
    return BareModel(open_client(model_route, workspace.settings), model_price, forcing, provider.host)


async def try_model(workspace: Workspace, name: str) -> dict[str, Any]:
    """Send one small request to a model and report whether it replies, its latency and its cost.

    Also reports whether it obeys a forced tool call. Nothing is stored.
    """
    async with AsyncExitStack() as stack:
        bare = await open_bare(stack, workspace, name)
        client = bare.client if bare.is_local else retried(bare.client, workspace.settings)
        request = ModelRequest(
            "You are being tested.",
            (Message("user", "Can you hear me? Answer with heard = true."),),
            (TRIAL_TOOL,),
            TRIAL_TOOL.name,
            {"max_tokens": 256},
            bare.forcing,
        )
        reply = await Priced(client, bare.price, workspace.now).complete(request)
    replies = [call.arguments for call in reply.calls if call.name == TRIAL_TOOL.name] or [reply.text]
    return {
        "model": name,
        "answered_as": reply.model,
        "host": bare.host,
        "forced_by": "tool call" if bare.forcing == "call" else "schema",
        "kept_to_it": "heard" in replies[0],
        "latency_ms": round(reply.latency_ms, 1),
        "input_tokens": reply.usage.input_tokens,
        "output_tokens": reply.usage.output_tokens,
        "price_known": bare.price is not None,
        "cost_usd": None if reply.cost_usd is None else float(reply.cost_usd),
        "problem": reply.problem,
    }
