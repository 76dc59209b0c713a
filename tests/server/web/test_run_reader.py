"""Indexes and pages of runs are read once for all requests that wait, without the threads of other requests."""

import asyncio
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from pitboss.bootstrap.workspace import Workspace
from pitboss.runs import run_files
from pitboss.runs.indexed_runs import IndexedRuns, keep_index, keep_page
from pitboss.runs.report import page_of
from pitboss.server.api.run_reader import RunReader
from pitboss.store.runs import Run


class SlowRuns(IndexedRuns):
    """Pages and indexes that are read when the test lets them be; counts how often."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.go_on, self.reads, self.error = Event(), 0, error

    def page(self, workspace: Workspace, run: Run) -> Any:
        self.reads += 1
        self.go_on.wait()
        if self.error is not None:
            raise self.error
        return super().page(workspace, run)


@pytest.fixture
def run(workspace: Workspace) -> Run:
    """The run of the demo, without the files that its worker has written."""
    run = workspace.runs.listing().runs[0]
    workspace.remove_files(run.id)
    return run


def test_a_page_is_composed_once_for_all_who_wait(workspace: Workspace, run: Run) -> None:
    slow = SlowRuns()

    async def ask() -> list[Any]:
        reader = RunReader(slow)
        waiting = [asyncio.create_task(reader.page(workspace, run)) for _ in range(20)]
        index = await reader.index(workspace, run)  # other things of the run are read meanwhile
        assert len(index)
        slow.go_on.set()
        return await asyncio.gather(*waiting)

    pages = asyncio.run(ask())
    assert slow.reads == 1
    assert all(page is pages[0] for page in pages)


def test_a_request_that_does_not_wait_gets_the_page_later(workspace: Workspace, run: Run) -> None:
    slow = SlowRuns()

    async def ask() -> None:
        reader = RunReader(slow)
        assert await reader.page(workspace, run, patience_s=0.01) is None
        slow.go_on.set()
        assert await reader.page(workspace, run) is not None
        assert slow.reads == 1

    asyncio.run(ask())


def test_an_error_without_a_waiting_request_is_raised_for_the_next_request(workspace: Workspace, run: Run) -> None:
    slow = SlowRuns(OSError("no space"))

    async def ask() -> None:
        reader = RunReader(slow)
        assert await reader.page(workspace, run, patience_s=0.01) is None
        slow.go_on.set()
        with pytest.raises(OSError, match="no space"):
            while await reader.page(workspace, run, patience_s=0.01) is None:
                pass
        slow.error = None
        assert await reader.page(workspace, run) is not None
        assert slow.reads == 2

    asyncio.run(ask())


def test_the_page_of_a_run_that_has_just_ended_is_left_to_its_worker(workspace: Workspace, run: Run) -> None:
    page = page_of(workspace, run)
    params = {**run.params, "queued": {"report": True}}
    fresh = replace(run, params=params, finished_at=workspace.now())
    indexed = IndexedRuns()

    async def ask() -> None:
        reader = RunReader(indexed)
        waiting = asyncio.create_task(reader.page(workspace, fresh))
        assert await reader.page(workspace, fresh, patience_s=0.2) is None
        assert not run_files.are_stored(workspace, run)
        await asyncio.to_thread(keep_page, workspace, run, page)
        await asyncio.to_thread(keep_index, workspace, run)
        assert (await waiting) is not None

    asyncio.run(ask())
