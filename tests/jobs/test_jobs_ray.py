"""Workers on a real Ray cluster of several nodes: the same digests as on this machine, also when a node is lost.

The cluster is `ray_story.py`, in a process of its own.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from yard import Yard, study_requests

from pitboss.bootstrap import machine
from pitboss.bootstrap.runner import job_of
from pitboss.jobs import waiting
from pitboss.jobs.executors import local
from pitboss.jobs.loan import loan

STORY = Path(__file__).with_name("ray_story.py")


def on_ray(home: Path, jobs: int, lose: str, database: str = "sqlite") -> dict[str, Any]:
    """What came of a study on a cluster."""
    pytest.importorskip("ray", reason="ray is not installed: pip install 'pitboss[ray]'")
    variables = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(STORY.parent)}
    words = [sys.executable, str(STORY), str(home), str(jobs), lose, database]
    done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    return json.loads(done.stdout.splitlines()[-1])


def on_this_machine(yard: Yard, jobs: int, monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The digests of the same study with the pool of this machine."""
    settings = yard.settings.model_copy(update={"max_workers": 2, "worker_idle_s": 0.5})
    monkeypatch.setattr(waiting, "ensure", lambda workspace: local.ensure(settings, yard.queue, any_build=True))
    ids = yard.queue.enqueue([job_of(yard.workspace, request) for request in study_requests(jobs)])
    return [run.digest for run in asyncio.run(waiting.ended(yard.workspace, ids))]


@pytest.mark.chaos
def test_a_study_on_a_ray_cluster_of_three_nodes_has_the_digests_of_the_local_pool(
    yard: Yard, market: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "ray"
    home.mkdir()
    (home / "lake").symlink_to(market / "lake", target_is_directory=True)

    told = on_ray(home, 4, "keep")

    assert told["digests"] == on_this_machine(yard, 4, monkeypatch)
    assert (told["ends"], told["violations"]) == ({"complete": 4}, [])
    assert (told["canaries"], told["keys"]) == (0, 0), "the environment of whoever queued reached a worker"


@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_a_node_lost_in_the_middle_of_a_study_changes_nothing_but_the_time(
    database: str, yard: Yard, market: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "ray"
    home.mkdir()
    (home / "lake").symlink_to(market / "lake", target_is_directory=True)
    if database == "postgres":
        from store import postgres_server

        database = postgres_server.new_database()

    told = on_ray(home, 12, "lose", database)

    assert told["digests"] == on_this_machine(yard, 12, monkeypatch)
    assert (told["ends"], told["violations"], told["nodes"]) == ({"complete": 12}, [], 2)
    assert told["requeues"] >= 1


def test_a_worker_elsewhere_is_lent_what_its_models_need_and_nothing_else(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("LLM_PROVIDER", "LLM_MODEL", "OPENAI_API_KEY", "GROQ_API_KEY", "MY_OTHER_SECRET")
    for name in names:
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(machine, "_LENT", {})
    monkeypatch.setenv("LLM_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("LLM_API_KEY", "key-for-that-address")
    monkeypatch.setenv("OPENAI_API_KEY", "key-for-openai")
    monkeypatch.setenv("MY_OTHER_SECRET", "x")

    assert loan(yard.workspace, ["policy/hold", "standin/analyst", "no-such/model"]) == {}
    assert loan(yard.workspace, ["openai/gpt-4o-mini"]) == {"OPENAI_API_KEY": "key-for-openai"}
    assert loan(yard.workspace, ["llm/fake", "policy/hold"]) == {
        "LLM_BASE_URL": "http://127.0.0.1:9/v1",
        "LLM_API_KEY": "key-for-that-address",
    }


def test_what_was_lent_is_not_in_the_environment_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_LENT", {})
    machine.lend({"GROQ_API_KEY": "lent"})
    assert machine.environment("GROQ_API_KEY") in ("lent", os.environ.get("GROQ_API_KEY"))
    assert os.environ.get("GROQ_API_KEY") != "lent"
