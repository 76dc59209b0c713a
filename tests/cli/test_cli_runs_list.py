"""`pitboss runs list`: filters, and the runs of a study as one line of the table."""

from pathlib import Path

from run_command import pitboss_ok, pitboss_refused


def test_runs_are_filtered_and_those_of_a_study_are_one_line(home: Path, skill: Path) -> None:
    where = ("--home", home)
    single = pitboss_ok("backtest", skill, "--from", "-3h", "--model", "policy/hold", "--json", *where).json["run_id"]
    study = pitboss_ok(
        "sweep", skill, "--from=-3h", "--vary", "model=policy/hold,policy/sma_cross", "--json", *where
    ).json
    runs = pitboss_ok("study", "runs", study["study_id"], "--json", *where).json
    parts = {run["run_id"] for run in runs}
    assert len(parts) == 2
    assert {(run["from"], run["to"]) for run in runs} == {("2025-06-05T21:00:00Z", "2025-06-06T00:00:00Z")}
    assert pitboss_ok("runs", "show", "last", "--json", *where).json["run_id"] == single

    listed = pitboss_ok("runs", "list", "--json", *where).json
    assert {run["run_id"] for run in listed} == {single, *parts}
    assert {run["study_id"] for run in listed} == {None, study["study_id"]}

    heading, *lines = pitboss_ok("runs", "list", *where).out.splitlines()
    assert heading.split() == ["run", "status", "skill", "model", "range", "return", "created"]
    assert [line.split()[0] for line in lines] == [study["study_id"], single]
    assert "2 complete" in lines[0]
    assert "grid study, 2 runs" in lines[0]

    opened = pitboss_ok("runs", "list", "--study", study["study_id"][:6], *where).out.splitlines()[1:]
    assert {line.split()[0] for line in opened} == parts

    held = pitboss_ok("runs", "list", "--model", "policy/hold", *where).out.splitlines()[1:]
    assert [line.split()[0] for line in held] == [study["study_id"], single]
    assert "grid study, 1 run " in held[0]
    json_held = pitboss_ok("runs", "list", "--model", "policy/hold", "--json", *where).json
    assert {run["model"] for run in json_held} == {"policy/hold"}
    assert len(json_held) == 2
    assert pitboss_ok("runs", "list", "--skill", "other", "--json", *where).json == []
    assert "there are no runs with these properties" in pitboss_ok("runs", "list", "--skill", "other", *where).out
    assert len(pitboss_ok("runs", "list", "--skill", "little", "--limit", "1", *where).out.splitlines()) == 2
    assert "there is no study 'zz'" in pitboss_refused("runs", "list", "--study", "zz", *where)
