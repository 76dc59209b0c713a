"""The memorisation report: does a model know this past by heart, and what does that do to its results?

Three looks at the same question: windows without a name that the model is asked to name, runs with and without names side
by side, and both on either side of the training cutoff. Everything goes through a workspace as any run does: answers are
kept and never paid for twice, runs are ordinary runs, and who is stopped goes on where it was.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any

from pitboss import __version__
from pitboss.audit import blind_comparison as pairs
from pitboss.audit import recognition as naming
from pitboss.audit.blind_comparison import ComparedDays, DailyResults, Split
from pitboss.audit.recognition import Exam, RecognitionAnswer, RecognitionResult
from pitboss.bootstrap import decider_source as gateway
from pitboss.bootstrap.model_stack import ModelConnection
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import RunCancelled, TransientError, UserError
from pitboss.core.instant import DAY_MS, INTERVALS, Instant, interval_ms
from pitboss.core.money import ZERO
from pitboss.data.feed import load_market
from pitboss.models import catalog, cutoffs
from pitboss.models.cutoffs import Cutoff
from pitboss.runs import run as runner
from pitboss.runs.stored import request_of
from pitboss.sim.watch import Watch
from pitboss.skill.digest import normal, skill_digest
from pitboss.store.runs import Run
from pitboss.venues.perp.assembly import Assembly, PerpRequest, assemble, read_skill
from pitboss.venues.perp.blind import setup as blind

MOST_ASSETS = 8
MANY = 8
"""Windows that are asked about at the same time; the provider's own limits come on top."""
NAMING = "naming"
ENDED = ("complete", "cancelled", "error")
MOST_RUNS = 10_000
"""So far back is looked for runs that were made before."""


@dataclass(frozen=True, slots=True)
class MemorisationRequest:
    """What was asked for. No windows: nothing is to be named; no repeats: nothing is to be run."""

    request: PerpRequest
    windows: int = 40
    repeats: int = 3
    cutoff: date | None = None


@dataclass(slots=True)
class MemorisationReport:
    """What has come of it so far. `partial` says why it ends early."""

    wish: MemorisationRequest
    cutoff: Cutoff
    synthetic: bool = False
    ticks: int = 0
    left_out: tuple[str, ...] = ()
    """Tools of the skill that neither side is given, because a blind run cannot have them."""
    news: bool = False
    exam: Exam | None = None
    named: RecognitionResult | None = None
    opened: list[DailyResults] = field(default_factory=list[DailyResults])
    blinded: list[DailyResults] = field(default_factory=list[DailyResults])
    whole: ComparedDays | None = None
    split: Split | None = None
    asked: int = 0
    """Questions about windows that went to the provider; the others were answered before."""
    paid_usd: Decimal | None = ZERO
    reused: int = 0
    partial: str = ""

    @property
    def model(self) -> str:
        return self.wish.request.source

    @property
    def side(self) -> cutoffs.Side:
        """Where the range lies, seen from the cutoff."""
        return self.cutoff.side(self.wish.request.from_at, self.wish.request.to_at)


def begin(workspace: Workspace, wish: MemorisationRequest) -> tuple[MemorisationReport, Assembly]:
    """Refuse what cannot work before anything is asked, stored or paid."""
    wish, left_out = fair(wish)
    request = wish.request
    if not gateway.is_model(request) or request.source.startswith(f"{catalog.REPLAY}/"):
        raise UserError(
            f"{request.source} was not trained on anything: it has no memory to look for",
            "name a language model with --model, such as groq/llama-3.3-70b-versatile",
        )
    cutoff = cutoffs.cutoff_of(request.source, wish.cutoff or workspace.settings.model_cutoffs)
    gateway.check(workspace, request)
    assembly = assemble(request, workspace.lake, workspace.settings)
    report = MemorisationReport(wish, cutoff, assembly.synthetic, len(assembly.script.tick_at), left_out)
    report.news = bool(assembly.skill.context.news_top_k and assembly.script.market.news)
    return report, assembly


def fair(wish: MemorisationRequest) -> tuple[MemorisationRequest, tuple[str, ...]]:
    """The same wish without the tools that only its open runs could have: they would be told apart by those."""
    plain = dict(wish.request.skill)
    missing = tuple(blind.left_out(read_skill(plain)))
    if not missing or not wish.repeats:
        return wish, ()
    tools = dict(plain["tools"])
    tools["mcp_servers"] = []
    tools["built_in"] = [name for name in tools["built_in"] if name not in missing]
    return replace(wish, request=replace(wish.request, skill={**plain, "tools": tools})), missing


