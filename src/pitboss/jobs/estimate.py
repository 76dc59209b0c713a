"""The estimated cost of runs, before they are enqueued: a figure, a range around it, and the basis of both.

Calls × tokens × price. The size of a prompt is measured on the skill's own prompt at the first tick of the range. Calls per
tick and the length of replies come from stored runs of the same skill and model, or, where there are none, from stated
assumptions. A pilot executes a few ticks with the real model and extrapolates. Nothing is enqueued here; spending limits are
in `store/budgets.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Decimal
from typing import Any

from pitboss.bootstrap import decider_source
from pitboss.bootstrap.model_stack import new_endpoint, route_of
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.intent import Usage
from pitboss.core.money import ZERO, exact
from pitboss.models import catalog
from pitboss.models.families import first_limit
from pitboss.models.price_list import price
from pitboss.models.prices import FREE, ModelPrice, flat
from pitboss.models.token_bounds import TOOLS_TOKENS
from pitboss.report.figures import plural
from pitboss.runs.preview import CHARS_PER_TOKEN
from pitboss.runs.run import start
from pitboss.runs.stored import request_of
from pitboss.runs.tick_cost import ANSWER_TOKENS, Three, calls_per_tick
from pitboss.runs.venues import period_ms, venue_of
from pitboss.sim.course import ticks_between
from pitboss.sim.request import BacktestRequest
from pitboss.store.runs import Run

PILOT_TICKS = 5
VARIANTS = 6
"""How many different skills of a study are measured; the mean stands for the others."""
GROWTH = (Decimal("0.95"), Decimal("1.15"), Decimal("1.6"))
"""Size of later prompts relative to the first, which has no position, no memory and little history: low, usual, high."""
ASLEEP = (Decimal("0.1"), Decimal("0.5"), Decimal(1))
"""Share of ticks at which a skill with wake conditions calls the model: low, usual, high."""
PAST = (Decimal("0.7"), Decimal(1), Decimal("1.5"))
PAST_RUNS = 20
CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Estimate:
    """The expected cost in USD with its lower and upper end. None if the price of a model is unknown.

    `basis` explains the figure in sentences; `calls` is the expected number of model calls.
    """

    usd: Decimal | None
    lo: Decimal | None
    hi: Decimal | None
    basis: tuple[str, ...]
    runs: int = 0
    calls: int = 0
    each: Mapping[str, Decimal] = field(default_factory=dict[str, Decimal])
    """The worst case of one tick, by model."""
    ahead_usd: Decimal = ZERO
    """The part of `hi` that is for asking ahead: what unused replies may cost."""
    call: Mapping[str, Decimal] = field(default_factory=dict[str, Decimal])
    """The worst case of one call, by model: a call is made only while that much is left."""

    def plain(self) -> dict[str, Any]:
        """The estimate as JSON values."""
        amounts = {"usd": self.usd, "lo": self.lo, "hi": self.hi}
        rounded = {name: None if value is None else float(round(value, 6)) for name, value in amounts.items()}
        return {
            **rounded,
            "basis": list(self.basis),
            "runs": self.runs,
            "calls": self.calls,
            "ahead_usd": float(round(self.ahead_usd, 6)),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Estimate":
        """The inverse of `plain`, for display: `each` and `call`, which a reservation needs, are not part of it."""
        usd, lo, hi = (None if plain[name] is None else Decimal(str(plain[name])) for name in ("usd", "lo", "hi"))
        ahead_usd = Decimal(str(plain.get("ahead_usd", 0)))
        return cls(usd, lo, hi, tuple(plain["basis"]), plain["runs"], plain["calls"], ahead_usd=ahead_usd)


@dataclass(frozen=True, slots=True)
class _Group:
    """Requests for the same model at the same price."""

    model: str
    price: ModelPrice | None
    requests: list[BacktestRequest]


@exact
def estimate(
    workspace: Workspace, requests: Sequence[BacktestRequest], per_tick: Mapping[str, Decimal] | None = None
) -> Estimate:
    """The cost of all these requests. `per_tick` is the cost of a tick in a pilot, by model."""
    total: Three | None = (ZERO, ZERO, ZERO)
    basis, calls, ahead_usd = list[str](), ZERO, ZERO
    each, call = dict[str, Decimal](), dict[str, Decimal]()
    groups = _groups(workspace, [request for request in requests if decider_source.may_cost(request)])
    free = len(requests) - sum(len(group.requests) for group in groups)
    if free:
        basis.append(
            f"{free} {_runs(free)} on programs, files or this machine's models {'costs' if free == 1 else 'cost'} nothing"
        )
    for group in groups:
        if group.price is None:
            basis.append(f"{group.model}: its price is unknown, so no sum can be given")
            total = None
            continue
        prompt_size = _prompt_size(workspace, group.requests)
        amounts, group_calls, sentences = _of_group(workspace, group, (per_tick or {}).get(group.model), prompt_size)
        # a study may vary the price of a model: what is reserved covers the highest
        call[group.model] = max(call.get(group.model, ZERO), _worst_call(group, prompt_size[0]))
        most_usd = _limits(group.requests)
        if most_usd is not None and amounts[2] > most_usd:
            sentences.append(f"{group.model}: at most ${most_usd} by --max-cost-usd")
            amounts = (min(amounts[0], most_usd), min(amounts[1], most_usd), most_usd)
        basis += sentences
        calls += group_calls
        waste = _group_waste(group)
        ahead_usd += amounts[2] * waste / (1 + waste)
        tick_usd = amounts[2] / max(1, sum(_ticks(request) for request in group.requests))
        each[group.model] = max(each.get(group.model, ZERO), tick_usd)
        if total is not None:
            total = (total[0] + amounts[0], total[1] + amounts[1], total[2] + amounts[2])
    if groups:
        basis.append("replies stored by earlier runs are not paid again, so it may be less")
    lo, usd, hi = total if total is not None else (None, None, None)
    return Estimate(usd, lo, hi, tuple(basis), len(requests), int(calls), each, ahead_usd, call)


@exact
def worst_case(estimated: Estimate, request: BacktestRequest) -> Decimal:
    """The highest cost of one run of an estimated batch: the amount to reserve for it."""
    worst = estimated.each.get(request.source, ZERO) * _ticks(request)
    worst += 2 * estimated.call.get(request.source, ZERO)
    return worst.quantize(CENT, ROUND_CEILING)


@exact
def limited(workspace: Workspace, request: BacktestRequest, estimated: Estimate) -> BacktestRequest:
    """The request with a limit on its cost if the user has a daily budget: what is reserved is all that a run may spend.

    A limit of its own stays. Without a known price there is no worst case, and no limit could be kept.
    """
    if not workspace.settings.daily_usd or request.max_cost_usd is not None or not decider_source.may_cost(request):
        return request
    worst = worst_case(estimated, request)
    return replace(request, max_cost_usd=worst) if worst else request


def limited_run(workspace: Workspace, run: Run) -> BacktestRequest:
    """The request of a stored run, with the limit on its cost that a daily budget needs."""
    request = request_of(run)
    if not workspace.settings.daily_usd or request.max_cost_usd is not None or not decider_source.may_cost(request):
        return request
    return limited(workspace, request, estimate(workspace, [request]))


def needs_consent(estimated: Estimate, above_usd: Decimal) -> bool:
    """Whether the user has to agree before this much is spent."""
    return estimated.usd is not None and estimated.usd > above_usd


async def pilot(workspace: Workspace, requests: Sequence[BacktestRequest]) -> dict[str, Decimal]:
    """Execute a few ticks with each model, one run each, and return the cost of a tick. Runs and replies stay stored."""
    per_tick: dict[str, Decimal] = {}
    for group in _groups(workspace, [request for request in requests if decider_source.may_cost(request)]):
        request = group.requests[0]
        end_at = _first_tick(request) + PILOT_TICKS * period_ms(request.skill)
        short = replace(request, to_at=min(request.to_at, end_at), speculate="0")
        run = await start(workspace, limited(workspace, short, estimate(workspace, [short])))
        cost_usd = run.cost_usd + run.saved_usd
        if run.ticks and not cost_usd.is_nan():
            per_tick[group.model] = cost_usd / run.ticks
    return per_tick


def _groups(workspace: Workspace, requests: Sequence[BacktestRequest]) -> list[_Group]:
    groups: dict[tuple[object, ...], _Group] = {}
    for request in requests:
        key = (request.source, request.price_in, request.price_out)
        if key not in groups:
            groups[key] = _Group(request.source, price_of(workspace, request), [])
        groups[key].requests.append(request)
    return list(groups.values())


def price_of(workspace: Workspace, request: BacktestRequest) -> ModelPrice | None:
    """The price of a request's model, or None if it is unknown."""
    if request.price_in is not None and request.price_out is not None:
        return flat(request.price_in, request.price_out)
    if request.source.partition("/")[0] in (catalog.LOCAL, catalog.REPLAY):
        return FREE
    route = route_of(workspace, request.source)
    return FREE if route.provider.free else price(route.provider.prices, route.model, workspace.now())


