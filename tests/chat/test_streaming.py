"""An answer is streamed by the sentence while the model writes it, without numbers that no fact supports."""

import asyncio
import threading
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.agent.request_policy import RequestPolicy
from pitboss.chat.agent import ChatAnswer, ChatEvent, ChatStep, ChatText, ChatWithdrawal, ask
from pitboss.chat.chat_model import ConnectedModel
from pitboss.chat.context import ReadContext
from pitboss.chat.conversation import Conversation
from pitboss.chat.number_check import FactNumbers, unsupported_numbers
from pitboss.chat.text_release import TextRelease, answer_so_far
from pitboss.models import http_pool
from pitboss.models.chat.client import ChatModel
from pitboss.models.providers import entry
from pitboss.testing import provider
from pitboss.testing.provider import FakeProvider, Play

PATIENCE_S = 20


def streamed_answer(
    context: ReadContext,
    script: Sequence[Play],
    tell: Callable[[ChatEvent], None],
    calls_tools: bool = True,
) -> ChatAnswer:
    """The answer of a model behind a server that streams."""

    async def work() -> ChatAnswer:
        async with FakeProvider(script) as server, http_pool.opened():
            model = ChatModel("fake/m", entry("fake", server.url), None, clock=lambda: 0.0)
            policy = RequestPolicy("call" if calls_tools else "schema", "within")
            connected = ConnectedModel(model, policy, calls_tools)
            return await ask(context, connected, Conversation("c0", "local", context.about), "What happened?", tell)

    return asyncio.run(work())


def displayed_text(events: Sequence[ChatEvent]) -> str:
    """What a person sees in the end."""
    text = ""
    for event in events:
        if isinstance(event, ChatWithdrawal):
            text = ""
        elif isinstance(event, ChatText):
            text += event.delta
    return text


def test_a_sentence_is_shown_before_the_model_has_written_the_next(context: ReadContext) -> None:
    events: list[ChatEvent] = []
    seen = threading.Event()

    def tell(event: ChatEvent) -> None:
        events.append(event)
        if isinstance(event, ChatText):
            seen.set()

    async def before(index: int) -> None:
        if index == 2:  # the model goes on only after the first sentence was shown
            assert await asyncio.to_thread(seen.wait, PATIENCE_S)

    script = [provider.spoken("It is ", "complete. ", "That is ", "all.", before=before)]
    answer = streamed_answer(context, script, tell)
    assert [event.delta for event in events if isinstance(event, ChatText)] == ["It is complete. ", "That is all."]
    assert answer.text == "It is complete. That is all."


def test_a_number_that_no_fact_holds_is_not_shown_and_neither_is_what_follows(context: ReadContext) -> None:
    events: list[ChatEvent] = []
    wrong = provider.spoken("It is complete. ", "It closed 9,999 trades. ", "More cannot be said.")
    right = provider.spoken("The run is complete. ", "How many trades it closed is not recorded.")
    answer = streamed_answer(context, [wrong, right], events.append)
    assert displayed_text(events) == answer.text == "The run is complete. How many trades it closed is not recorded."
    assert not any("9,999" in event.delta or "More" in event.delta for event in events if isinstance(event, ChatText))
    assert sum(isinstance(event, ChatWithdrawal) for event in events) == 1
    assert answer.unsupported == ()


def test_a_number_that_the_model_insists_on_comes_last_and_marked(context: ReadContext) -> None:
    events: list[ChatEvent] = []
    answer = streamed_answer(context, [provider.spoken("It is complete. ", "It closed 9,999 trades.")], events.append)
    assert answer.unsupported == ("9,999",)
    assert displayed_text(events) == answer.text


def test_a_remark_before_a_tool_call_is_withdrawn(context: ReadContext) -> None:
    events: list[ChatEvent] = []
    looks = provider.spoken("Let me look. ", "One moment.\n", wishes=[("show_run", {})])
    answer = streamed_answer(context, [looks, provider.spoken("It is ", "complete.")], events.append)
    kinds = list(dict.fromkeys(type(event) for event in events))
    assert kinds == [ChatText, ChatWithdrawal, ChatStep]
    assert displayed_text(events) == answer.text == "It is complete."


def test_the_text_in_a_json_object_streams_too(context: ReadContext) -> None:
    events: list[ChatEvent] = []
    said = provider.spoken('{"te', 'xt": "It is \\"complete\\". ', "It is s", 'o. \\u00e4"}')
    answer = streamed_answer(context, [said], events.append, calls_tools=False)
    assert answer.text == 'It is "complete". It is so. ä'
    assert displayed_text(events) == answer.text
    assert [event.delta for event in events if isinstance(event, ChatText)][-1] == "ä"


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("", ""),
        (" plain", "plain"),
        ("{", ""),
        ('{"text"', ""),
        ('{"text": "a\\', "a"),
        ('{"text": "a\\u00e', "a"),
        ('{"text": "a\\n b"} more', "a\n b"),
        ('{"other": "a"}', ""),
    ],
)
def test_the_answer_is_found_in_the_beginning_of_a_reply(reply: str, answer: str) -> None:
    assert answer_so_far(reply) == answer


WORDS = st.sampled_from(
    [
        "It",
        "cost",
        "$12.50",
        "77",
        "about 80",
        "9,999",
        "5",
        "[run 3f9a tick 2025-01-21T04:00Z]",
        "[run 3f9a",
        "]",
        "3.5%",
    ]
)
ENDS = st.sampled_from([" ", " ", ". ", "!\n", ": ", "\n\n", "."])


@settings(max_examples=300, deadline=None)
@given(words=st.lists(st.tuples(WORDS, ENDS), max_size=25), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_whatever_is_shown_before_the_end_passes_the_check(words: list[tuple[str, str]], sizes: list[int]) -> None:
    facts = FactNumbers()
    facts.add("12.5 77 79.9")
    text = "".join(word + end for word, end in words)
    visible = ""

    def tell(delta: str | None) -> None:
        nonlocal visible
        visible = "" if delta is None else visible + delta
        assert not is_streaming or unsupported_numbers(visible, facts) == []

    release, end, is_streaming = TextRelease(facts, tell), 0, True
    while end < len(text):
        end += sizes[end % len(sizes)]
        release.arrived(text[:end])
        assert text.lstrip().startswith(visible)
    is_streaming = False
    release.finish(text.strip())
    assert visible.rstrip() == text.strip()
