"""Conversations: what was asked and answered, within limits, so that a follow-up question makes sense.

They are kept in memory only. The server keeps a bounded number of them; the oldest make room.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from decimal import Decimal
from threading import Lock

from pitboss.chat.number_check import FactNumbers
from pitboss.core.money import ZERO

MOST_TURNS, MOST_CHARS = 8, 2_000
MOST_CONVERSATIONS, MOST_OF_ONE = 128, 16


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """One question with its answer, both cut."""

    question: str
    answer: str


@dataclass(eq=False)
class Conversation:
    """A conversation of one person about one run or the workspace."""

    id: str
    owner: str = ""
    about: str = ""
    turns: list[ChatTurn] = field(default_factory=list[ChatTurn])
    facts: FactNumbers = field(default_factory=FactNumbers)
    cost_usd: Decimal = ZERO
    is_busy: bool = False

    def add(self, question: str, answer: str) -> None:
        """Keep a turn; the oldest one beyond the limit is forgotten."""
        self.turns = [*self.turns, ChatTurn(question[:MOST_CHARS], answer[:MOST_CHARS])][-MOST_TURNS:]


class Conversations:
    """The conversations of a server, the newest of each person. Safe to use from threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[str, Conversation] = OrderedDict()

    def find(self, conversation_id: str, owner: str, about: str) -> Conversation | None:
        """A conversation of this person about the same thing; None if it is not kept any more."""
        with self._lock:
            conversation = self._kept.get(conversation_id)
            if conversation is None or (conversation.owner, conversation.about) != (owner, about):
                return None
            self._kept.move_to_end(conversation_id)
            return conversation

    def keep(self, conversation: Conversation) -> None:
        """Keep a new conversation; the oldest ones beyond the limits are dropped."""
        with self._lock:
            self._kept[conversation.id] = conversation
            own = [key for key, other in self._kept.items() if other.owner == conversation.owner]
            for key in own[: max(0, len(own) - MOST_OF_ONE)]:
                del self._kept[key]
            while len(self._kept) > MOST_CONVERSATIONS:
                self._kept.popitem(last=False)

    def __len__(self) -> int:
        return len(self._kept)
