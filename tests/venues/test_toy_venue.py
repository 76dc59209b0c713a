"""The toy venue of examples/venue, installed as a package of its own: everything works on it without a changed line here."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RANGE = ("--from", "2025-02-10", "--to", "2025-02-12")


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package built and installed into a folder, and a workspace with the demo market and the example skill."""
    folder = tmp_path_factory.mktemp("toy")
    source = folder / "source"
    shutil.copytree(ROOT / "examples" / "venue", source)
    words = ("-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--no-build-isolation")
    subprocess.run([sys.executable, *words, "--target", str(folder / "site"), str(source)], check=True, cwd=folder)
    told(folder, "data", "demo")
    told(folder, "init", "skills", "--venue", "coin")
    return folder


def told(folder: Path, *words: str, code: int = 0) -> str:
    """Run the program with the toy venue installed, in a process of its own; gives its standard output."""
    path = os.pathsep.join([str(folder / "site"), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": path, "PITBOSS_HOME": str(folder / "home")}
    command = [sys.executable, "-m", "pitboss", *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout


def read(folder: Path, *words: str) -> Any:
    return json.loads(told(folder, *words, "--json"))


def test_an_installed_venue_is_listed_with_its_package(toy: Path) -> None:
    row = next(row for row in read(toy, "venues", "list") if row["name"] == "coin")
    assert (row["package"], row["version"], row["commands"]) == ("pitboss-coin", "0.1.0", ["backtest"])


def test_its_skills_are_checked_previewed_and_described(toy: Path) -> None:
    assert read(toy, "skill", "check", "skills/coin.yaml")["ok"]
    broken = toy / "broken.yaml"
    broken.write_text((toy / "skills" / "coin.yaml").read_text().replace("max_stake: 5", "max_stakes: 5"))
    told(toy, "skill", "check", str(broken), code=2)
    shown = read(toy, "skill", "preview", "skills/coin.yaml", "--at", "2025-02-11T05:00:00Z")
    assert "## Flips, newest first" in shown["user"]
    assert [tool["name"] for tool in shown["tools"]] == ["past_flips", "place_bet"]
    assert "max_stake" in json.loads(told(toy, "skill", "schema", "--venue", "coin"))["properties"]
    assert [tool["name"] for tool in read(toy, "tools", "list", "--venue", "coin")] == ["past_flips", "place_bet"]


def test_a_backtest_is_judged_recorded_verified_resumed_forked_and_reported(toy: Path) -> None:
    run = read(toy, "backtest", "skills/coin.yaml", *RANGE)
    assert run["status"] == "complete"
    assert run["metrics"]["rejections_by_rule"]["C2_STAKE"] > 0
    assert run["metrics"]["bets"] == run["metrics"]["total_accepted_actions"] > 0
    assert read(toy, "coin", "backtest", "skills/coin.yaml", *RANGE)["digest"] == run["digest"]
    told(toy, "runs", "verify", run["run_id"])
    page = Path(told(toy, "report", run["run_id"]).strip()).read_text("utf-8")
    assert "C2_STAKE" in page
    assert "above the cap or the cash at hand" in page
    fills = told(toy, "runs", "export", run["run_id"], "--what", "fills").splitlines()
    assert len(fills) == run["metrics"]["bets"]
    told(toy, "runs", "fork", run["run_id"], "--at", "2025-02-11T00:00:00Z", "--model", "policy/heads")


def test_decisions_come_from_a_file_and_a_policy_too(toy: Path) -> None:
    decisions = toy / "decisions.jsonl"
    bet = {"action": "bet", "side": "tails", "stake": 2, "reason": "why not"}
    decisions.write_text(json.dumps({"tick_at": "2025-02-10T03:00:00Z", "proposal": bet}) + "\n")
    run = read(toy, "backtest", "skills/coin.yaml", *RANGE, "--decisions", str(decisions))
    assert run["metrics"]["bets"] == 1
    heads = read(toy, "backtest", "skills/coin.yaml", *RANGE, "--model", "policy/heads")
    assert heads["metrics"]["bets"] == 48
    told(toy, "backtest", "skills/coin.yaml", *RANGE, "--model", "policy/tails", code=2)


def test_options_of_other_venues_are_refused(toy: Path) -> None:
    told(toy, "backtest", "skills/coin.yaml", *RANGE, "--fees-taker-bps", "1", code=2)


def test_sweeps_arenas_and_the_queue_take_its_skills(toy: Path) -> None:
    study = read(toy, "sweep", "skills/coin.yaml", *RANGE, "--grid", "max_stake=1,5")
    assert [trial["point"] for trial in study["trials"]] == [{"max_stake": "1"}, {"max_stake": "5"}]
    arena = read(toy, "arena", "skills/coin.yaml", *RANGE, "--models", "standin/analyst", "--repeats", "1")
    assert {entry["model"] for entry in arena["entries"]} == {"standin/analyst", "policy/heads"}
    queued = read(toy, "submit", "skills/coin.yaml", *RANGE, "--model", "policy/heads")["run_id"]
    told(toy, "worker", "--idle-exit", "1s")
    assert read(toy, "runs", "show", queued)["status"] == "complete"


def test_an_uninstalled_venue_is_a_clear_error_that_lists_those_installed(toy: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PITBOSS_HOME": str(toy / "home")}
    command = [sys.executable, "-m", "pitboss", "skill", "check", "skills/coin.yaml"]
    done = subprocess.run(command, cwd=toy, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no venue 'coin'; installed: perp, predict" in done.stderr
