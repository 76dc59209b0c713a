"""A worker executes queued runs, stops cancelled ones, returns what it cannot finish, and survives failing runs."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from job_workspace import JobWorkspace

import history_check
from pitboss.bootstrap import machine
from pitboss.jobs import placement as place
from pitboss.jobs import worker as working
from pitboss.jobs.heartbeat import HeartbeatSettings
from pitboss.jobs.worker import Worker
from pitboss.runs.run import request_of, start, verify
from pitboss.store import events
from pitboss.store.journal import StoredJournal
from pitboss.store.queue import Job, Lease
from pitboss.store.retry import Unreachable
from pitboss.testing.provider import FakeProvider, Script, decide, hang

QUICK = HeartbeatSettings(heartbeat_s=0.05, stale_s=20.0, scan_s=0.1)
MODEL = "llm/fake"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


PORT = 0
"""Of the model that runs are queued for, before there is a server. Each test has its own: several processes run tests of this file."""


@pytest.fixture(autouse=True)
def no_lent_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test lends is not there in the next."""
    monkeypatch.setitem(globals(), "PORT", free_port())
    monkeypatch.setattr(machine, "_LENT", {})
    monkeypatch.setattr(working, "POLL_S", 0.02)


@asynccontextmanager
async def provider(script: Script = decide) -> AsyncIterator[FakeProvider]:
    """A model that runs of this process can ask."""
    async with FakeProvider(script, port=PORT) as fake:
        machine.lend({"LLM_API_KEY": "test-key-123456"})
        yield fake


def put_model_runs(job_workspace: JobWorkspace, count: int = 1, **more: Any) -> list[str]:
    machine.lend({"LLM_BASE_URL": f"http://127.0.0.1:{PORT}/v1"})
    return job_workspace.enqueue(count, model=MODEL, any_price=True, speculate="0", hours=3, **more)


async def wait_for(true: Callable[[], bool], patience_s: float = 20.0) -> None:
    async with asyncio.timeout(patience_s):
        while not true():  # noqa: ASYNC110 - what is waited for is in the database or in a server
            await asyncio.sleep(0.01)


def check_history(job_workspace: JobWorkspace) -> history_check.Findings:
    log = history_check.check(events.read_events(job_workspace.workspace.database), ended=False)
    assert log.violations == []
    return log


def test_queued_runs_are_done_and_end_as_they_would_in_the_foreground(job_workspace: JobWorkspace) -> None:
    ids = job_workspace.enqueue(2) + job_workspace.enqueue(1, model="standin/analyst", hours=12)
    reference = [
        asyncio.run(start(job_workspace.workspace, request_of(job_workspace.workspace.runs.get(run_id)))).digest
        for run_id in ids
    ]

    assert asyncio.run(job_workspace.worker().run()) == 3

    runs = [job_workspace.workspace.runs.get(run_id) for run_id in ids]
    assert [run.status for run in runs] == ["complete"] * 3
    assert [run.digest for run in runs] == reference
    assert all(verify(job_workspace.workspace, run_id) == [] for run_id in ids)
    assert check_history(job_workspace).commits > 3


def test_a_cancelled_run_stops_while_its_model_has_not_answered_and_the_others_go_on(
    job_workspace: JobWorkspace,
) -> None:
    (cancelled,) = put_model_runs(job_workspace)

    async def story() -> float:
        async with provider([hang]) as fake:
            worker = job_workspace.worker(heartbeat=QUICK)
            working = asyncio.create_task(worker.run())
            await wait_for(lambda: fake.calls == 1)
            other = job_workspace.enqueue(1)[0]
            await wait_for(lambda: job_workspace.status(other) == "complete")
            job_workspace.workspace.runs.request_cancel(cancelled)
            started_s = asyncio.get_running_loop().time()
            await working
            return asyncio.get_running_loop().time() - started_s

    assert asyncio.run(story()) < 60.0  # the model would have been waited for two minutes
    run = job_workspace.workspace.runs.get(cancelled)
    assert (run.status, run.error_text) == ("cancelled", None)
    check_history(job_workspace)


