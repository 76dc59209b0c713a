"""Data of version 0.1.0 is read, verified, continued, and reproduced with the same digests.

The fixtures are never made anew to let these tests pass: see `make_fixtures.py`. Everything goes through the command line, so
that nothing here depends on where a module is.
"""

import gzip
import json
import shutil
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from scenarios.pitboss_process import run_in_process

COMPAT = Path(__file__).parent
NOTED = json.loads((COMPAT / "fixtures" / "runs.json").read_text("utf-8"))
RUNS: dict[str, dict[str, Any]] = {run["name"]: run for run in NOTED["runs"]}
STORED = [name for name, run in RUNS.items() if run["stored"]]
CHANGED = ("predict decisions", "predict fork")
"""Runs with a mint that names no market among several: refused by B2_MARKET then, now it is the nearest open one."""
REPEATABLE = [
    name for name, run in RUNS.items() if run["command"] and name not in CHANGED and not name.endswith("answered again")
]
BUNDLED = [name for name, run in RUNS.items() if "bundle" in run]
INTERRUPTED = [name for name, run in RUNS.items() if run["status"] == "cancelled"]
SAME = ("ticks", "digest", "skill_digest", "data_digest", "metrics")


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noted commands name files relative to this folder."""
    monkeypatch.chdir(COMPAT)


@pytest.fixture(scope="session")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data under the runs, imported once; tests get copies."""
    home = tmp_path_factory.mktemp("compat-market")
    with chdir(COMPAT):
        for words in NOTED["data"]:
            run_in_process(*words, "--home", home)
    return home


@pytest.fixture
def fresh(tmp_path: Path, market: Path) -> Path:
    """A workspace with the data and nothing else."""
    return Path(shutil.copytree(market, tmp_path / "home"))


@pytest.fixture
def earlier(fresh: Path) -> Path:
    """A workspace with the data and the stored database as version 0.1.0 has left it."""
    return with_stored(fresh)


