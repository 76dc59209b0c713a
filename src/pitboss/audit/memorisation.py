"""The memorisation report: whether a model has memorised a range of the past, and the effect on its results.

Three tests: anonymous windows that the model is asked to identify, open and blind runs compared, and both before and
after the training cutoff. Everything uses the workspace as any run does: replies are cached and never paid for twice,
runs are ordinary runs, and an interrupted report continues where it stopped.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import date
from decimal import Decimal
from typing import Any

from pitboss import __version__
from pitboss.audit import blind_comparison, recognition
from pitboss.audit.blind_comparison import ComparedDays, DailyResults, Split
from pitboss.audit.recognition import Exam, RecognitionAnswer, RecognitionResult
from pitboss.bootstrap import decider_source
from pitboss.bootstrap.model_stack import ModelConnection
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import RunCancelled, TransientError, UserError
from pitboss.core.instant import DAY_MS, INTERVALS, interval_ms
from pitboss.core.money import ZERO
from pitboss.data.feed import load_market
from pitboss.models import catalog, cutoffs
from pitboss.models.cutoffs import Cutoff
from pitboss.runs import run as runner
from pitboss.runs.charts import Charts
from pitboss.runs.stored import request_of
from pitboss.runs.venues import venue_of
from pitboss.sim.prepared_run import PreparedRun
from pitboss.sim.request import BacktestRequest
from pitboss.sim.watch import Watch
from pitboss.skill.digest import skill_digest
from pitboss.skill.load import read_skill
from pitboss.store.runs import Run

MAX_ASSETS = 8
CONCURRENT_WINDOWS = 8
"""Concurrent window requests; the provider's own limits apply in addition."""
RECOGNITION = "naming"
"""Stored with the temporary run of the window requests."""
ENDED = ("complete", "cancelled", "error")
_NOT_COMPARED = frozenset(
    ("skill", "max_cost_usd", "price_in", "price_out", "any_price", "speculate", "max_waste_pct", "disguise")
)
MAX_RUNS = 10_000
"""Maximum number of stored runs that are searched for reusable ones."""


@dataclass(frozen=True, slots=True)
class MemorisationRequest:
    """The options of a report. Without windows nothing is identified; without repeats nothing is run."""

    request: BacktestRequest
    windows: int = 40
    repeats: int = 3
    cutoff: date | None = None


@dataclass(slots=True)
class MemorisationReport:
    """The results so far. `partial` says why the report ended early."""

    options: MemorisationRequest
    cutoff: Cutoff
    synthetic: bool = False
    ticks: int = 0
    left_out: tuple[str, ...] = ()
    """Tools of the skill that neither side has, because a blind run cannot have them."""
    not_compared: str = ""
    """Why there are no pairs of runs, if they were asked for."""
    news: bool = False
    exam: Exam | None = None
    recognition: RecognitionResult | None = None
    opened: list[DailyResults] = field(default_factory=list[DailyResults])
    blinded: list[DailyResults] = field(default_factory=list[DailyResults])
    comparison: ComparedDays | None = None
    split: Split | None = None
    requests_sent: int = 0
    """Window requests sent to the provider; the others were answered from the cache."""
    cost_usd: Decimal | None = ZERO
    reused: int = 0
    partial: str = ""

    @property
    def model(self) -> str:
        return self.options.request.source

    @property
    def side(self) -> cutoffs.Side:
        """The position of the range relative to the cutoff."""
        return self.cutoff.side(self.options.request.from_at, self.options.request.to_at)


def begin(workspace: Workspace, options: MemorisationRequest) -> tuple[MemorisationReport, PreparedRun]:
    """Validate the options before anything is requested, stored or paid."""
    venue = venue_of(options.request.skill)
    not_compared = (
        "" if venue.can_be_blind or not options.repeats else f"runs of the {venue.name} venue cannot be blind"
    )
    if not_compared:
        if not options.windows:
            raise UserError(not_compared, "leave --windows out: they need no blind runs")
        options = replace(options, repeats=0)
    options, left_out = with_equal_tools(options)
    request = options.request
    if not decider_source.is_model(request) or request.source.startswith(f"{catalog.REPLAY}/"):
        raise UserError(
            f"{request.source} was not trained on anything: it has no memory to test",
            "name a language model with --model, such as groq/llama-3.3-70b-versatile",
        )
    cutoff = cutoffs.cutoff_of(request.source, options.cutoff or workspace.settings.model_cutoffs)
    decider_source.check(workspace, request)
    prepared = venue.prepare(request, workspace.lake, workspace.settings)
    report = MemorisationReport(options, cutoff, prepared.synthetic, len(prepared.tick_at), left_out)
    report.not_compared = not_compared
    report.news = venue.charts(prepared.skill).news and any(market.news for market in prepared.markets())
    return report, prepared


