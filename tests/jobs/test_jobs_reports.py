"""Reports that workers write: at the requested place, complete or not at all; a failure never fails the run."""

import asyncio
import logging
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from job_workspace import FROM, HOUR_MS, JobWorkspace

from pitboss.core.errors import UserError
from pitboss.jobs import enqueue as enqueueing
from pitboss.jobs import run_report as report
from pitboss.jobs import worker as working
from pitboss.jobs.enqueue import enqueue
from pitboss.runs import page_file
from pitboss.runs.report import write_report
from pitboss.runs.run import verify
from pitboss.venues.perp.assembly import PerpRequest
from pitboss.venues.perp.testing import plain_skill

ASKED = {"queued": {"report": True}}


@pytest.fixture(autouse=True)
def fast_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working, "POLL_S", 0.02)
    monkeypatch.setattr(enqueueing, "ensure_workers", lambda workspace: 0)


def enqueue_runs(job_workspace: JobWorkspace, count: int = 1, hours: int = 6, **more: Any) -> list[str]:
    skill = plain_skill(["BTC"], "15m", model="policy/momentum")
    requests = [PerpRequest(skill, FROM, FROM + hours * HOUR_MS, seed=seed, repeat=seed) for seed in range(count)]
    return enqueue(job_workspace.workspace, requests, **more)


def run_worker(job_workspace: JobWorkspace, **terms: Any) -> None:
    asyncio.run(job_workspace.worker(**terms).run())


def test_a_worker_writes_the_reports_that_were_asked_for_and_no_others(job_workspace: JobWorkspace) -> None:
    asked = enqueue_runs(job_workspace, 3, extra_params=ASKED)
    others = (
        enqueue_runs(job_workspace, 1)
        + enqueue_runs(job_workspace, 1, extra_params={"queued": {}})
        + job_workspace.enqueue(1)
    )
    run_worker(job_workspace)
    reports = job_workspace.workspace.home / "reports"
    assert sorted(os.listdir(reports)) == sorted(f"{run_id}.html" for run_id in asked)
    for run_id in asked:
        run = job_workspace.workspace.runs.get(run_id)
        assert (run.status, run.report) == ("complete", str(reports / f"{run_id}.html"))
        again = write_report(job_workspace.workspace, run_id, reports / "again.html")
        assert again.read_bytes() == Path(run.report or "").read_bytes(), "whoever writes it writes the same"
        assert verify(job_workspace.workspace, run_id) == []
    assert {job_workspace.workspace.runs.get(run_id).report for run_id in others} == {None}
    assert {job_workspace.status(run_id) for run_id in others} == {"complete"}


