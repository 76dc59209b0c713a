"""Text that is passed on while a reply arrives: every protocol that can, in any pieces, and the reply is the same without it."""

import asyncio
import json
from itertools import pairwise
from time import monotonic
from typing import Any

import pytest

from pitboss.core.ports import Message, ModelReply, ModelRequest
from pitboss.core.redaction import HIDDEN
from pitboss.models import http_pool
from pitboss.models.call import CallContext, CallResult
from pitboss.models.chat.client import ChatModel
from pitboss.models.http_model import HttpModel
from pitboss.models.native.client import AnthropicModel, ResponsesModel
from pitboss.models.providers import entry
from pitboss.models.retried import Retried
from pitboss.models.secret import Secret
from pitboss.models.text_stream import TextStream
from pitboss.testing import provider as fake
from pitboss.testing.provider import FakeProvider, Play

KEY = "sk-canary-0123456789"
QUESTION = ModelRequest("Rules.", (Message("user", "Now?"),), ())
TEXT = "Der Löwe 🦁 sleeps. Tonight."
PIECES = ("Der Lö", "we 🦁 sle", "eps. ", "Tonight.")


def data(*events: dict[str, Any]) -> str:
    return "".join(f"event: {event.get('type', 'x')}\ndata: {json.dumps(event)}\n\n" for event in events)


def anthropic() -> str:
    start = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [], "usage": {}}
    deltas = [
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": piece}} for piece in PIECES
    ]
    thought = {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}
    return data({"type": "message_start", "message": start}, thought, *deltas, end, {"type": "message_stop"})


def responses() -> str:
    content = [{"type": "output_text", "text": TEXT, "annotations": []}]
    output = [{"type": "message", "id": "m", "role": "assistant", "content": content}]
    whole = {"id": "r", "status": "completed", "model": "c", "output": output, "usage": {}, "error": None}
    deltas = [{"type": "response.output_text.delta", "delta": piece} for piece in PIECES]
    return data(*deltas, {"type": "response.completed", "response": whole})


KINDS: dict[str, tuple[type[HttpModel[Any]], str, Play]] = {
    "chat": (ChatModel, "/chat/completions", fake.spoken(*PIECES)),
    "anthropic": (AnthropicModel, "/v1/messages", fake.streamed(anthropic())),
    "responses": (ResponsesModel, "/responses", fake.streamed(responses())),
}


def call(
    kind: type[HttpModel[Any]], path: str, script: Any, context: CallContext, retried: bool = False
) -> tuple[CallResult, FakeProvider]:
    async def work() -> tuple[CallResult, FakeProvider]:
        async with FakeProvider(script, path=path) as server, http_pool.opened():
            client: Any = kind("fake/m", entry("fake", server.url), Secret(KEY), clock=monotonic, timeout_s=5.0)
            client = Retried(client, random=lambda: 0.0) if retried else client
            return await client.call(QUESTION, context), server

    return asyncio.run(work())


@pytest.mark.parametrize("kind", KINDS)
def test_the_text_so_far_is_told_and_the_reply_is_the_whole_one(kind: str) -> None:
    told: list[str] = []
    model, path, play = KINDS[kind]
    result, server = call(model, path, [play], CallContext(on_text=told.append))
    assert isinstance(result.reply, ModelReply)
    assert result.reply.text == TEXT == told[-1]
    assert all(later.startswith(earlier) for earlier, later in pairwise(told))
    assert server.questions[0]["stream"] is True


@pytest.mark.parametrize("kind", KINDS)
def test_a_caller_without_a_text_listener_requests_no_stream(kind: str) -> None:
    model, path, play = KINDS[kind]
    result, server = call(model, path, [play], CallContext())
    assert result.reply is not None
    assert not server.questions[0].get("stream")


def test_a_server_that_refuses_to_stream_is_asked_for_the_whole_reply_from_then_on() -> None:
    told: list[str] = []

    def script(question: Any) -> Play:
        return fake.error(400, "streaming is not supported here") if question.get("stream") else fake.say("whole")

    result, server = call(ChatModel, "/chat/completions", script, CallContext(on_text=told.append), retried=True)
    assert result.reply is not None
    assert (result.reply.text, told, server.calls) == ("whole", [], 2)


def test_a_server_that_answers_in_one_piece_all_the_same_is_read() -> None:
    told: list[str] = []
    result, _ = call(ChatModel, "/chat/completions", [fake.say("whole")], CallContext(on_text=told.append))
    assert result.reply is not None
    assert (result.reply.text, told) == ("whole", [])


def test_another_attempt_begins_with_an_empty_text() -> None:
    told: list[str] = []
    broken = fake.streamed('data: {"choices":[{"index":0,"delta":{"content":"Half an"}}]}\n\n')
    script = [broken, fake.spoken("The ", "whole.")]
    result, _ = call(ChatModel, "/chat/completions", script, CallContext(on_text=told.append), retried=True)
    assert result.reply is not None
    assert result.reply.text == "The whole."
    assert told[0] == "Half an"
    assert told[-1] == "The whole."


def test_a_key_that_comes_back_in_pieces_is_hidden_in_the_text_so_far() -> None:
    told: list[str] = []
    play = fake.spoken("Key ", KEY[:7], KEY[7:], " it is.")
    result, _ = call(ChatModel, "/chat/completions", [play], CallContext(on_text=told.append))
    assert result.reply is not None
    assert told[-1] == result.reply.text == f"Key {HIDDEN} it is."


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_pieces_of_the_connection_do_not_matter(size: int, end: str) -> None:
    told: list[str] = []
    events = [{"t": piece} for piece in PIECES]
    text = ": waiting\n\n" + "".join(f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events)
    content = (text + "data: [DONE]\n\ndata: nonsense\n\ndata: [1]\n\n").replace("\n", end).encode()
    stream = TextStream(lambda event: str(event["t"]), told.append)
    for start in range(0, len(content), size):
        stream.feed(content[start : start + size])
    assert told[-1] == TEXT
