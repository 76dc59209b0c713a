"""A worker that was so slow that its run was put back, and that claims it again before it has noticed."""

import asyncio

import pytest
from job_workspace import JobWorkspace

from pitboss.jobs import children, worker
from pitboss.jobs.worker import Worker, WorkerSettings
from pitboss.store.lifecycle import LeaseLost
from pitboss.store.queue import Lease


def test_the_end_of_the_first_lease_is_not_that_of_the_second(
    job_workspace: JobWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run_id,) = job_workspace.enqueue()
    first, second = (Lease(job_workspace.workspace.runs.get(run_id), epoch, "slow") for epoch in (1, 3))
    go_on = {first.epoch: asyncio.Event(), second.epoch: asyncio.Event()}

    async def work(_: object, lease: Lease, *more: object) -> None:
        await go_on[lease.epoch].wait()
        if lease is first:
            raise LeaseLost(run_id)

    monkeypatch.setattr(worker, "work", work)

    async def story() -> None:
        slow = Worker(job_workspace.workspace, job_workspace.queue, "slow", WorkerSettings())
        tasks = []
        for lease in (first, second):
            slow._begin(lease)
            tasks.append(slow._claimed[run_id].task)
        go_on[first.epoch].set()
        await tasks[0]
        assert slow._leases() == {run_id: second.epoch}, "somebody must go on to beat for it"
        go_on[second.epoch].set()
        await tasks[1]
        assert (slow._leases(), slow.finished_runs) == ({}, 1)
        await slow._reports.close()

    asyncio.run(story())


class ControlledChild(children.WorkerChild):
    """A child process whose work ends once `over` is set."""

    def __init__(self) -> None:
        self.over = asyncio.Event()

    @property
    def alive(self) -> bool:
        return True

    async def work(self, lease: Lease) -> None:
        await self.over.wait()


def test_a_child_that_did_the_second_lease_is_used_again_like_any_other(
    job_workspace: JobWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run_id,) = job_workspace.enqueue()
    first, second = (Lease(job_workspace.workspace.runs.get(run_id), epoch, "slow") for epoch in (1, 3))
    started: list[ControlledChild] = []
    both = asyncio.Event()

    async def start(*_: object) -> ControlledChild:
        started.append(ControlledChild())
        if len(started) == 2:
            both.set()
        return started[-1]

    monkeypatch.setattr(children.WorkerChild, "start", start)

    async def story() -> None:
        them = children.Children(job_workspace.settings, "slow")
        tasks = [asyncio.create_task(them.work(lease, lambda: False)) for lease in (first, second)]
        await both.wait()
        for child, task in zip(started, tasks, strict=True):
            child.over.set()
            await task
        assert them.busy == {}
        await them.work(second, lambda: False)
        assert len(started) == 2

    asyncio.run(story())
