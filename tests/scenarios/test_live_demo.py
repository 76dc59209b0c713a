"""`make demo-live` tells its whole story: positions with stops, an outage, a halt, a resume, equal accounts, verified runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_demo_does_not_replace_a_folder_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    command = [sys.executable, str(ROOT / "examples/live/demo.py"), "--home", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1
    assert result.stderr == f"error: {tmp_path} is not empty and not of this demo; choose another --home\n"
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.proof
def test_the_demo_trades_halts_resumes_and_agrees_with_the_exchange(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples/live/demo.py"), "--home", str(tmp_path / "home")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=tmp_path, check=False)
    assert result.returncode == 0, (result.stderr, result.stdout)
    steps = (
        r"^agent .*not a language model",
        r"^live .*open_long BTC .* USD → allowed",
        r"^exchange .*holds [\d.]+ BTC; our records say the same",
        r"^exchange .*stop [\d.]+ at",
        r"^outage",
        r"the agent is not asked",
        r"^exchange .*2 orders still rest there",
        r"^exchange .*holds [\d.]+ BTC; our records say the same",
        r"^live .*halted: drawdown",
        r"^exchange .*holds nothing; our records say the same",
        r"resume → error: a halt is lifted only with a reason",
        r"resume --reason .* → resume: the deployment is running",
        r"^live .*open_long BTC .* USD → allowed",
        r"flatten: the deployment is paused",
        r"^exchange .*holds nothing; our records say the same",
        r"stop: the deployment is stopped",
        r"^compared .*(\d+) fills at the exchange, the same \1 in our records; no order twice",
        r"^verified .*OK [0-9a-f]{64}",
        r"^verified .*OK [0-9a-f]{64}",
    )
    position = 0
    for step in steps:
        match = re.compile(step, re.MULTILINE).search(result.stdout, position)
        assert match is not None, (step, result.stdout)
        position = match.end()
    halted, resumed = result.stdout.index("halted: drawdown"), result.stdout.index("is running")
    assert not re.search(r"^live .*open_", result.stdout[halted:resumed], re.MULTILINE)
