"""Arenas, sweeps and previews of community skills: judged by bugs found, without returns, at a sensible instant."""

import json
from pathlib import Path
from typing import Any

import pytest

from pitboss.audit.default_range import with_range
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.cli.main import main
from pitboss.core.errors import UserError
from pitboss.core.instant import iso
from pitboss.jobs.study_plans import sweep_plan
from pitboss.report.arena import compose as compose_arena
from pitboss.report.shell import html_document
from pitboss.report.study import compose as compose_study
from pitboss.sim.study.axis import Axis
from pitboss.skill.parse import parse
from pitboss.venues.community.request import CommunityRequest
from pitboss.venues.community.venue import VENUE

RANGE = ("--from", "2025-01-01", "--to", "2025-01-01T00:06Z")
ACCOUNT_WORDS = ("return", "equity", "sharpe", "drawdown", "overfitting")


@pytest.fixture
def run_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command in a folder with the example skill; returns standard output."""
    (tmp_path / "auditor.yaml").write_text(VENUE.examples()["contract-auditor.yaml"])
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> str:
        capsys.readouterr()
        assert main([*words, "--home", "home"]) == 0
        return capsys.readouterr().out

    return run


def test_an_arena_ranks_by_bugs_found_and_equal_entrants_share_a_rank(run_command: Any) -> None:
    words = ("arena", "auditor.yaml", *RANGE, "--models", "standin/analyst", "--repeats", "2")
    arena = json.loads(run_command(*words, "--json"))
    assert (arena["by"], arena["has_account"]) == ("bugs_found_pct", False)
    assert [(entry["model"], entry["rank"], entry["metrics"]["bugs_found_pct"]) for entry in arena["entries"]] == [
        ("standin/analyst", [1, 1], 100.0),
        ("policy/silent", [2, 3], 0.0),
        ("policy/alarmist", [2, 3], 0.0),
    ]
    assert arena["entries"][0]["values"] == [100.0, 100.0]
    assert arena["entries"][2]["metrics"]["false_reports"] == 4

    shown = run_command(*words)
    assert "Ranked by share of bugs found." in shown
    assert shown.index("standin/analyst") < shown.index("policy/silent") < shown.index("policy/alarmist")
    table = shown[: shown.index("Ranked by")].lower()
    assert [word for word in ACCOUNT_WORDS if word in table] == []
    page = _text(Path("home/reports") / f"arena-{arena['study_id']}.html")
    assert "Best share of bugs found" in page
    assert "nothing here says which differences are due to chance" in page
    runs = run_command("study", "runs", arena["study_id"])
    assert "share of bugs found" in runs
    assert "total_return_pct" not in runs


def test_an_arena_without_results_has_a_page(run_command: Any) -> None:
    arena = json.loads(
        run_command("arena", "auditor.yaml", *RANGE, "--models", "standin/analyst", "--repeats", "1", "--json")
    )
    bare = [
        {**entry, "rank": None, "score": None, "values": [], "metrics": dict.fromkeys(entry["metrics"])}
        for entry in arena["entries"]
    ]
    assert "No run has a result yet" in html_document(compose_arena({**arena, "entries": bare, "complete": 0}))


def test_a_sweep_ranks_by_bugs_found_and_says_nothing_about_returns(run_command: Any) -> None:
    words = ("sweep", "auditor.yaml", *RANGE, "--vary", "model=policy/alarmist,standin/analyst")
    study = json.loads(run_command(*words, "--json"))
    assert (study["by"], "luck" in study) == ("bugs_found_pct", False)
    assert [trial["point"]["model"] for trial in study["trials"]] == ["standin/analyst", "policy/alarmist"]
    shown = run_command(*words).lower()
    assert [word for word in ACCOUNT_WORDS if word in shown] == []
    page = html_document(compose_study(study))
    assert 'id="luck"' not in page
    assert "Deflated" not in page

    fewest = json.loads(run_command(*words, "--by", "false_reports", "--json"))
    assert fewest["better"] == "less"
    assert fewest["trials"][0]["point"]["model"] == "standin/analyst"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"by": "sharpe"}, "have no metric 'sharpe'"),
        ({"by": "deflated_sharpe"}, "have no metric"),
        ({"by": "spent_wei"}, "have no metric"),
        ({"walk": "2m/2m"}, "a walk-forward joins returns"),
    ],
)
def test_what_needs_returns_is_refused(options: dict[str, str], problem: str) -> None:
    request = CommunityRequest({"venue": "community", "name": "a"}, from_at=0, to_at=600_000)
    with pytest.raises(UserError, match=problem):
        sweep_plan(request, [Axis("seed", ("0", "1"))], **options)  # type: ignore[arg-type]


def test_a_preview_without_a_time_is_not_of_1970(run_command: Any) -> None:
    shown = json.loads(run_command("skill", "preview", "auditor.yaml", "--json"))
    assert shown["at"] == "2025-01-01T00:00:00Z"
    assert "1970" not in shown["user"]
    assert json.loads(run_command("skill", "preview", "auditor.yaml", "--at", "2025-06-01T12:00Z", "--json"))["at"] == (
        "2025-06-01T12:00:00Z"
    )


def test_the_table_of_a_red_team_has_no_column_about_an_account(run_command: Any) -> None:
    shown = run_command("redteam", "auditor.yaml", "--ticks", "1", "--limit", "1", "--slots", "news")
    assert "breaches" in shown
    assert "equity" not in shown


def test_an_audit_without_a_range_has_one(tmp_path: Path) -> None:
    skill = parse(VENUE.examples()["contract-auditor.yaml"]).value
    with open_workspace(load_settings(tmp_path)) as workspace:
        request = with_range(workspace, CommunityRequest(skill, from_at=0, to_at=1), None, None, most_ticks=10)
    assert (iso(request.from_at), iso(request.to_at)) == ("2024-12-31T23:50:00Z", "2025-01-01T00:00:00Z")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