def with_equal_tools(options: MemorisationRequest) -> tuple[MemorisationRequest, tuple[str, ...]]:
    """The options without the tools that only open runs could have, which would distort the comparison."""
    plain = dict(options.request.skill)
    venue = venue_of(plain)
    skill, registry = read_skill(plain, venue.skill_type()), venue.tools()
    servers = [f"MCP server {server.id}" for server in skill.mcp_servers]
    missing = (*servers, *(name for name in skill.tool_names if registry[name].reach != "as_of"))
    if not missing or not options.repeats:
        return options, ()
    tools = dict(plain["tools"])
    tools["mcp_servers"] = []
    tools["built_in"] = [name for name in tools["built_in"] if name not in missing]
    return replace(options, request=replace(options.request, skill={**plain, "tools": tools})), missing


async def audit(
    workspace: Workspace,
    report: MemorisationReport,
    prepared: PreparedRun,
    watch: Watch,
    on_start: Callable[[str], None] = lambda run_id: None,
) -> None:
    """Fill a report. Results obtained before an exception stay in it."""
    options = report.options
    work = [options.windows, *[report.ticks] * (2 * options.repeats)]
    steps = _steps(work, watch)
    if options.windows:
        await _recognise(workspace, report, prepared, next(steps))
    else:
        next(steps)
    stored_runs = reusable_runs(workspace, prepared) if options.repeats else []
    for repeat in range(options.repeats):
        for is_blind, results in ((False, report.opened), (True, report.blinded)):
            request = replace(options.request, seed=options.request.seed + repeat, repeat=repeat, blind=is_blind)
            stored = _matching_run(stored_runs, replace(request, data_venue=prepared.data_venue))
            run = await _run(workspace, report, request, stored, next(steps), on_start)
            results.append(_daily_results(workspace, run))
        compare_pairs(report)


def compare_pairs(report: MemorisationReport) -> None:
    """Compare the complete pairs."""
    count, seed = len(report.blinded), report.options.request.seed
    opened, blinded = report.opened[:count], report.blinded
    report.comparison = blind_comparison.compare(opened, blinded, seed)
    if report.side == "across" and report.cutoff.ends_at is not None:
        report.split = blind_comparison.split(opened, blinded, report.cutoff.ends_at, seed)


def _steps(work: Sequence[int], watch: Watch) -> Iterator[Watch]:
    """A `Watch` for each part of the work that reports progress on the total."""
    total, finished = max(1, sum(work)), 0
    for part in work:

        def progress(share: float, before: int = finished, part: int = part) -> None:
            watch.progress((before + share * part) / total)

        yield Watch(progress, watch.stop, watch.message)
        finished += part


# Recognition ----------------------------------------------------------------------------------------------------------


async def _recognise(workspace: Workspace, report: MemorisationReport, prepared: PreparedRun, watch: Watch) -> None:
    request, skill = report.options.request, prepared.skill
    charts = venue_of(request.skill).charts(skill)
    symbols = targets(workspace, prepared, charts)
    intervals = [interval for interval, _ in charts.tables]
    market = load_market(
        workspace.lake, prepared.data_venue, symbols, intervals, request.to_at, from_at=request.from_at, with_news=False
    )
    exam = recognition.make_exam(
        market,
        charts,
        skill.every_ms,
        symbols,
        request.from_at,
        request.to_at,
        report.options.windows,
        request.seed,
    )
    report.exam = exam
    with _recognition_run(workspace, prepared) as run_id:
        async with AsyncExitStack() as stack:
            connection = await decider_source.open_model(stack, workspace, _within_budget(report), skill, run_id)
            assert connection is not None
            try:
                guesses = await _ask(workspace, connection, exam, skill.model_settings.request(), watch)
            finally:
                report.requests_sent = 0 if connection.cached is None else connection.cached.calls
                unpriced = connection.budget is not None and connection.budget.unpriced
                _add_cost(report, None if unpriced else connection.paid_usd)
    report.recognition = recognition.judge(exam, guesses, report.cutoff.ends_at if report.side == "across" else None)


def targets(workspace: Workspace, prepared: PreparedRun, charts: Charts) -> list[str]:
    """The assets of the windows: the skill's, and others of the data with bars over the complete range."""
    request, lake, venue = prepared.request, workspace.lake, prepared.data_venue
    bars_ms = interval_ms(charts.tables[0][0])

    def covers(symbol: str) -> bool:
        return any(
            extent is not None and extent[0] <= request.from_at and extent[1] + INTERVALS[interval] >= request.to_at
            for interval in lake.intervals(venue, symbol)
            if bars_ms % INTERVALS[interval] == 0
            for extent in [lake.extent(venue, symbol, interval)]
        )

    own = [symbol for symbol in charts.symbols if covers(symbol)]
    additional = [symbol for symbol in sorted(lake.symbols(venue)) if symbol not in own and covers(symbol)]
    return sorted([*own, *additional[: max(0, MAX_ASSETS - len(own))]])


@contextmanager
def _recognition_run(workspace: Workspace, prepared: PreparedRun) -> Iterator[str]:
    """A temporary run without ticks that carries the budget of the window requests.

    It is deleted afterwards; the cached replies stay. One left behind by a killed process is deleted by the next report
    after a day.
    """
    for run in workspace.runs.listing(MAX_RUNS, "running").runs:
        if run.params.get("audit") == RECOGNITION and workspace.now() - (run.heartbeat_at or 0) > DAY_MS:
            workspace.runs.delete(run.id, force=True)
    skill = prepared.skill
    saved = workspace.skills.save(skill.name, skill_digest(skill), codec.dumps(skill.normal()))
    params = runner.params_of(prepared) | {"audit": RECOGNITION}
    run_id = workspace.runs.create(saved.id, saved.version, prepared.request.source, params, prepared.data_digest)
    workspace.runs.claim(run_id, into="running")
    try:
        yield run_id
    finally:
        workspace.runs.delete(run_id, force=True)


