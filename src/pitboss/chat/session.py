"""A question from outside, as `pitboss chat` and `/api/chat` ask it: opens what is read, connects the model, and asks."""

from dataclasses import dataclass

from pitboss.bootstrap.settings import Settings
from pitboss.chat.agent import ChatAnswer, Tell, ask
from pitboss.chat.chat_model import connected_model
from pitboss.chat.context import reading
from pitboss.chat.conversation import Conversation
from pitboss.chat.spending import ChatBudget
from pitboss.store.database import Database


@dataclass(frozen=True, slots=True)
class ChatSession:
    """Who asks, in which workspace, and with which model. `database` is written only to record what the chat costs."""

    settings: Settings
    database: Database
    owner: str
    """Whose runs may be read."""
    person: str
    """Whose budget pays."""
    model: str

    def budget(self) -> ChatBudget:
        """The budget of the person."""
        return ChatBudget(self.database, self.owner, self.person, self.settings.chat_daily_usd)

    async def ask(self, conversation: Conversation, question: str, tell: Tell = lambda event: None) -> ChatAnswer:
        """Answer a question."""
        budget = self.budget()
        budget.require()
        with reading(self.settings, self.owner, conversation.about) as context:
            async with connected_model(context.workspace, self.model, budget) as connected:
                return await ask(context, connected, conversation, question, tell)
