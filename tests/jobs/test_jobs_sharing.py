"""Runs of one worker that send equal requests: each is sent and paid once, and every run ends as it would alone."""

import asyncio
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from job_workspace import FROM, HOUR_MS, JobWorkspace
from sqlalchemy import func, select

from pitboss.bootstrap import machine
from pitboss.core.money import ZERO
from pitboss.jobs import worker as working
from pitboss.runs.run import job_of, start, verify
from pitboss.store.answers import DUPLICATE_MARK
from pitboss.store.run import Run
from pitboss.store.schema import answers
from pitboss.testing.provider import FakeProvider, busy, decide
from pitboss.venues.perp.assembly import PerpRequest
from pitboss.venues.perp.testing import plain_skill

RUNS, REPEATS = 6, 2


@pytest.fixture(autouse=True)
def no_lent_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_LENT", {})
    monkeypatch.setattr(working, "POLL_S", 0.02)


def request(repeat: int = 0, **more: Any) -> PerpRequest:
    skill = plain_skill(["BTC"], "15m", model="llm/fake")
    terms: dict[str, Any] = {"price_in": Decimal(1), "price_out": Decimal(2), "speculate": "0", **more}
    return PerpRequest(skill, FROM, FROM + 3 * HOUR_MS, repeat=repeat, **terms)


def enqueue_requests(job_workspace: JobWorkspace, requests: list[PerpRequest]) -> list[str]:
    return job_workspace.queue.enqueue([job_of(job_workspace.workspace, one) for one in requests])


async def run_with_provider(
    script: Any, job_workspace: JobWorkspace, requests: list[PerpRequest], at_once: int, **terms: Any
) -> tuple[list[Run], int]:
    async with FakeProvider(script, latency_s=0.02) as fake:
        machine.lend({"LLM_BASE_URL": fake.url, "LLM_API_KEY": "test-key-123456"})
        ids = enqueue_requests(job_workspace, requests)
        await job_workspace.worker(concurrency=at_once, **terms).run()
        return [job_workspace.workspace.runs.get(run_id) for run_id in ids], fake.calls


def paid_twice(job_workspace: JobWorkspace) -> int:
    """The number of replies that were paid although another run had already stored one to the same question."""
    query = select(func.count()).select_from(answers).where(answers.c.key.contains(DUPLICATE_MARK))
    with job_workspace.workspace.database.read() as connection:
        return connection.execute(query).scalar_one()


@pytest.mark.parametrize("ahead", ["0", "4"])
def test_runs_at_once_pay_for_each_question_once_and_end_as_one_by_one(ahead: str, job_workspace: JobWorkspace) -> None:
    requests = [request(number % REPEATS, speculate=ahead) for number in range(RUNS)]
    done, calls = asyncio.run(run_with_provider(decide, job_workspace, requests, RUNS))

    async def alone() -> tuple[list[Run], int]:
        async with FakeProvider(decide) as fake:
            machine.lend({"LLM_BASE_URL": fake.url})
            others = [request(REPEATS + number, speculate="0") for number in range(REPEATS)]  # questions of their own
            return [await start(job_workspace.workspace, one) for one in others], fake.calls

    ones, asked = asyncio.run(alone())
    assert [run.status for run in done] == ["complete"] * RUNS
    assert {run.digest for run in done} == {run.digest for run in ones}
    useful = sum((run.cost_usd - run.wasted_usd for run in done), ZERO)
    assert useful <= sum((run.cost_usd for run in ones), ZERO) <= sum((run.cost_usd for run in done), ZERO)
    if ahead == "0":
        assert calls == asked, "nothing was asked twice"
        assert useful == sum((run.cost_usd for run in ones), ZERO)
    each = ones[0].cost_usd
    assert all(run.cost_usd - run.wasted_usd + run.saved_usd == each for run in done), "who did not pay has saved it"
    assert all(verify(job_workspace.workspace, run.id) == [] for run in done)
    assert paid_twice(job_workspace) == 0


