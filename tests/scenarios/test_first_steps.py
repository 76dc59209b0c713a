"""What a newcomer does first, in the order in which they do it."""

from pathlib import Path

import pytest
from program import tell

from pitboss.cli import demo
from pitboss.cli.main import main


def test_init_data_check_preview_backtest_verify_report(tmp_path: Path, home: Path) -> None:
    tell("init", tmp_path / "mine")
    file = tmp_path / "mine" / "trend-thesis.yaml"
    assert tell("skill", "check", file, "--json", "--home", home).json["ok"] is True
    preview = tell("skill", "preview", file, "--json", "--home", home).json
    assert preview["user"].startswith("## Time")
    words = ("--from", "2025-03-15", "--to", "2025-03-17", "--home", home)
    run = tell("backtest", file, *words, "--json").json
    assert "SYNTHETIC" in tell("runs", "show", run["run_id"], "--home", home).out
    assert tell("runs", "verify", run["run_id"], "--home", home).out.strip() == f"OK {run['digest']}"
    page = Path(run["report"]).read_text()
    assert "Synthetic market" in page
    assert "Not a language model" in page


def test_the_demo_shows_a_table_a_refusal_a_proof_and_what_to_type_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "TO", "2025-02-12")
    assert main(["demo", "--home", str(tmp_path / "demo")]) == 0
    said = capsys.readouterr().out
    for words in ("SYNTHETIC", "NOT A LANGUAGE MODEL", "Return", "R3_POSITION_CAP", "beyond", "verified:", "next:"):
        assert words in said
    (report,) = (tmp_path / "demo" / "reports").glob("*.html")
    assert str(report) in said
    assert main(["demo", "--home", str(tmp_path / "demo")]) == 0, "and it can be run again"
