"""`make demo-community` tells its whole story: a refusal, an approval, the bug, the report, the answer, verified runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.proof
def test_the_demo_finds_reports_and_verifies(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples/community/demo.py"), "--home", str(tmp_path / "home")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=tmp_path, check=False)
    assert result.returncode == 0, result.stderr
    steps = (
        r"transferOwnership → refused by C10_FUNCTION",
        r"deposit → refused by C17_APPROVAL",
        r"^person +approves",
        r"deposit → mined in block \d+, status 1",
        r"withdraw → mined",
        r"withdraw → mined",
        r"create_thread withdraw pays the same deposit out",
        r"^reviewer .*Confirmed",
        r"^owner +answers the report",
        r"^verified .*OK [0-9a-f]{64}",
        r"^verified .*OK [0-9a-f]{64}",
    )
    position = 0
    for step in steps:
        match = re.compile(step, re.MULTILINE).search(result.stdout, position)
        assert match is not None, (step, result.stdout)
        position = match.end()
