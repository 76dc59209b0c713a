"""What a newcomer does first, in the order in which they do it."""

from pathlib import Path

import pytest
from pitboss_process import run_in_process

from pitboss.runs import first_steps


def test_init_data_check_preview_backtest_verify_report(tmp_path: Path, home: Path) -> None:
    run_in_process("init", tmp_path / "mine")
    file = tmp_path / "mine" / "trend-thesis.yaml"
    assert run_in_process("skill", "check", file, "--json", "--home", home).json["ok"] is True
    preview = run_in_process("skill", "preview", file, "--json", "--home", home).json
    assert preview["user"].startswith("## Time")
    words = ("--from", "2025-03-15", "--to", "2025-03-17", "--home", home)
    run = run_in_process("backtest", file, *words, "--json").json
    assert "SYNTHETIC" in run_in_process("runs", "show", run["run_id"], "--home", home).out
    assert run_in_process("runs", "verify", run["run_id"], "--home", home).out.strip() == f"OK {run['digest']}"
    page = Path(run["report"]).read_text()
    assert "Synthetic market" in page
    assert "Not a language model" in page


def test_the_demo_shows_a_table_a_refusal_a_proof_and_what_to_type_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_steps, "TO", "2025-01-24")
    said = run_in_process("demo", "--home", tmp_path / "demo").out
    for words in ("SYNTHETIC", "NOT A LANGUAGE MODEL", "Return", "R3_POSITION_CAP", "beyond", "verified:", "next:"):
        assert words in said
    (report,) = (tmp_path / "demo" / "reports").glob("*.html")
    assert str(report) in said
