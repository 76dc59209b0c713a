"""A study on a real Ray cluster of several nodes: the same as on this machine, also when a node is lost in the middle.

The cluster is `ray_study.py`, in a process of its own.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from job_workspace import JobWorkspace, study_plan, study_results

from pitboss.bootstrap import machine
from pitboss.jobs import study as studying
from pitboss.jobs.credentials import model_variables
from pitboss.jobs.executors import local
from pitboss.jobs.study import study
from pitboss.jobs.study_queue import StudySettings
from pitboss.store import events

PROGRAM = Path(__file__).with_name("ray_study.py")
PATHS = os.pathsep.join(map(str, PROGRAM.parents[:2]))
"""Where the program finds the modules of tests."""
FIGURES = ("took_s", "requeues", "nodes", "lost_at", "ends")


def on_ray(market: Path, folder: Path, kind: str, lose: str, database: str = "sqlite") -> dict[str, Any]:
    """What came of a study on a cluster."""
    pytest.importorskip("ray", reason="ray is not installed: pip install 'pitboss[ray]'")
    home = folder / "ray"
    home.mkdir()
    (home / "lake").symlink_to(market / "lake", target_is_directory=True)
    variables = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": PATHS}
    command = [sys.executable, str(PROGRAM), str(home), kind, lose, database]
    process = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=400, check=False)
    assert process.returncode == 0, process.stderr[-3_000:]
    return json.loads(process.stdout.splitlines()[-1])


def on_this_machine(job_workspace: JobWorkspace, kind: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The same study with the pool of this machine."""
    settings = job_workspace.settings.model_copy(update={"max_workers": 2, "worker_idle_s": 0.5})
    monkeypatch.setattr(
        studying, "ensure_workers", lambda workspace: local.ensure(settings, job_workspace.queue, any_build=True)
    )
    plan = study_plan(kind)
    result = asyncio.run(study(job_workspace.workspace, plan.plan, plan.method, StudySettings("workers")))
    workers = {
        event.worker for event in events.read_events(job_workspace.workspace.database) if event.kind == "claimed"
    }
    assert workers
    assert not any(str(worker).startswith("ray-") for worker in workers)
    return json.loads(json.dumps(study_results(job_workspace.workspace, plan, result)))


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_a_walk_forward_on_a_ray_cluster_of_three_nodes_is_that_of_the_local_pool(
    job_workspace: JobWorkspace, market: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_cluster = on_ray(market, tmp_path, "walk", "keep")
    print({name: on_cluster[name] for name in FIGURES})
    alike = on_this_machine(job_workspace, "walk", monkeypatch)
    assert {name: on_cluster[name] for name in alike} == alike, "ids, digests, scores and choices"
    assert len(alike["digests"]) == 10
    assert len(alike["chosen"]) == 2
    assert (on_cluster["ends"], on_cluster["violations"]) == ({"complete": 10}, [])
    assert on_cluster["looked_at"] >= 1
    assert (on_cluster["canaries"], on_cluster["keys"]) == (0, 0), "the environment of whoever queued reached a worker"


@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_a_node_lost_in_the_middle_of_a_sweep_changes_nothing_but_the_time(
    database: str, job_workspace: JobWorkspace, market: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if database == "postgres":
        import postgres_server

        database = postgres_server.new_database()

    on_cluster = on_ray(market, tmp_path, "grid", "lose", database)

    print({name: on_cluster[name] for name in FIGURES})
    alike = on_this_machine(job_workspace, "grid", monkeypatch)
    assert {name: on_cluster[name] for name in alike} == alike, "ids, digests and scores"
    assert (on_cluster["ends"], on_cluster["violations"], on_cluster["nodes"]) == ({"complete": 16}, [], 2)
    assert 0 < on_cluster["lost_at"] < 0.9, "the node went in the middle"
    assert on_cluster["requeues"] >= 1


def test_a_worker_elsewhere_is_lent_what_its_models_need_and_nothing_else(
    job_workspace: JobWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("LLM_PROVIDER", "LLM_MODEL", "OPENAI_API_KEY", "GROQ_API_KEY", "MY_OTHER_SECRET")
    for name in names:
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(machine, "_LENT", {})
    monkeypatch.setenv("LLM_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("LLM_API_KEY", "key-for-that-address")
    monkeypatch.setenv("OPENAI_API_KEY", "key-for-openai")
    monkeypatch.setenv("MY_OTHER_SECRET", "x")

    assert model_variables(job_workspace.workspace, ["policy/hold", "standin/analyst", "no-such/model"]) == {}
    assert model_variables(job_workspace.workspace, ["openai/gpt-4o-mini"]) == {"OPENAI_API_KEY": "key-for-openai"}
    assert model_variables(job_workspace.workspace, ["llm/fake", "policy/hold"]) == {
        "LLM_BASE_URL": "http://127.0.0.1:9/v1",
        "LLM_API_KEY": "key-for-that-address",
    }


def test_what_was_lent_is_not_in_the_environment_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_LENT", {})
    machine.lend({"GROQ_API_KEY": "lent"})
    assert machine.environment("GROQ_API_KEY") in ("lent", os.environ.get("GROQ_API_KEY"))
    assert os.environ.get("GROQ_API_KEY") != "lent"