async def _ask(
    workspace: Workspace, connection: ModelConnection, exam: Exam, settings: Mapping[str, Any], watch: Watch
) -> list[RecognitionAnswer]:
    """Send every question once, several at a time. Repeated failures in a row end it, as they end a run."""
    pending = list(range(len(exam.questions)))
    guesses: list[RecognitionAnswer] = [RecognitionAnswer(failed=True)] * len(pending)
    in_a_row = 0

    async def work() -> None:
        nonlocal in_a_row
        while pending:
            if watch.stop():
                raise RunCancelled
            index = pending.pop(0)
            question = recognition.request(exam, exam.questions[index], settings, connection.policy.forcing)
            try:
                guesses[index] = recognition.read_answer(await connection.model.complete(question), exam)
                in_a_row = 0
            except TransientError:
                in_a_row += 1
                if in_a_row >= workspace.settings.model_errors:
                    raise
            watch.progress(1 - len(pending) / len(guesses))

    async def guarded() -> None:
        try:
            await work()
        except BaseException:
            pending.clear()  # the other workers finish their current request, which is paid for, and stop
            raise

    # a local model answers one request at a time
    workers = 1 if connection.model.name.startswith(f"{catalog.LOCAL}/") else CONCURRENT_WINDOWS
    results = await asyncio.gather(*(guarded() for _ in range(min(workers, len(pending)))), return_exceptions=True)
    for error in results:
        if isinstance(error, BaseException):
            raise error
    return guesses


# Runs -----------------------------------------------------------------------------------------------------------------


async def _run(
    workspace: Workspace,
    report: MemorisationReport,
    request: BacktestRequest,
    stored: Run | None,
    watch: Watch,
    on_start: Callable[[str], None],
) -> Run:
    """The run of a request: a stored complete one, a stored one that is resumed, or a new one."""
    if stored is not None and stored.status == "complete":
        report.reused += 1
        watch.progress(1.0)
        return stored
    limit = _within_budget(report).max_cost_usd
    cost_before = ZERO if stored is None or stored.cost_usd.is_nan() else stored.cost_usd
    run_ids: list[str] = []

    def add_run(run_id: str) -> None:
        run_ids.append(run_id)
        on_start(run_id)

    try:
        if stored is None:
            return await runner.start(workspace, replace(request, max_cost_usd=limit), watch, add_run)
        add_run(stored.id)
        return await runner.resume(workspace, stored.id, watch, None if limit is None else limit + cost_before)
    finally:
        if run_ids:
            cost = workspace.runs.get(run_ids[0]).cost_usd
            _add_cost(report, None if cost.is_nan() else cost - cost_before)


def reusable_runs(workspace: Workspace, prepared: PreparedRun) -> list[Run]:
    """Stored runs of the same skill, model, data and version that have ended."""
    digest, model = skill_digest(prepared.skill), prepared.request.source
    return [
        run
        for run in workspace.runs.listing(MAX_RUNS).runs
        if (run.model, run.data_digest) == (model, prepared.data_digest)
        and (run.params.get("skill_digest"), run.params.get("version")) == (digest, __version__)
        and run.status in ENDED
        and not {"forked_from", "audit"} & run.params.keys()
    ]


def _matching_run(runs: Sequence[Run], request: BacktestRequest) -> Run | None:
    """The stored run of exactly this request: preferably a complete one, else one to resume."""
    comparable = _comparable(request)
    matches = [run for run in runs if _comparable(request_of(run)) == comparable]
    return next((run for run in matches if run.status == "complete"), matches[0] if matches else None)


def _comparable(request: BacktestRequest) -> dict[str, Any]:
    """The fields of a request that determine its results and follow from no others. The skill is compared by digest."""
    return {each.name: getattr(request, each.name) for each in fields(request) if each.name not in _NOT_COMPARED}


def _daily_results(workspace: Workspace, run: Run) -> DailyResults:
    venue = venue_of(run.params["skill"])
    outcome = runner.ledger_of(workspace, run).outcome(*venue.span(run.params), request_of(run).equity_usd)
    return blind_comparison.daily_results(run.id, outcome, venue.closed_trades(outcome.receipts))


# Money ----------------------------------------------------------------------------------------------------------------


def _within_budget(report: MemorisationReport) -> BacktestRequest:
    """The request with the remaining budget."""
    request = report.options.request
    if request.max_cost_usd is None:
        return request
    return replace(request, max_cost_usd=max(ZERO, request.max_cost_usd - (report.cost_usd or ZERO)))


def _add_cost(report: MemorisationReport, usd: Decimal | None) -> None:
    report.cost_usd = None if usd is None or report.cost_usd is None else report.cost_usd + usd
