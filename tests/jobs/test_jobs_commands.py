"""`pitboss worker` and `pitboss jobs`: options and output."""

import json
import os
import signal
import threading
import time
from typing import Any

import pytest
from job_workspace import JobWorkspace

from pitboss import build
from pitboss.cli.main import main
from pitboss.core.errors import UserError
from pitboss.jobs import enqueue
from pitboss.jobs.executors import local
from pitboss.store.queue import Queue


def run_command(job_workspace: JobWorkspace, *arguments: str) -> int:
    return main([*arguments, "--home", str(job_workspace.workspace.home)])


def test_a_worker_does_what_is_queued_and_leaves_when_there_is_nothing_to_do(
    job_workspace: JobWorkspace, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = job_workspace.enqueue(2, build=build.build())
    assert run_command(job_workspace, "jobs", "list") == 0
    assert "2 ready, 0 active" in capsys.readouterr().out

    assert run_command(job_workspace, "worker", "--idle-exit", "0s", "--processes", "0") == 0

    assert "exits after 2 runs" in capsys.readouterr().err
    assert {job_workspace.status(run_id) for run_id in ids} == {"complete"}
    assert run_command(job_workspace, "jobs", "list", "--json") == 0
    reply = json.loads(capsys.readouterr().out)
    assert (reply["ready"], reply["working"], reply["local_workers"], reply["runs"]) == (0, 0, 0, [])


def test_a_worker_says_that_runs_of_another_build_wait_and_takes_them_when_asked_to(
    job_workspace: JobWorkspace, capsys: pytest.CaptureFixture[str]
) -> None:
    (run_id,) = job_workspace.enqueue(build="0.0+another")
    assert run_command(job_workspace, "worker", "--idle-exit", "0s") == 0
    output = capsys.readouterr().err
    assert "1 queued runs belong to another build" in output
    assert "--any-build" in output
    assert job_workspace.status(run_id) == "queued"

    assert run_command(job_workspace, "worker", "--idle-exit", "0s", "--any-build", "--processes", "0") == 0
    assert job_workspace.status(run_id) == "complete"


@pytest.mark.parametrize("words", [("worker",), ("live", "host"), ("watchdog",)], ids=" ".join)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_process_ends_on_a_signal_and_signals_are_what_they_were_before(
    job_workspace: JobWorkspace, words: tuple[str, ...], number: signal.Signals, code: int
) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)

    def stop_once_it_handles_signals() -> None:
        while signal.getsignal(signal.SIGTERM) == before[0]:
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    stopper = threading.Thread(target=stop_once_it_handles_signals, daemon=True)
    stopper.start()
    assert run_command(job_workspace, *words) == code
    stopper.join()
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_a_queued_run_is_cancelled_at_once_queued_again_and_waited_for(
    job_workspace: JobWorkspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enqueue.local, "ensure", lambda settings, queue: 0)  # no workers yet
    (run_id,) = job_workspace.enqueue(build=build.build())
    assert run_command(job_workspace, "jobs", "cancel", run_id[:6]) == 0
    assert f"run {run_id} is cancelled" in capsys.readouterr().out
    assert run_command(job_workspace, "jobs", "wait", run_id) == 1
    assert run_command(job_workspace, "jobs", "again", run_id) == 0
    assert job_workspace.status(run_id) == "queued"

    assert run_command(job_workspace, "worker", "--idle-exit", "0s", "--processes", "0") == 0
    capsys.readouterr()
    assert run_command(job_workspace, "jobs", "wait", run_id, "--json") == 0
    assert [one["status"] for one in json.loads(capsys.readouterr().out)] == ["complete"]


@pytest.mark.parametrize("command", ["cancel", "again"])
def test_without_an_id_nothing_is_cancelled_or_queued_again_and_the_command_says_so(
    job_workspace: JobWorkspace, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert run_command(job_workspace, "jobs", command) == 2
    error, hint = capsys.readouterr().err.splitlines()
    assert error == f"error: `jobs {command}` needs the id of a run"
    assert f"pitboss runs list --home {job_workspace.workspace.home}` lists them" in hint


@pytest.mark.parametrize(
    "text", [("--concurrency", "0"), ("--concurrency", "x"), ("--processes", "-1"), ("--idle-exit", "soon")]
)
def test_what_no_worker_can_be_asked_for_is_refused(
    text: tuple[str, ...], job_workspace: JobWorkspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(job_workspace, "worker", *text) == 2
    assert text[0] in capsys.readouterr().err


def test_queueing_starts_workers_where_the_setting_says(
    job_workspace: JobWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def started(settings: Any, queue: Queue) -> int:
        asked.append(settings.executor)
        return 1

    monkeypatch.setattr(local, "ensure", started)
    for executor, count in (("local", 1), ("none", 0)):
        settings = job_workspace.settings.model_copy(update={"executor": executor})
        object.__setattr__(job_workspace.workspace, "settings", settings)
        assert enqueue.ensure_workers(job_workspace.workspace) == count
    assert asked == ["local"]


def test_workers_on_ray_without_ray_are_an_error_with_a_hint(
    job_workspace: JobWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "pitboss.jobs.executors.ray", raising=False)
    object.__setattr__(
        job_workspace.workspace, "settings", job_workspace.settings.model_copy(update={"executor": "ray"})
    )
    with pytest.raises(UserError, match="need the package ray") as caught:
        enqueue.ensure_workers(job_workspace.workspace)
    assert "pitboss[ray]" in caught.value.hint
