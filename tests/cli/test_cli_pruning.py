"""`pitboss runs prune` and `runs spend`: counted first, removed when asked, and what stays still verifies."""

from pathlib import Path

from run_command import pitboss_ok, pitboss_refused


def test_old_runs_go_when_asked_and_the_kept_one_verifies(home: Path, skill: Path) -> None:
    asked = (
        "backtest",
        skill,
        "--from",
        "2025-06-02",
        "--to",
        "2025-06-04",
        "--model",
        "policy/sma_cross",
        "--home",
        home,
    )
    made = [pitboss_ok(*asked, "--json", "--seed", number).json for number in range(3)]
    assert "1 run would be deleted" in pitboss_ok("runs", "prune", "--keep", 2, "--home", home).out
    assert len(pitboss_ok("runs", "list", "--json", "--home", home).json) == 3
    pruned = pitboss_ok("runs", "prune", "--keep", 1, "--yes", "--json", "--home", home).json
    assert len(pruned["runs"]) == 2
    (left,) = pitboss_ok("runs", "list", "--json", "--home", home).json
    assert left["run_id"] == made[-1]["run_id"]
    assert made[-1]["digest"] in pitboss_ok("runs", "verify", left["run_id"], "--home", home).out
    assert not any(Path(run["report"]).exists() for run in made[:-1])
    assert Path(made[-1]["report"]).exists()
    assert pitboss_ok("runs", "spend", "--json", "--home", home).json == []
    assert "no runs are selected" in pitboss_refused("runs", "prune", "--home", home)
    assert "is not complete, error or cancelled" in pitboss_refused(
        "runs", "prune", "--keep", 0, "--status", "done", "--home", home
    )
