"""`pitboss study …` after a sweep: its page, its runs by axis, and one-line errors."""

from pathlib import Path

from run_command import pitboss, pitboss_ok, pitboss_refused

DAYS = ("--from", "2025-06-02", "--to", "2025-06-04")


def test_a_sweep_ends_in_a_page_and_its_runs_are_found_by_what_was_varied(home: Path, skill: Path) -> None:
    where = ("--home", home)
    asked = ("sweep", skill, *DAYS, "--model", "policy/sma_cross", "--vary", "risk.max_position_pct=10,20", *where)
    result = pitboss_ok(*asked, "--metric", "total_return_pct", "--json").json
    study_id = result["study_id"]
    assert result["by"] == "total_return_pct"
    assert Path(result["report"]) == (home / "reports" / f"study-{study_id}.html").absolute()
    page = Path(result["report"]).read_text("utf-8")
    assert "Effect of each field" in page

    best = result["trials"][0]["runs"][0]["run_id"]
    pitboss_ok("report", best, *where)
    again = home.parent / "again.html"
    assert pitboss_ok("study", "report", study_id[:6], "--out", again, *where).out.strip() == str(again.absolute())
    assert f'<a href="home/reports/{best}.html">' in again.read_text("utf-8")

    short = pitboss_ok("study", "runs", study_id, "--where", "max_position_pct=20", "--json", *where).json
    assert [run["study"]["point"] for run in short] == [{"risk.max_position_pct": "20"}]
    whole = pitboss_ok("study", "runs", study_id, "--where", "risk.max_position_pct=20", *where).out
    assert short[0]["run_id"] in whole
    assert "this study varies risk.max_position_pct" in pitboss_refused(
        "study", "runs", study_id, "--where", "seed=1", *where
    )
    assert "this study varies" in pitboss_refused("study", "runs", study_id, "--where", "max_position_pct", *where)
    assert "Choose from" in pitboss_refused("study", "runs", study_id, "--status", "done", *where)
    assert "2 runs would be deleted" in pitboss_ok("runs", "prune", "--study", study_id[:6], *where).out
    assert "there is no study" in pitboss_refused("runs", "prune", "--study", "nosuchstudy", *where)


def test_a_metric_that_no_run_has_is_refused_before_anything_is_made(home: Path, skill: Path) -> None:
    asked = ("sweep", skill, *DAYS, "--vary", "risk.max_position_pct=10,20", "--home", home)
    assert "did you mean sharpe?" in pitboss_refused(*asked, "--by", "sharp")
    assert "runs of the perp venue have no metric 'brier'" in pitboss_refused(*asked, "--metric", "brier")
    assert pitboss_ok("study", "list", "--json", "--home", home).json == []


def test_a_study_with_a_run_that_cannot_be_prepared_is_refused_before_anything_is_made(home: Path, skill: Path) -> None:
    where = ("--home", home)
    result = pitboss("arena", skill, *DAYS, "--models", "policy/random,policy/hold,policy/nope", *where)
    assert (result.code, "unknown policy 'policy/nope'" in result.err) == (2, True)
    assert pitboss_ok("study", "list", "--json", *where).json == pitboss_ok("runs", "list", "--json", *where).json == []


def test_a_sharpe_ratio_of_few_days_is_flagged_in_the_list_of_runs(home: Path, skill: Path) -> None:
    where = ("--home", home)
    days = ("--from", "2025-06-02", "--to", "2025-06-06")
    asked = ("sweep", skill, *days, "--model", "policy/sma_cross", "--vary", "risk.max_position_pct=10,20", *where)
    result = pitboss_ok(*asked, "--by", "sharpe", "--json").json
    assert [trial["few_days"] for trial in result["trials"]] == [True, True]
    assert pitboss_ok("study", "runs", result["study_id"], *where).out.count("(<20 days)") == 2
