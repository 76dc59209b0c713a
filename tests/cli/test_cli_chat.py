"""`pitboss chat`: what a confirmed card does to the conversation if it fails."""

from decimal import Decimal

import pytest

from pitboss.chat.agent import ChatAnswer
from pitboss.chat.cards import Card
from pitboss.cli import chat
from pitboss.core.errors import BudgetExceeded, ReplayMismatch, TransientError, UserError
from pitboss.terminal import question
from pitboss.terminal.workspace_options import WorkspaceOptions


@pytest.mark.parametrize("error", [UserError, TransientError, BudgetExceeded, ReplayMismatch])
def test_a_card_that_fails_does_not_end_the_conversation(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(location: WorkspaceOptions, card: Card) -> int:
        raise error(f"{card.title} does not work")

    monkeypatch.setattr(chat, "run_card", fail)
    monkeypatch.setattr(question, "has_terminal", lambda: True)
    monkeypatch.setattr(question, "agrees", lambda text: True)
    cards = (Card("fork", "this fork", {}), Card("fork", "that fork", {}))

    chat._confirm_cards(WorkspaceOptions(), ChatAnswer("", Decimal(0), cards=cards))

    messages = capsys.readouterr().err
    assert "this fork does not work" in messages
    assert "that fork does not work" in messages