async def audit(
    workspace: Workspace,
    report: MemorisationReport,
    assembly: Assembly,
    watch: Watch,
    began: Callable[[str], None] = lambda run_id: None,
) -> None:
    """Fill a report. What is done before an exception stays in it."""
    wish = report.wish
    work = [wish.windows, *[report.ticks] * (2 * wish.repeats)]
    steps = _steps(work, watch)
    if wish.windows:
        await _name(workspace, report, assembly, next(steps))
    else:
        next(steps)
    known = made_before(workspace, assembly) if wish.repeats else []
    for repeat in range(wish.repeats):
        for hidden, courses in ((False, report.opened), (True, report.blinded)):
            request = replace(wish.request, seed=wish.request.seed + repeat, repeat=repeat, blind=hidden)
            found = _like(known, replace(request, data_venue=assembly.venue))
            run = await _run(workspace, report, request, found, next(steps), began)
            courses.append(_course(workspace, run))
        weigh(report)


def weigh(report: MemorisationReport) -> None:
    """Compare the pairs that are whole."""
    count, seed = len(report.blinded), report.wish.request.seed
    opened, blinded = report.opened[:count], report.blinded
    report.whole = pairs.compare(opened, blinded, seed)
    if report.side == "across" and report.cutoff.ends_at is not None:
        report.split = pairs.split(opened, blinded, report.cutoff.ends_at, seed)


def _steps(work: Sequence[int], watch: Watch) -> Iterator[Watch]:
    """A watch for each part of the work, on the bar of the whole."""
    total, done = max(1, sum(work)), 0
    for part in work:

        def progress(share: float, before: int = done, part: int = part) -> None:
            watch.progress((before + share * part) / total)

        yield Watch(progress, watch.stop, watch.told)
        done += part


# Naming ---------------------------------------------------------------------------------------------------------------


async def _name(workspace: Workspace, report: MemorisationReport, assembly: Assembly, watch: Watch) -> None:
    request, skill = report.wish.request, assembly.skill
    symbols = targets(workspace, assembly)
    intervals = [skill.context.bars_interval, *skill.context.timeframes()]
    market = load_market(
        workspace.lake, assembly.venue, symbols, intervals, request.to_at, from_at=request.from_at, with_news=False
    )
    exam = naming.make_exam(market, skill, symbols, request.from_at, request.to_at, report.wish.windows, request.seed)
    report.exam = exam
    with _payer(workspace, assembly) as run_id:
        asking = replace(assembly, request=_within(report))
        async with gateway.connected(workspace, asking, run_id) as (_, line):
            assert line is not None
            try:
                guesses = await _ask(workspace, line, exam, skill.model_settings.request(), watch)
            finally:
                report.asked = 0 if line.cached is None else line.cached.calls
                unpriced = line.budget is not None and line.budget.unpriced
                _pay(report, None if unpriced else line.paid_usd)
    report.named = naming.judge(exam, guesses, report.cutoff.ends_at if report.side == "across" else None)


def targets(workspace: Workspace, assembly: Assembly) -> list[str]:
    """The assets that windows are drawn from: the skill's, and others of the venue with bars over the whole range."""
    request, lake, venue = assembly.request, workspace.lake, assembly.venue
    wanted = interval_ms(assembly.skill.context.bars_interval)

    def covers(symbol: str) -> bool:
        return any(
            extent is not None and extent[0] <= request.from_at and extent[1] + INTERVALS[interval] >= request.to_at
            for interval in lake.intervals(venue, symbol)
            if wanted % INTERVALS[interval] == 0
            for extent in [lake.extent(venue, symbol, interval)]
        )

    own = [symbol for symbol in assembly.skill.context.sorted_symbols if covers(symbol)]
    others = [symbol for symbol in sorted(lake.symbols(venue)) if symbol not in own and covers(symbol)]
    return sorted([*own, *others[: max(0, MOST_ASSETS - len(own))]])


@contextmanager
def _payer(workspace: Workspace, assembly: Assembly) -> Iterator[str]:
    """A run that stands for the questions while they are asked, so that they have a budget and a name to be paid under.

    It has no ticks and is taken away again: the answers stay, for they belong to their questions. One that a killed
    program has left behind is taken away by the next.
    """
    for run in workspace.runs.listing(MOST_RUNS, "running").runs:
        if run.params.get("audit") == NAMING and workspace.now() - (run.heartbeat_at or 0) > DAY_MS:
            workspace.runs.delete(run.id, force=True)
    skill = assembly.skill
    saved = workspace.skills.save(skill.name, skill_digest(skill), codec.dumps(normal(skill)))
    params = runner.params_of(assembly) | {"audit": NAMING}
    run_id = workspace.runs.create(saved.id, saved.version, assembly.request.source, params, assembly.data_digest)
    workspace.runs.claim(run_id, into="running")
    try:
        yield run_id
    finally:
        workspace.runs.delete(run_id, force=True)