def test_a_provider_that_is_busy_now_and_then_is_still_paid_once(job_workspace: JobWorkspace) -> None:
    count = [0]

    def moody(question: Any) -> Any:
        count[0] += 1
        return busy() if count[0] % 3 == 0 else decide(question)

    done, calls = asyncio.run(run_with_provider(moody, job_workspace, [request()] * RUNS, RUNS))
    assert [run.status for run in done] == ["complete"] * RUNS
    assert len({run.digest for run in done}) == 1
    ticks = done[0].ticks
    assert calls - calls // 3 == ticks
    assert sum((run.saved_usd for run in done), ZERO) == (RUNS - 1) * sum((run.cost_usd for run in done), ZERO)


def test_one_that_is_cancelled_while_others_wait_for_its_call_takes_none_of_them_along(
    job_workspace: JobWorkspace,
) -> None:
    asked: list[int] = []

    async def story() -> tuple[list[Run], str]:
        async with FakeProvider(lambda question: decide(question), latency_s=0.05) as fake:
            machine.lend({"LLM_BASE_URL": fake.url, "LLM_API_KEY": "test-key-123456"})
            ids = enqueue_requests(job_workspace, [request()] * 4)
            worker = job_workspace.worker(concurrency=4, heartbeat=working.HeartbeatSettings(0.05, 20.0, 0.1))
            running = asyncio.create_task(worker.run())
            while fake.calls < 2:  # noqa: ASYNC110 - it is in a server
                await asyncio.sleep(0.005)
            job_workspace.workspace.runs.request_cancel(ids[0])
            await running
            asked.append(fake.calls)
            return [job_workspace.workspace.runs.get(run_id) for run_id in ids[1:]], job_workspace.status(ids[0])

    rest, first = asyncio.run(story())
    assert first == "cancelled"
    assert [run.status for run in rest] == ["complete"] * 3
    assert len({run.digest for run in rest}) == 1
    assert asked[0] <= rest[0].ticks + 1, "but for the one that was cut off nothing was asked twice"


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.proof) for seed in range(1, 8))])
def test_each_shared_question_is_paid_once_whatever_is_cancelled_or_fails_and_all_runs_end_as_alone(
    seed: int, job_workspace: JobWorkspace
) -> None:
    rng, refused = Random(seed), set[str]()

    def moody(question: Any) -> Any:
        words = str(question["messages"])
        if words in refused or rng.random() > 0.2:
            return decide(question)
        refused.add(words)  # not again and again: a question that is given up makes another run of it
        return busy()

    async def story() -> list[str]:
        async with FakeProvider(moody, latency_s=0.01) as fake:
            machine.lend({"LLM_BASE_URL": fake.url, "LLM_API_KEY": "test-key-123456"})
            ids = enqueue_requests(job_workspace, [request(number % 2) for number in range(6)])
            worker = job_workspace.worker(concurrency=6, heartbeat=working.HeartbeatSettings(0.02, 20.0, 0.1))
            running = asyncio.create_task(worker.run())
            for run_id in rng.sample(ids, 3):
                await asyncio.sleep(rng.random() * 0.2)
                if job_workspace.status(run_id) in ("queued", "loading", "running"):
                    job_workspace.workspace.runs.request_cancel(run_id)
            await running
            for run_id in ids:
                if job_workspace.status(run_id) == "cancelled":
                    job_workspace.queue.enqueue_again(run_id)
            await job_workspace.worker("two", concurrency=6).run()
            whole = await start(job_workspace.workspace, request(9))
            return [whole.id, *ids]

    whole, *done = [job_workspace.workspace.runs.get(run_id) for run_id in asyncio.run(story())]
    assert {(run.status, run.digest) for run in done} == {("complete", whole.digest)}
    assert paid_twice(job_workspace) == 0
    with job_workspace.workspace.database.read() as connection:
        kept = connection.execute(select(func.count()).select_from(answers)).scalar_one()
    assert kept == 3 * whole.ticks, "two repeats, and the one alone"