@pytest.fixture(scope="session")
def migrated(market: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same after the first command of this version, which changes its schema; tests get copies."""
    home = with_stored(Path(shutil.copytree(market, tmp_path_factory.mktemp("compat-migrated") / "home")))
    run_in_process("runs", "list", "--home", home)
    return home


@pytest.fixture
def stored(tmp_path: Path, migrated: Path) -> Path:
    """A workspace with the data and the stored database, which this version has opened before."""
    return Path(shutil.copytree(migrated, tmp_path / "home"))


def with_stored(home: Path) -> Path:
    (home / "pitboss.db").write_bytes(gzip.decompress((COMPAT / "fixtures" / "pitboss.db.gz").read_bytes()))
    return home


def told(run: dict[str, Any]) -> dict[str, Any]:
    """The part of a run's document that two honest runs share."""
    return {key: run[key] for key in SAME}


def verified(run: object, home: Path) -> dict[str, Any]:
    """What `runs verify` says of a run, or of a bundle, that must be sound."""
    found = run_in_process("runs", "verify", run, "--json", "--home", home).json
    assert found["problems"] == []
    assert found["ok"] is True
    return found


def test_a_stored_fork_says_where_it_was_forked_and_does_not_guess_its_source_s_model(stored: Path) -> None:
    shown = run_in_process("runs", "show", RUNS["perp fork"]["run_id"], "--json", "--home", stored).json
    assert shown["forked_from"]["run_id"].startswith("c4b8945b5ce2")
    assert (shown["forked_from"]["tick_at"], shown["forked_from"]["model"]) == ("2025-06-04T02:00:00Z", None)
    assert [part["model"] for part in shown["decided_by"]] == [None, shown["model"]]


def test_all_stored_runs_are_listed(earlier: Path) -> None:
    listed = run_in_process("runs", "list", "--json", "--home", earlier).json
    found = {run["run_id"]: run["status"] for run in listed}
    assert found == {RUNS[name]["run_id"]: RUNS[name]["status"] for name in STORED}


@pytest.mark.parametrize("name", STORED)
def test_a_stored_run_verifies_and_shows_what_was_noted(stored: Path, name: str) -> None:
    noted = RUNS[name]
    done = noted["status"] == "complete"
    assert verified(noted["run_id"], stored)["digest"] == (noted["digest"] if done else None)
    shown = run_in_process("runs", "show", noted["run_id"], "--json", "--home", stored).json
    assert (shown["run_id"], shown["status"]) == (noted["run_id"], noted["status"])
    assert (shown["skill_digest"], shown["data_digest"]) == (noted["skill_digest"], noted["data_digest"])
    assert told(shown) == told(noted) if done else shown["digest"] is None


@pytest.mark.parametrize("name", REPEATABLE)
def test_a_run_made_again_comes_out_as_noted(request: pytest.FixtureRequest, name: str) -> None:
    noted = RUNS[name]
    home: Path = request.getfixturevalue(noted["where"])
    for words in noted.get("before", ()):
        run_in_process(*words, "--home", home)
    again = run_in_process(*noted["command"], "--json", "--home", home, **noted.get("environment", {})).json
    assert told(again) == told(noted)


def test_only_the_mint_without_a_market_comes_out_otherwise_than_noted(fresh: Path) -> None:
    noted = RUNS["predict decisions"]
    again = run_in_process(*noted["command"], "--json", "--home", fresh).json
    assert again["ticks"] == noted["ticks"]
    before, now = noted["metrics"]["rejections_by_rule"], again["metrics"]["rejections_by_rule"]
    assert now == {**before, "B2_MARKET": before["B2_MARKET"] - 1}
    assert again["metrics"]["mints"] == noted["metrics"]["mints"] + 1


def test_a_fork_of_a_stored_run_that_now_comes_out_otherwise_is_refused(stored: Path) -> None:
    result = run_in_process(*RUNS["predict fork"]["command"], "--home", stored, code=1)
    assert "came out differently" in result.err


@pytest.mark.parametrize("name", ["perp model", "predict model"])
def test_replies_that_were_stored_without_their_server_serve_no_server(stored: Path, name: str) -> None:
    noted = RUNS[f"{name} answered again"]
    again = run_in_process(*noted["command"], "--json", "--home", stored, code=1, **noted["environment"])
    assert "cannot reach 127.0.0.1:9" in again.err


@pytest.mark.parametrize("name", ["perp model", "predict model"])
def test_a_stored_run_of_a_model_is_replayed_from_its_records(stored: Path, name: str) -> None:
    noted, command = RUNS[name], list(RUNS[f"{name} answered again"]["command"])
    command[command.index("--model") + 1] = f"replay/{noted['run_id']}"
    assert run_in_process(*command, "--json", "--home", stored).json["digest"] == noted["digest"]


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundle_verifies_and_can_be_taken_in(tmp_path: Path, name: str) -> None:
    noted, home = RUNS[name], tmp_path / "elsewhere"
    assert verified(noted["bundle"], home)["digest"] == noted["digest"]
    taken = run_in_process("runs", "import", noted["bundle"], "--answers", "--json", "--home", home).json
    assert (taken["run_id"], taken["new"]) == (noted["run_id"], True)
    assert (taken["answers"] > 0) == name.endswith("model")
    assert verified(noted["run_id"], home)["digest"] == noted["digest"]
    assert told(run_in_process("runs", "show", noted["run_id"], "--json", "--home", home).json) == told(noted)


@pytest.mark.parametrize("name", INTERRUPTED)
def test_an_interrupted_run_goes_on_and_ends_in_the_digest_of_one_that_was_not(stored: Path, name: str) -> None:
    noted = RUNS[name]
    before = run_in_process("runs", "show", noted["run_id"], "--json", "--home", stored).json
    assert 0 < before["progress_pct"] < 100
    resumed = run_in_process("runs", "resume", noted["run_id"], "--json", "--home", stored).json
    assert (resumed["run_id"], resumed["status"]) == (noted["run_id"], "complete")
    assert told(resumed) == told(noted)
    assert verified(noted["run_id"], stored)["digest"] == noted["digest"]


@pytest.mark.parametrize("name", ["perp analyst", "perp analyst blind", "predict analyst", "predict live"])
def test_a_report_of_a_stored_run_is_written(stored: Path, name: str) -> None:
    run_id = RUNS[name]["run_id"]
    written = Path(run_in_process("report", run_id, "--json", "--home", stored).json["report"])
    assert written.is_relative_to(stored)
    assert run_id in written.read_text("utf-8")
