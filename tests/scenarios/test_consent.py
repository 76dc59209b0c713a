"""The question before dear work, on a real terminal: a pseudo-terminal that controls the program, with a person's keys."""

import os
import pty
import select
from pathlib import Path

import pytest
from program import ENVIRONMENT, PATIENCE_S, here

from forked import Forked
from pitboss.testing.provider import decide
from serving import served

QUESTION = "continue? [y/N]"
TICKS = 24
RANGE = ("--from", "2025-03-20", "--to", "2025-03-20T06:00:00Z")
DEAR = ("--model", "llm/fake", "--price-in", "1000", "--price-out", "1000", "--speculate", "0")
CTRL_C, CTRL_D = "\x03", "\x04"


def answered(keys: str, *words: object, **environment: str) -> tuple[int, str]:
    """The exit code and what the terminal showed, after these keys were typed when the program asked."""
    ours, theirs = pty.openpty()
    variables = {**ENVIRONMENT, "NO_COLOR": "1", "COLUMNS": "200", **environment}
    process = Forked("-m", "pitboss", *words, env=variables, terminal=theirs)
    os.close(theirs)
    shown = b""
    try:
        while piece := read(ours):
            shown += piece
            if keys and QUESTION.encode() in shown:
                os.write(ours, keys.encode())
                keys = ""
        return process.wait(PATIENCE_S), shown.decode("utf-8", "replace")
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read(terminal: int) -> bytes:
    """What was written to the terminal since; empty once the program has closed it."""
    assert select.select([terminal], [], [], PATIENCE_S)[0], "the program neither writes nor ends"
    try:
        return os.read(terminal, 65_536)
    except OSError:  # how Linux says that the other side is closed
        return b""


@pytest.mark.parametrize(
    ("keys", "code", "calls"),
    [("n\n", 2, 0), (CTRL_D, 2, 0), (CTRL_C, 130, 0), ("y\n", 0, TICKS)],
    ids=["n", "ctrl-d", "ctrl-c", "y"],
)
def test_a_dear_backtest_asks_on_a_terminal_and_spends_only_after_yes(
    keys: str, code: int, calls: int, home: Path, skill: Path
) -> None:
    with served(decide) as server:
        reached = {"LLM_BASE_URL": server.url, "LLM_API_KEY": "test-key-123456", "PITBOSS_DAILY_USD": "100000"}
        ended, shown = answered(keys, "backtest", skill, *RANGE, *DEAR, "--home", home, **reached)
    assert (ended, server.calls) == (code, calls), shown
    assert "estimated cost: $" in shown.partition(QUESTION)[0]
    assert "Traceback" not in shown
    runs = here("runs", "list", "--json", "--home", home).json
    assert [run["status"] for run in runs] == (["complete"] if calls else [])
    if code == 2:
        assert "this may cost $" in shown.partition(QUESTION)[2]