@pytest.mark.parametrize("problem", [UserError("the disk is full"), MemoryError(), KeyError("gone")])
def test_a_report_that_cannot_be_written_is_shown_in_the_log_and_the_run_stays_complete(
    problem: Exception, job_workspace: JobWorkspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise problem

    monkeypatch.setattr(report, "write_report", broken)
    ids = enqueue_runs(job_workspace, 2, extra_params=ASKED)
    with caplog.at_level(logging.WARNING, "pitboss.jobs"):
        run_worker(job_workspace)
    assert [job_workspace.status(run_id) for run_id in ids] == ["complete"] * 2
    assert [record.getMessage() for record in caplog.records].count("report not written") == 2
    assert all(verify(job_workspace.workspace, run_id) == [] for run_id in ids)


def test_a_folder_that_takes_no_files_costs_the_report_and_nothing_else(job_workspace: JobWorkspace) -> None:
    (job_workspace.workspace.home / "reports").write_text("not a folder")
    (run_id,) = enqueue_runs(job_workspace, extra_params=ASKED)
    run_worker(job_workspace)
    run = job_workspace.workspace.runs.get(run_id)
    assert (run.status, run.report) == ("complete", None)
    assert run.digest is not None


def test_a_run_that_ended_in_error_or_was_cancelled_has_no_report(
    job_workspace: JobWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run_id,) = enqueue_runs(job_workspace, extra_params=ASKED)

    async def failing(workspace: Any, lease: Any, *arguments: Any) -> None:
        workspace.runs.fail(lease.run_id, lease.epoch, "no luck")

    monkeypatch.setattr(working, "work", failing)
    run_worker(job_workspace)
    assert job_workspace.status(run_id) == "error"
    assert not (job_workspace.workspace.home / "reports").exists()


def test_the_loop_is_free_while_a_report_is_written_and_a_worker_that_leaves_waits_for_it(
    job_workspace: JobWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on = threading.Event(), threading.Event()

    def slow(*given: Any, **named: Any) -> Path:
        began.set()
        assert go_on.wait(20)
        return write_report(*given, **named)

    monkeypatch.setattr(report, "write_report", slow)
    (first,) = enqueue_runs(job_workspace, extra_params=ASKED)

    async def story() -> None:
        worker = job_workspace.worker(idle_exit_s=60.0)
        running = asyncio.create_task(worker.run())
        while not began.is_set():  # noqa: ASYNC110 - it is set by a thread
            await asyncio.sleep(0.01)
        assert job_workspace.status(first) == "complete"
        (second,) = job_workspace.enqueue(1, hours=3)
        while job_workspace.status(second) != "complete":  # noqa: ASYNC110 - it is in the database
            await asyncio.sleep(0.01)
        worker.stop()
        await asyncio.sleep(0.1)
        assert not running.done()
        go_on.set()
        await running

    asyncio.run(story())
    assert Path(job_workspace.workspace.runs.get(first).report or "").exists()


def test_reports_are_written_one_after_the_other_while_a_run_blocks_the_loop(
    job_workspace: JobWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids, written, all_written = enqueue_runs(job_workspace, 3, extra_params=ASKED), list[str](), threading.Event()
    runs = [replace(job_workspace.workspace.runs.get(run_id), status="complete") for run_id in ids]

    def note(workspace: Any, run_id: str) -> None:
        del workspace
        written.append(run_id)
        if len(written) == len(ids):
            all_written.set()

    monkeypatch.setattr(report, "write_run_report", note)
    monkeypatch.setattr(type(job_workspace.workspace.runs), "get", lambda self, run_id: runs[ids.index(run_id)])

    async def story() -> None:
        writer = report.ReportWriter(job_workspace.workspace)
        for run in runs:
            writer.schedule(run)
        assert all_written.wait(20)  # blocks the loop, as a run does that computes
        assert written == ids
        await writer.close()
        assert writer.pending == 0

    asyncio.run(story())


def test_reports_that_are_not_begun_are_dropped_when_a_worker_is_told_not_to_wait(
    job_workspace: JobWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids, written = enqueue_runs(job_workspace, 3, extra_params=ASKED), list[str]()
    runs = [replace(job_workspace.workspace.runs.get(run_id), status="complete") for run_id in ids]
    began, go_on = threading.Event(), threading.Event()

    def slow(workspace: Any, run_id: str) -> None:
        del workspace
        began.set()
        assert go_on.wait(20)
        written.append(run_id)

    monkeypatch.setattr(report, "write_run_report", slow)
    monkeypatch.setattr(type(job_workspace.workspace.runs), "get", lambda self, run_id: runs[ids.index(run_id)])

    async def story() -> None:
        writer = report.ReportWriter(job_workspace.workspace)
        for run in runs:
            writer.schedule(run)
        assert began.wait(20)
        closing = asyncio.create_task(writer.close())
        while writer.pending > 1:  # noqa: ASYNC110 - a thread drops them
            await asyncio.sleep(0.01)
        go_on.set()
        await closing
        assert written == ids[:1]

    asyncio.run(story())


def test_two_who_write_the_same_page_at_once_never_mix_their_bytes(
    job_workspace: JobWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is stopped between its file and the move while the other goes all the way."""
    (run_id,) = enqueue_runs(job_workspace)
    run_worker(job_workspace)
    place = os.replace
    other: list[bytes] = []

    def meanwhile(source: Path, target: Path) -> None:
        if not other:
            other.append(b"")
            write_report(job_workspace.workspace, run_id)
            other.append(target.read_bytes())
        place(source, target)

    monkeypatch.setattr(page_file.os, "replace", meanwhile)
    path = write_report(job_workspace.workspace, run_id)
    assert path.read_bytes() == other[1] != b""
    assert os.listdir(path.parent) == [path.name], "no half of it is left behind"
