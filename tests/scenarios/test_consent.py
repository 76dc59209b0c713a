"""The question before dear work, on a real terminal: a pseudo-terminal that controls the program, with a person's keys."""

from pathlib import Path

import pytest
from pitboss_process import run_in_process
from terminal_keys import run_at_terminal

from pitboss.testing.provider import decide
from provider_thread import fake_provider

QUESTION = "continue? [y/N]"
TICKS = 24
RANGE = ("--from", "2025-03-20", "--to", "2025-03-20T06:00:00Z")
DEAR = ("--model", "llm/fake", "--price-in", "1000", "--price-out", "1000", "--speculate", "0")
CTRL_C, CTRL_D = "\x03", "\x04"


@pytest.mark.parametrize(
    ("keys", "code", "calls"),
    [("n\n", 2, 0), (CTRL_D, 2, 0), (CTRL_C, 130, 0), ("y\n", 0, TICKS)],
    ids=["n", "ctrl-d", "ctrl-c", "y"],
)
def test_a_dear_backtest_asks_on_a_terminal_and_spends_only_after_yes(
    keys: str, code: int, calls: int, home: Path, skill: Path
) -> None:
    with fake_provider(decide) as server:
        reached = {"LLM_BASE_URL": server.url, "LLM_API_KEY": "test-key-123456", "PITBOSS_DAILY_USD": "100000"}
        ended, shown = run_at_terminal(keys, QUESTION, "backtest", skill, *RANGE, *DEAR, "--home", home, **reached)
    assert (ended, server.calls) == (code, calls), shown
    assert "estimated cost: $" in shown.partition(QUESTION)[0]
    assert "Traceback" not in shown
    runs = run_in_process("runs", "list", "--json", "--home", home).json
    assert [run["status"] for run in runs] == (["complete"] if calls else [])
    if code == 2:
        assert "this may cost $" in shown.partition(QUESTION)[2]