def _worst_call(group: _Group, tokens: int) -> Decimal:
    """As the budget of a run computes it: one token per byte, and the longest allowed reply."""
    assert group.price is not None
    most = max(first_limit(request.source, request.skill.get("model_settings") or {}) for request in group.requests)
    return group.price.most(int(tokens * CHARS_PER_TOKEN * GROWTH[2]) + TOOLS_TOKENS, most)


def _of_group(
    workspace: Workspace, group: _Group, per_tick: Decimal | None, prompt_size: tuple[int, str]
) -> tuple[Three, Decimal, list[str]]:
    """Low, usual and high USD of one model's runs, the expected number of calls, and the basis in sentences."""
    assert group.price is not None
    ticks = sum(_ticks(request) for request in group.requests)
    count = len(group.requests)
    waste = _group_waste(group)
    head = f"{group.model}: {plural(count, 'run')}, {plural(ticks, 'tick')}"
    if per_tick is not None:
        basis = f"{head} at ${per_tick:.6f} as {PILOT_TICKS} ticks of a pilot cost"
        return _times(PAST, ticks * per_tick, waste), Decimal(ticks), [basis, *_waste_basis(waste)]
    past = _past(workspace, group)
    if past is not None:
        runs, tick_usd = past
        basis = f"{head} at ${tick_usd:.6f} as {runs} earlier {_runs(runs)} of this skill and model cost"
        return _times(PAST, ticks * tick_usd, waste), Decimal(ticks), [basis, *_waste_basis(waste)]
    tokens, measured = prompt_size
    steps, asleep, lessons = (
        calls_per_tick([request.skill for request in group.requests]),
        _asleep(group.requests),
        _lessons(group.requests),
    )
    costs: list[Decimal] = []
    for case in range(3):
        usage = Usage(int(tokens * GROWTH[case]), ANSWER_TOKENS[case])
        costs.append(ticks * asleep[case] * steps[case] * lessons[case] * group.price.cost(usage))
    sentences = [
        f"{head}, {tokens:,} tokens a prompt ({measured})",
        f"{group.model}: {steps[1]:.1f} calls a tick (from {steps[0]:.1f} to {steps[2]:.1f}), answers of "
        f"{ANSWER_TOKENS[1]} tokens (from {ANSWER_TOKENS[0]} to {ANSWER_TOKENS[2]}): assumed, as it has not run here yet",
    ]
    if asleep[0] < 1:
        sentences.append(
            "the skill sleeps between its wake conditions: half of its ticks are counted (from 10 % to all)"
        )
    if lessons[1] > 1:
        sentences.append("it writes lessons about its trades: 2 % more calls (up to 10 %)")
    amounts = (costs[0], costs[1], costs[2] * (1 + waste))
    return amounts, ticks * asleep[1] * steps[1], [*sentences, *_waste_basis(waste)]