async def _ask(
    workspace: Workspace, line: ModelConnection, exam: Exam, settings: Mapping[str, Any], watch: Watch
) -> list[RecognitionAnswer]:
    """Every question once, some at a time. Nobody answering time after time ends it, as it ends a run."""
    left = list(range(len(exam.questions)))
    guesses: list[RecognitionAnswer] = [RecognitionAnswer(failed=True)] * len(left)
    in_a_row = 0

    async def work() -> None:
        nonlocal in_a_row
        while left:
            if watch.stop():
                raise RunCancelled
            place = left.pop(0)
            question = naming.request(exam, exam.questions[place], settings, line.forcing)
            try:
                guesses[place] = naming.read_guess(await line.model.complete(question), exam)
                in_a_row = 0
            except TransientError:
                in_a_row += 1
                if in_a_row >= workspace.settings.model_errors:
                    raise
            watch.progress(1 - len(left) / len(guesses))

    async def guarded() -> None:
        try:
            await work()
        except BaseException:
            left.clear()  # the others finish what they have asked, which is paid for, and then stop
            raise

    many = 1 if line.model.name.startswith(f"{catalog.LOCAL}/") else MANY  # this machine answers one at a time
    ended = await asyncio.gather(*(guarded() for _ in range(min(many, len(left)))), return_exceptions=True)
    for error in ended:
        if isinstance(error, BaseException):
            raise error
    return guesses


# Runs -----------------------------------------------------------------------------------------------------------------


async def _run(
    workspace: Workspace,
    report: MemorisationReport,
    request: PerpRequest,
    found: Run | None,
    watch: Watch,
    began: Callable[[str], None],
) -> Run:
    """The run of a request: the one that was made before, the one that was stopped, or a new one."""
    if found is not None and found.status == "complete":
        report.reused += 1
        watch.progress(1.0)
        return found
    limit = _within(report).max_cost_usd
    paid_before = ZERO if found is None or found.cost_usd.is_nan() else found.cost_usd
    paying: list[str] = []

    def told(run_id: str) -> None:
        paying.append(run_id)
        began(run_id)

    try:
        if found is None:
            return await runner.start(workspace, replace(request, max_cost_usd=limit), watch, told)
        told(found.id)
        return await runner.resume(workspace, found.id, watch, None if limit is None else limit + paid_before)
    finally:
        if paying:
            cost = workspace.runs.get(paying[0]).cost_usd
            _pay(report, None if cost.is_nan() else cost - paid_before)


def made_before(workspace: Workspace, assembly: Assembly) -> list[Run]:
    """Stored runs of the same skill and model on the same data by the same version, that nobody works on."""
    digest, model = skill_digest(assembly.skill), assembly.request.source
    return [
        run
        for run in workspace.runs.listing(MOST_RUNS).runs
        if (run.model, run.data_digest) == (model, assembly.data_digest)
        and (run.params.get("skill_digest"), run.params.get("version")) == (digest, __version__)
        and run.status in ENDED
        and not {"forked_from", "audit"} & run.params.keys()
    ]


def _like(runs: Sequence[Run], request: PerpRequest) -> Run | None:
    """The run of just this request: a whole one first, else one to go on with."""
    wanted = _bare(request)
    found = [run for run in runs if _bare(request_of(run)) == wanted]
    return next((run for run in found if run.status == "complete"), found[0] if found else None)


def _bare(request: PerpRequest) -> PerpRequest:
    """A request without what changes no result (money, haste) or follows from the rest. The skill has its digest."""
    return replace(
        request,
        skill={},
        max_cost_usd=None,
        price_in=None,
        price_out=None,
        any_price=False,
        speculate="auto",
        max_waste_pct=ZERO,
        disguise=None,
    )


def _course(workspace: Workspace, run: Run) -> DailyResults:
    request, params = request_of(run), run.params
    period = interval_ms(params["skill"]["schedule"]["every"])
    start: Instant = -(-request.from_at // period) * period
    ledger = runner.ledger_of(workspace, run)
    outcome = ledger.outcome(start, request.to_at, interval_ms(params["base_interval"]), request.equity_usd)
    return pairs.course_of(run.id, outcome)


# Money ----------------------------------------------------------------------------------------------------------------


def _within(report: MemorisationReport) -> PerpRequest:
    """The request with what is left of the money."""
    request = report.wish.request
    if request.max_cost_usd is None:
        return request
    return replace(request, max_cost_usd=max(ZERO, request.max_cost_usd - (report.paid_usd or ZERO)))


def _pay(report: MemorisationReport, usd: Decimal | None) -> None:
    report.paid_usd = None if usd is None or report.paid_usd is None else report.paid_usd + usd