@pytest.mark.usefixtures("forked_programs")
@pytest.mark.parametrize("processes", [0, 2])
def test_a_cancelled_run_that_only_computes_stops_at_a_tick_and_keeps_what_it_has(
    processes: int, job_workspace: JobWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the loop it lets no other task run: the mark comes from another thread. In a child it comes through a pipe."""
    (run_id,) = job_workspace.enqueue(model="standin/analyst", every="5m")
    monkeypatch.setattr(place, "MIN_PROCESS_RUN_S", 0.0)

    def cancel() -> None:
        pause = threading.Event()
        while not (run := job_workspace.workspace.runs.get(run_id)).progress and run.finished_at is None:
            pause.wait(0.01)
        job_workspace.workspace.runs.request_cancel(run_id)

    asking = threading.Thread(target=cancel)
    asking.start()
    heartbeat = HeartbeatSettings(heartbeat_s=0.02, stale_s=20.0, scan_s=1.0)
    asyncio.run(job_workspace.worker(processes=processes, idle_exit_s=3.0 * bool(processes), heartbeat=heartbeat).run())
    asking.join()

    run = job_workspace.workspace.runs.get(run_id)
    assert run.status == "cancelled"
    assert 0 < run.ticks < 576
    assert run.wall_s > 0
    check_history(job_workspace)


def test_a_worker_whose_loop_is_kept_by_a_run_is_not_taken_for_dead(
    job_workspace: JobWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run_id,) = job_workspace.enqueue()
    swept: list[str] = []

    async def computing(workspace: Any, lease: Lease, *arguments: Any) -> None:
        threading.Event().wait(0.6)  # blocks the event loop
        swept.extend(job_workspace.queue.sweep(stale_ms=300).requeued)
        workspace.runs.fail(run_id, lease.epoch, "done with it")

    monkeypatch.setattr(working, "work", computing)
    asyncio.run(job_workspace.worker(heartbeat=HeartbeatSettings(heartbeat_s=0.05, stale_s=20.0, scan_s=20.0)).run())

    assert swept == []
    assert job_workspace.workspace.runs.get(run_id).error_text == "done with it"


@pytest.mark.parametrize("stops", [1, 2])
def test_a_worker_asked_to_exit_gives_its_runs_back_uncounted_and_they_end_the_same_elsewhere(
    stops: int, job_workspace: JobWorkspace
) -> None:
    """Told twice it does not even wait for the time that it has for it."""
    ids = put_model_runs(job_workspace, 3)

    async def story() -> None:
        async with provider() as fake:
            fake.script = lambda question: decide(question) if fake.calls == 1 else hang
            worker = job_workspace.worker(drain_s=0.05 if stops == 1 else 60.0)
            working = asyncio.create_task(worker.run())
            await wait_for(lambda: fake.calls >= 3)
            for _ in range(stops):
                worker.stop()
            assert await working == 0
        given_back = [job_workspace.workspace.runs.get(run_id) for run_id in ids]
        assert {(run.status, run.requeues, run.worker) for run in given_back} == {("queued", 0, None)}
        async with provider():
            assert await job_workspace.worker("another").run() == 3

    asyncio.run(story())
    digests = {job_workspace.workspace.runs.get(run_id).digest for run_id in ids}
    assert len(digests) == 1  # they hold, whatever their seeds
    assert list(check_history(job_workspace).ends) == ["complete"]


def test_a_worker_asked_to_exit_waits_for_the_answer_that_is_on_its_way(job_workspace: JobWorkspace) -> None:
    """The tick in hand is paid for: it is kept."""
    (run_id,) = put_model_runs(job_workspace)

    async def story() -> None:
        async with provider() as fake:
            fake.latency_s = 0.3
            worker = job_workspace.worker(drain_s=30.0)
            task = asyncio.create_task(worker.run())
            await wait_for(lambda: fake.calls == 1)
            worker.stop()
            await task

    asyncio.run(story())
    commits = [
        event.detail for event in events.read_events(job_workspace.workspace.database) if event.kind == "committed"
    ]
    assert (job_workspace.status(run_id), commits) == ("queued", ["0-1"])


def test_a_run_that_was_taken_away_is_given_up_without_a_word(job_workspace: JobWorkspace) -> None:
    (run_id,) = put_model_runs(job_workspace)

    async def story() -> None:
        async with provider([hang]) as fake:
            task = asyncio.create_task(job_workspace.worker(heartbeat=HeartbeatSettings(0.3, 20.0, 20.0)).run())
            await wait_for(lambda: fake.calls == 1)
            assert job_workspace.queue.sweep(stale_ms=-1).requeued == [run_id]  # as if it had been silent
            lease = job_workspace.queue.claim("another")
            assert lease is not None
            await task
            job_workspace.workspace.runs.fail(run_id, lease.epoch, "the other's word")

    asyncio.run(story())
    assert job_workspace.workspace.runs.get(run_id).error_text == "the other's word"
    check_history(job_workspace)


POISONS: list[BaseException] = [
    RecursionError("too deep"),
    MemoryError(),
    SystemExit(3),
    KeyboardInterrupt(),
    GeneratorExit(),
    ValueError("bad"),
]


def test_runs_that_fail_in_any_way_end_in_error_and_the_next_is_done(
    job_workspace: JobWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = working.work

    async def poisoned(workspace: Any, lease: Lease, *arguments: Any) -> Any:
        seed = lease.run.params["seed"]
        if seed < len(POISONS):
            await asyncio.sleep(0)
            raise POISONS[seed]
        return await real(workspace, lease, *arguments)

    monkeypatch.setattr(working, "work", poisoned)
    *bad, good = job_workspace.enqueue(len(POISONS) + 1)

    assert asyncio.run(job_workspace.worker(concurrency=4).run()) == 1

    assert job_workspace.status(good) == "complete"
    for run_id, poison in zip(bad, POISONS, strict=True):
        run = job_workspace.workspace.runs.get(run_id)
        assert (run.status, run.error_text) == ("error", f"unexpected fault: {poison!r}")
    check_history(job_workspace)


@pytest.mark.parametrize(
    "params", [{}, {"skill": None}, {"skill": {"venue": "nowhere"}, "seed": "x"}, {"skill": [[[]]], "from_at": {}}, []]
)
def test_a_run_whose_parameters_make_no_sense_ends_in_error_with_the_cause(
    job_workspace: JobWorkspace, params: Any
) -> None:
    saved = job_workspace.workspace.skills.save("bad", "0" * 64, b"{}")
    (bad,) = job_workspace.queue.enqueue([Job(saved.id, saved.version, "policy/hold", params)])
    (good,) = job_workspace.enqueue()

    asyncio.run(job_workspace.worker().run())

    run = job_workspace.workspace.runs.get(bad)
    assert run.status == "error"
    assert run.error_text
    assert job_workspace.status(good) == "complete"


class LossyQueue:
    """A queue some of whose answers to claims are lost: after the claim was made, or before."""

    def __init__(self, job_workspace: JobWorkspace, losses: list[str]) -> None:
        self._queue = job_workspace.queue
        self._losses = iter(losses)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def claim(self, *given: Any, **more: Any) -> Lease | None:
        loss = next(self._losses, "none")
        lease = None if loss == "before" else self._queue.claim(*given, **more)
        if loss != "none":
            raise Unreachable("the database is away")
        return lease


def test_a_claim_whose_answer_was_lost_is_found_again(job_workspace: JobWorkspace) -> None:
    ids = job_workspace.enqueue(3)
    queue: Any = LossyQueue(job_workspace, ["before", "after", "none", "after", "after"])
    worker = Worker(job_workspace.workspace, queue, "one", working.WorkerSettings(idle_exit_s=0.0))

    assert asyncio.run(worker.run()) == 3

    assert {job_workspace.status(run_id) for run_id in ids} == {"complete"}
    assert check_history(job_workspace).claims == 3


def test_a_run_that_meets_a_database_which_is_away_goes_on_under_the_same_lease(
    job_workspace: JobWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (whole,) = job_workspace.enqueue(model="standin/analyst", hours=6)
    asyncio.run(job_workspace.worker().run())
    (run_id,) = job_workspace.enqueue(model="standin/analyst", hours=6)
    monkeypatch.setattr(working, "UNREACHABLE_PAUSE_S", 0.0)
    real, failures = working.work, iter(["early", "late"])

    async def away(workspace: Any, lease: Lease, watch: Any, *arguments: Any) -> Any:
        when = next(failures, None)
        if when == "early":
            raise Unreachable("away")
        run = await real(workspace, lease, watch, *arguments)
        if when == "late":  # its last write was made, and the answer was lost
            raise Unreachable("away")
        return run

    monkeypatch.setattr(working, "work", away)
    asyncio.run(job_workspace.worker().run())

    run = job_workspace.workspace.runs.get(run_id)
    assert (run.status, run.lease_epoch) == ("complete", 1)
    assert run.digest == job_workspace.workspace.runs.get(whole).digest
    check_history(job_workspace)


def test_a_run_whose_database_is_away_for_long_in_the_middle_goes_on_from_its_last_commit(
    job_workspace: JobWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (whole,) = job_workspace.enqueue(model="standin/analyst")
    asyncio.run(job_workspace.worker().run())
    (run_id,) = job_workspace.enqueue(model="standin/analyst")
    monkeypatch.setattr(working, "UNREACHABLE_PAUSE_S", 0.0)
    real, commits = StoredJournal.commit, iter(range(1, 100))

    async def commit(self: StoredJournal, *arguments: Any) -> None:
        if next(commits) == 3:
            raise Unreachable("away for longer than a commit waits")
        await real(self, *arguments)

    monkeypatch.setattr(StoredJournal, "commit", commit)
    asyncio.run(job_workspace.worker().run())

    run = job_workspace.workspace.runs.get(run_id)
    assert (run.status, run.lease_epoch) == ("complete", 1)
    assert run.digest == job_workspace.workspace.runs.get(whole).digest
    check_history(job_workspace)


def test_a_run_of_another_build_waits_for_a_worker_that_can_or_may_do_it(job_workspace: JobWorkspace) -> None:
    (other,), (mine,), (nobodys,) = (
        job_workspace.enqueue(build="0.9+old"),
        job_workspace.enqueue(build="1.0+new"),
        job_workspace.enqueue(),
    )

    asyncio.run(job_workspace.worker(build="1.0+new").run())
    assert [job_workspace.status(one) for one in (other, mine, nobodys)] == ["queued", "complete", "complete"]

    asyncio.run(job_workspace.worker(build=None).run())
    assert job_workspace.status(other) == "complete"


def test_more_runs_wait_for_their_model_at_once_than_the_worker_has_processes(job_workspace: JobWorkspace) -> None:
    ids = put_model_runs(job_workspace, 5)
    seen = 0

    async def story() -> None:
        nonlocal seen

        async def together(request: Any, question: Any) -> Any:
            nonlocal seen
            seen += 1
            await wait_for(lambda: seen >= 4)
            return await decide(question)(request, question)

        async with provider(lambda question: together):
            await job_workspace.worker(concurrency=4).run()

    asyncio.run(story())
    assert {job_workspace.status(run_id) for run_id in ids} == {"complete"}


LONG_S, SHORT_S = 2 * place.MIN_PROCESS_RUN_S, place.MIN_PROCESS_RUN_S / 2


@pytest.mark.parametrize(
    ("computing", "requeues", "processes", "company", "took_s", "expected"),
    [
        (True, 0, 0, True, LONG_S, False),  # no processes
        (True, 0, 1, False, LONG_S, False),  # nobody waits, and nothing is gained
        (True, 0, 1, True, LONG_S, True),
        (True, 0, 2, False, LONG_S, True),
        (True, 0, 2, True, SHORT_S, False),  # not worth a process
        (False, 0, 2, True, LONG_S, False),  # it waits for a model
        (False, 1, 1, False, SHORT_S, False),  # its worker was lost, as may happen
        (False, 2, 1, False, SHORT_S, True),  # and another: perhaps it was not by chance
        (True, 2, 0, True, LONG_S, False),
    ],
)
def test_a_run_gets_its_own_process_when_that_pays_or_it_has_cost_a_worker_before(
    job_workspace: JobWorkspace,
    computing: bool,
    requeues: int,
    processes: int,
    company: bool,
    took_s: float,
    expected: bool,
) -> None:
    run = job_workspace.workspace.runs.get(job_workspace.enqueue()[0])
    object.__setattr__(run, "requeues", requeues)
    assert place.needs_process(run, computing, processes, company, took_s) is expected


def test_whether_a_run_asks_a_model_is_seen_from_what_was_asked_for(job_workspace: JobWorkspace) -> None:
    asking, computing = put_model_runs(job_workspace)[0], job_workspace.enqueue()[0]
    assert not place.is_compute_only(job_workspace.workspace.runs.get(asking))
    assert place.is_compute_only(job_workspace.workspace.runs.get(computing))
