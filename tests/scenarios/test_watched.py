"""Watching a run does not change its digest, and the spans that are reported are consistent."""

import json
from pathlib import Path
from typing import Any

import pytest
from pitboss_process import run_in_process

from pitboss.bootstrap.logs import stop_logs
from pitboss.cli.main import main

ONE_HOUR = ("--from", "2025-03-20", "--to", "2025-03-20T01:00:00Z")


def spans(text: str) -> list[dict[str, Any]]:
    """The spans among what was printed, in the order in which they ended."""
    found, place, reader = [], text.find("{"), json.JSONDecoder()
    while place >= 0:
        document, place = reader.raw_decode(text, place)
        if "context" in document:
            found.append(document)
        place = text.find("\n{", place)
        place += place >= 0
    return found


def test_telemetry_and_logs_change_no_digest_and_tell_run_ticks_and_tools(
    home: Path, skill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("backtest", skill, *ONE_HOUR, "--json", "--home", home)
    plain = run_in_process(*words)
    assert plain.err == ""
    monkeypatch.setenv("PITBOSS_TELEMETRY", "console")
    monkeypatch.setenv("PITBOSS_LOG_LEVEL", "info")
    monkeypatch.setenv("PITBOSS_LOG_FILE", str(home / "log"))
    result = run_in_process(*words)
    stop_logs()
    assert result.json["digest"] == plain.json["digest"]
    seen = spans(result.err)
    (run,) = [span for span in seen if span["name"] == "pitboss.run"]
    ticks = [span for span in seen if span["name"] == "pitboss.tick"]
    tools = [span for span in seen if span["name"].startswith("execute_tool ")]
    assert run["attributes"]["pitboss.run_id"] == result.json["run_id"]
    assert (run["attributes"]["pitboss.status"], run["attributes"]["pitboss.ticks"]) == ("complete", 4)
    assert {span["parent_id"] for span in ticks} == {run["context"]["span_id"]}
    assert len(ticks) == 4
    assert tools
    assert {span["parent_id"] for span in tools} <= {span["context"]["span_id"] for span in ticks}
    lines = [json.loads(line) for line in (home / "log").read_text().splitlines()]
    assert [line["message"] for line in lines] == ["run begins", "run ended"]
    assert {line["run_id"] for line in lines} == {result.json["run_id"]}


def test_a_wrong_place_for_telemetry_is_said_before_anything_is_stored(
    home: Path, skill: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("PITBOSS_TELEMETRY", "somewhere")
        assert main(["backtest", str(skill), *ONE_HOUR, "--home", str(home)]) == 2
    assert "telemetry: 'somewhere' is not a valid target" in capsys.readouterr().err
    assert run_in_process("runs", "list", "--json", "--home", home).json == []
