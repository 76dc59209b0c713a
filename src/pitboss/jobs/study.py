"""Doing a study: its runs put into the queue, worked on here or by workers, until its method wants no more.

Every run is an ordinary one: it can be shown, verified, resumed and deleted by itself. Nothing is remembered but what is in
the store, so a study that was stopped goes on when the same is asked for again: finished runs are found, broken ones resumed
from their last record. Answers of models are shared by all runs, in this study and others, as they always are.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal

from pitboss.bootstrap.decider_source import may_cost
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import RunCancelled, UserError
from pitboss.core.money import ZERO
from pitboss.jobs.batch import Preparation
from pitboss.jobs.build import build
from pitboss.jobs.enqueue import ensure
from pitboss.jobs.plan import Member, StudyPlan, members
from pitboss.jobs.study_lock import Helm
from pitboss.jobs.worker_settings import open_queue
from pitboss.runs.run import resume
from pitboss.sim.study.trial import Method, Trial
from pitboss.sim.watch import Watch
from pitboss.store.lifecycle import ACTIVE, ENDED, LeaseLost
from pitboss.store.queue import Job, Queue
from pitboss.store.runs import Run
from pitboss.store.studies import AlreadyThere, RunLine, Studies, once

Where = Literal["here", "workers"]

POLL_S = 0.3
"""How often runs that others work on are looked at."""
PATIENCE_S = 60.0
"""How long nothing may move before runs that workers should do are done here: perhaps there are none of this build."""


@dataclass(frozen=True, slots=True)
class Onlooker:
    """Who looks on: told how far single runs are and what is worth a line, asked whether to stop."""

    began: Callable[[Sequence[Member], Sequence[str]], None] = lambda wanted, ids: None
    moved: Callable[[str, str, float], None] = lambda run_id, status, done: None
    told: Callable[[str], None] = lambda words: None
    stop: Callable[[], bool] = lambda: False


NOBODY = Onlooker()


@dataclass(frozen=True, slots=True)
class Money:
    """What a study may spend: set aside for one run at worst, by which user, and how much that user may spend in a day."""

    each_usd: Callable[[Member], Decimal] = lambda member: ZERO
    daily_usd: Decimal | None = None
    owner: str = "local"


@dataclass(frozen=True, slots=True)
class StudySettings:
    """How a study is worked on. `concurrency` counts runs at once in this process."""

    where: Where = "here"
    concurrency: int = 4
    money: Money = field(default_factory=Money)


@dataclass(frozen=True, slots=True)
class Done:
    """A study that has come to its end: every trial that was made, with the runs of its repeats."""

    id: str
    trials: Mapping[Trial, Sequence[Run]]

    @property
    def failed(self) -> list[Run]:
        """Runs without a result."""
        return [run for runs in self.trials.values() for run in runs if run.status != "complete"]


@dataclass(frozen=True, slots=True)
class Lot:
    """Runs that are wanted, in order, and new limits on the cost of those that go on.

    `first` are those that go ahead of the others, as the others may ask what they ask: asked at the same moment it would be
    paid for twice, asked later it is known.
    """

    ids: Sequence[str]
    caps: Mapping[str, Decimal]
    first: Sequence[str] = ()


async def study(
    workspace: Workspace, plan: StudyPlan, method: Method, terms: StudySettings, watch: Onlooker = NOBODY
) -> Done:
    """Make a study, or go on with it. Raises `RunCancelled` when it was asked to stop; everything done is kept."""
    Studies(workspace.database).keep(plan.id, plan.document())
    with Helm(workspace.home, plan.id) as helm:
        return await _through(workspace, plan, method, terms, watch, helm)


async def _through(
    workspace: Workspace, plan: StudyPlan, method: Method, terms: StudySettings, watch: Onlooker, helm: Helm
) -> Done:
    made: dict[Trial, list[Run]] = {}
    results: dict[Trial, list[Mapping[str, Any]]] = {}
    while wanted := method.ask(results):
        found = members(plan, wanted)
        try:
            lot = queued(workspace, plan, found, terms, watch)
            watch.began(found, lot.ids)
            if terms.where == "here":
                every = list(dict.fromkeys(lot.ids))
                await _here(workspace, lot, lot.first, terms.concurrency, watch, helm.take())
                await _here(workspace, lot, every, terms.concurrency, watch, helm.take())
            await _await_others(workspace, plan.id, lot, terms.where, watch, helm)
        except BaseException:
            call_off(workspace, plan.id)
            raise
        for member, run_id in zip(found, lot.ids, strict=True):
            run = workspace.runs.get(run_id)
            made.setdefault(member.trial, []).append(run)
            results.setdefault(member.trial, [])
            if run.metrics is not None:
                results[member.trial].append(run.metrics)
    return Done(plan.id, made)


def queued(
    workspace: Workspace, plan: StudyPlan, wanted: Sequence[Member], terms: StudySettings, watch: Onlooker
) -> Lot:
    """See to it that every member has a run that is done or will be."""
    ids = [member.run_id(plan.id) for member in wanted]
    every = dict(zip(ids, wanted, strict=True))  # a search may come to a point twice
    money, jobs, preparation = terms.money, dict[str, Job](), Preparation(workspace)
    while True:
        standing = {line.id: line.status for line in Studies(workspace.database).progress(plan.id)}
        missing = [run_id for run_id in every if run_id not in standing]
        for run_id in missing:
            if watch.stop():
                raise RunCancelled
            if run_id not in jobs:
                jobs[run_id] = _job(preparation, plan, every[run_id], money)
        names = iter(missing)
        own = Queue(workspace.database, workspace.now, names.__next__)
        try:
            with once():
                own.enqueue([jobs[run_id] for run_id in missing], money.daily_usd if _costs(wanted) else None)
            break
        except AlreadyThere:
            continue  # with those that are still missing
    broken = [run_id for run_id in every if standing.get(run_id) in ("error", "cancelled")]
    caps = {run_id: cap for run_id in broken if (cap := _revive(workspace, run_id, every[run_id], money))}
    return Lot(ids, caps, _ahead(every))


def _ahead(every: Mapping[str, Member]) -> list[str]:
    """Of all runs that ask the same model in the same repeat over the same stretch, the first."""
    found: dict[object, str] = {}
    for run_id, member in every.items():
        asked = member.request
        if may_cost(asked):
            found.setdefault((asked.source, asked.repeat, asked.from_at, asked.to_at), run_id)
    return list(found.values())


def _revive(workspace: Workspace, run_id: str, member: Member, money: Money) -> Decimal | None:
    """Queue a run that broke off once more. Gives what it may have cost in the end, where we set its limit: what it has paid
    stays paid, and what is set aside now is for the rest."""
    reserve, limit = _set_aside(member, money)
    open_queue(workspace).again(run_id, reserve, limit)
    run = workspace.runs.get(run_id)
    if not reserve or member.request.max_cost_usd is not None or run.cost_usd.is_nan():
        return None
    return run.cost_usd + reserve


def _job(preparation: Preparation, plan: StudyPlan, member: Member, money: Money) -> Job:
    request, reserve = member.request, None
    if money.daily_usd is not None:
        reserve, _ = _set_aside(member, money)
        if may_cost(request) and request.max_cost_usd is None and reserve:
            # What was set aside is all it may spend: only then is the day's limit one. Of nothing nobody knows the price.
            request = replace(request, max_cost_usd=reserve)
    more = {"owner": money.owner, "study_id": plan.id, "build": build(), "reserve_usd": reserve or ZERO}
    job = preparation.job(request, **more)
    return replace(job, params={**job.params, "study": member.mark()})


def _set_aside(member: Member, money: Money) -> tuple[Decimal | None, Decimal | None]:
    """What is set aside for a member, and of which daily limit; nothing where there is no limit."""
    if money.daily_usd is None:
        return None, None
    if not may_cost(member.request):
        return ZERO, money.daily_usd
    own = member.request.max_cost_usd
    return (money.each_usd(member) if own is None else own), money.daily_usd


def _costs(wanted: Sequence[Member]) -> bool:
    return any(may_cost(member.request) for member in wanted)


async def _here(
    workspace: Workspace, lot: Lot, ids: Sequence[str], concurrency: int, watch: Onlooker, alone: bool
) -> None:
    """Do the runs that nobody else does, several at once: those that wait for a model wait together. `alone`: no other
    process works on this study as we do, so a run that is being worked on by no worker was left behind by one."""
    waiting = iter(ids)

    async def work() -> None:
        for run_id in waiting:
            if watch.stop():
                raise RunCancelled
            run = workspace.runs.get(run_id)
            orphan = alone and run.status in ACTIVE and run.worker is None
            if run.status != "queued" and not orphan:  # it is done, or somebody has it
                watch.moved(run_id, run.status, run.progress)
                continue
            await _one(workspace, run_id, lot.caps.get(run_id), watch)

    tasks = [asyncio.create_task(work()) for _ in range(max(1, concurrency))]
    try:
        await asyncio.gather(*tasks)
    except RunCancelled:
        await asyncio.gather(*tasks, return_exceptions=True)  # each ends its tick, and writes what it has come to
        raise
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _one(workspace: Workspace, run_id: str, cap: Decimal | None, watch: Onlooker) -> None:
    watch.moved(run_id, "running", 0.0)
    looking = Watch(lambda done: watch.moved(run_id, "running", done), watch.stop, lambda words: None)
    try:
        await resume(workspace, run_id, looking, cap)
    except LeaseLost:
        pass  # it is another's now
    except Exception as error:  # noqa: BLE001 - whatever a run does, the others go on; the cause is kept with it
        watch.told(f"run {run_id}: {error}")
    except RunCancelled:
        if watch.stop():
            raise
    run = workspace.runs.get(run_id)
    watch.moved(run_id, run.status, run.progress)


async def _await_others(
    workspace: Workspace, study_id: str, lot: Lot, where: Where, watch: Onlooker, helm: Helm
) -> None:
    """Wait for runs that others work on, and see to it that somebody does."""
    mine, studies, seen = set(lot.ids), Studies(workspace.database), dict[str, RunLine]()
    loop = asyncio.get_running_loop()
    moved_s = loop.time()
    while True:
        lines = [line for line in studies.progress(study_id) if line.id in mine]
        for line in lines:
            if seen.get(line.id) != line:
                watch.moved(line.id, line.status, line.progress)
                seen[line.id] = line
                moved_s = loop.time()
        if all(line.status in ENDED for line in lines):
            return
        if watch.stop():
            raise RunCancelled
        if where == "workers" and loop.time() - moved_s < PATIENCE_S:
            ensure(workspace)
        else:
            if where == "workers":
                watch.told(f"no worker has taken a run for {PATIENCE_S:.0f} s: they are done here")
                where = "here"
            open_queue(workspace).sweep()
            left = [line.id for line in lines if line.status not in ENDED]
            await _here(workspace, lot, left, 1, watch, helm.take())
        await asyncio.sleep(POLL_S)


def call_off(workspace: Workspace, study_id: str) -> int:
    """Take out of the queue what nobody has begun, and ask for the rest to stop: nothing is begun after this."""
    count = 0
    for line in Studies(workspace.database).progress(study_id):
        if line.status not in ENDED:
            try:
                workspace.runs.request_cancel(line.id)
                count += 1
            except UserError:
                continue  # it has ended meanwhile
    return count