def _limits(requests: Sequence[BacktestRequest]) -> Decimal | None:
    """What the requests may cost together by their own limits; None if one of them has none."""
    limits = [request.max_cost_usd for request in requests]
    return None if None in limits else sum((limit for limit in limits if limit is not None), ZERO)


def _times(shares: Three, usd: Decimal, waste: Decimal) -> Three:
    return usd * shares[0], usd * shares[1], usd * shares[2] * (1 + waste)


def _prompt_size(workspace: Workspace, requests: Sequence[BacktestRequest]) -> tuple[int, str]:
    """The tokens of a prompt, and how they were measured."""
    kinds: dict[str, BacktestRequest] = {}
    for request in requests:
        kinds.setdefault(codec.digest(codec.number_fragments(dict(request.skill))), request)
    every = list(kinds.values())
    sample = every[:: max(1, len(every) // VARIANTS)][:VARIANTS]
    sizes = [_tokens(workspace, request) for request in sample]
    of = f"{len(sample)} of {len(every)} skills" if len(every) > 1 else "the skill"
    return sum(sizes) // len(sizes), f"measured on the prompt of {of} at the first tick, 4 characters a token"


def _tokens(workspace: Workspace, request: BacktestRequest) -> int:
    preview = venue_of(request.skill).preview(request, workspace.lake, workspace.settings, _first_tick(request))
    return preview.tokens_estimate


def _first_tick(request: BacktestRequest) -> int:
    period = period_ms(request.skill)
    return -(-request.from_at // period) * period


def _ticks(request: BacktestRequest) -> int:
    return len(ticks_between(request.from_at, request.to_at, period_ms(request.skill)))


def _asleep(requests: Sequence[BacktestRequest]) -> Three:
    sleeps = any((request.skill.get("schedule") or {}).get("wake_when") for request in requests)
    return ASLEEP if sleeps else (Decimal(1), Decimal(1), Decimal(1))


def _lessons(requests: Sequence[BacktestRequest]) -> Three:
    for request in requests:
        context: Any = request.skill.get("context") or {}
        if (context.get("memory") or {}).get("enabled"):
            return Decimal(1), Decimal("1.02"), Decimal("1.1")
    return Decimal(1), Decimal(1), Decimal(1)


def _group_waste(group: _Group) -> Decimal:
    """The most that unused replies may cost, relative to the used ones."""
    return max(ZERO if request.speculate == "0" else request.max_waste_pct / 100 for request in group.requests)


def _waste_basis(waste: Decimal) -> list[str]:
    return [f"asking ahead may cost up to {waste * 100:.0f} % more"] if waste else []


def _past(workspace: Workspace, group: _Group) -> tuple[int, Decimal] | None:
    """The number of finished runs of the same skill, model and price, and the cost of a tick in them, stored replies included."""
    request = group.requests[0]
    name, prices = str(request.skill.get("name", "")), (request.price_in, request.price_out)
    endpoint = new_endpoint(workspace, request)
    model = group.model if endpoint is None else endpoint.name
    finished = workspace.runs.listing(PAST_RUNS, "complete", model=model, skill=name).runs
    alike = [run for run in finished if run.ticks and _given_prices(run) == prices]
    priced = [run for run in alike if not run.cost_usd.is_nan() and run.cost_usd + run.saved_usd > 0]
    if not priced:
        return None
    total_usd = sum((run.cost_usd - run.wasted_usd + run.saved_usd for run in priced), ZERO)
    return len(priced), total_usd / sum(run.ticks for run in priced)


def _given_prices(run: Run) -> tuple[Decimal | None, Decimal | None]:
    """The prices that a run was given instead of those of the table."""
    price_in, price_out = (run.params.get(name) for name in ("price_in", "price_out"))
    return None if price_in is None else Decimal(price_in), None if price_out is None else Decimal(price_out)


def _runs(count: int) -> str:
    return "run" if count == 1 else "runs"


def require_consent(estimated: Estimate, above_usd: Decimal, yes: bool, ask: Callable[[], bool] | None) -> None:
    """Raise unless the cost is at most `above_usd`, or `yes` is given, or `ask` returns the consent of the user."""
    if yes or not needs_consent(estimated, above_usd) or (ask is not None and ask()):
        return
    raise UserError(
        f"this may cost ${estimated.usd:.2f} (from ${estimated.lo:.2f} to ${estimated.hi:.2f}); more than ${above_usd} "
        "needs your consent: --yes",
        "give --yes to go ahead, or limit the cost with --max-cost-usd",
    )
