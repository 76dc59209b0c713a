"""Asks the chat agent a question, with a scripted model that calls tools and answers from their results."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pitboss.agent.request_policy import RequestPolicy
from pitboss.chat.agent import ChatAnswer, ChatEvent, ask
from pitboss.chat.chat_model import ConnectedModel
from pitboss.chat.context import ReadContext
from pitboss.chat.conversation import Conversation
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.models.scripted import ScriptedModel, calls, says

Answering = Callable[[str], str]
"""Makes the answer from the joined results of the tools."""


def tool_using_model(tools: Sequence[tuple[str, Mapping[str, Any]]], answer: Answering) -> ScriptedModel:
    """A model that calls tools one after the other and then answers from their results."""

    def reply(request: ModelRequest) -> ModelReply:
        results = [message.text for message in request.messages if message.role == "tool"]
        if len(results) < len(tools):
            name, arguments = tools[len(results)]
            return calls(name, **arguments)
        return says(answer("\n".join(results)))

    return ScriptedModel(reply)


def ask_question(
    context: ReadContext,
    model: ScriptedModel,
    question: str = "What happened?",
    conversation: Conversation | None = None,
    events: list[ChatEvent] | None = None,
    calls_tools: bool = True,
) -> ChatAnswer:
    conversation = conversation or Conversation("c0", "local", context.about)
    connected = ConnectedModel(model, RequestPolicy("call", "within"), calls_tools)
    tell = (lambda event: None) if events is None else events.append
    return asyncio.run(ask(context, connected, conversation, question, tell))
