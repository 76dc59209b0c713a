"""`runs export --bundle`, `verify FILE`, `import` and `fork` on the command line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from run_command import pitboss, pitboss_ok, pitboss_refused


@pytest.fixture
def run(finished_run: Callable[[str], dict[str, Any]]) -> str:
    return finished_run("standin/analyst")["run_id"]


def test_a_bundle_is_written_verified_without_a_workspace_and_imported(home: Path, run: str, tmp_path: Path) -> None:
    pitboss_ok("runs", "export", run, "--bundle", "run.zip", "--home", home)
    before = sorted(path.name for path in tmp_path.iterdir())

    checked = pitboss_ok("runs", "verify", "run.zip", "--json").json

    assert (checked["ok"], checked["run_id"], checked["problems"]) == (True, run, [])
    assert checked["unproven"]
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    other = tmp_path / "other"
    assert pitboss_ok("runs", "import", "run.zip", "--home", other, "--json").json == {
        "run_id": run,
        "new": True,
        "answers": 0,
    }
    assert (
        pitboss_ok("runs", "verify", run, "--home", other).out == pitboss_ok("runs", "verify", run, "--home", home).out
    )
    assert "is already stored here" in pitboss_ok("runs", "import", "run.zip", "--home", other).out


def test_a_changed_bundle_is_exit_1_and_no_bundle_is_exit_2(home: Path, run: str, tmp_path: Path) -> None:
    pitboss_ok("runs", "export", run, "--bundle", "run.zip", "--home", home)
    data = bytearray(Path("run.zip").read_bytes())
    data[len(data) // 3] ^= 1
    Path("changed.zip").write_bytes(data)
    Path("cut.zip").write_bytes(data[: len(data) // 2])

    changed = pitboss("runs", "verify", "changed.zip")
    assert changed.code == 1
    assert changed.out.startswith("DIFFERENT: ")
    assert "fails its checks" in pitboss_refused("runs", "import", "changed.zip", "--home", tmp_path / "other")
    assert "not a readable bundle" in pitboss_refused("runs", "verify", "cut.zip")
    assert "not a readable bundle" in pitboss_refused("runs", "import", "cut.zip", "--home", tmp_path / "other")
    assert "there is no file" in pitboss_refused("runs", "verify", "none.zip")
    assert not (tmp_path / "other").exists()


def test_exporting_needs_to_know_what(home: Path, run: str) -> None:
    assert "either --what or --bundle" in pitboss_refused("runs", "export", run, "--home", home)
    assert "either --what or --bundle" in pitboss_refused(
        "runs", "export", run, "--what", "fills", "--bundle", "run.zip", "--home", home
    )


def test_a_fork_shows_where_the_two_paths_part(home: Path, run: str) -> None:
    words = ("runs", "fork", run, "--at", "2025-06-03", "--model", "policy/hold", "--home", home)

    forked = pitboss_ok(*words, "--json").json

    assert forked["forked_from"]["run_id"] == run
    assert forked["model"] == "policy/hold"
    assert forked["difference"]["first_difference"]["tick_at"] == "2025-06-03T00:00:00Z"
    assert pitboss_ok("runs", "diff", run, forked["run_id"], "--home", home, "--json").json == forked["difference"]
    assert pitboss_ok("runs", "verify", forked["run_id"], "--home", home).out == f"OK {forked['digest']}\n"
    assert "first difference" in pitboss_ok(*words).out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--at", "2024-01-01"), "has no tick there"),
        (("--at", "soon"), "cannot read"),
        (("--at", "2025-06-03", "--set", "risk.max_leverag=1"), "no such field"),
        (("--at", "2025-06-03", "--set", "risk.max_leverage=-1"), "max_leverage"),
        (("--at", "2025-06-03", "--model", "policy/none"), "unknown"),
        (("--at", "2025-06-03", "--set", "schedule.every=1h"), "cannot change schedule.every"),
        (("--at", "2025-06-03", "--price-in", "1"), "go together"),
    ],
)
def test_a_fork_that_cannot_be_is_refused_and_leaves_nothing(
    home: Path, run: str, words: tuple[str, ...], said: str
) -> None:
    assert said in pitboss_refused("runs", "fork", run, *words, "--home", home)
    assert len(pitboss_ok("runs", "list", "--home", home, "--json").json) == 1
