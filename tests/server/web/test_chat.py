"""`/api/chat`: a question to a model server, answered as a stream of events."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from starlette.testclient import TestClient

from pitboss.bootstrap.workspace import Workspace
from pitboss.chat.agent import ChatStep
from pitboss.chat.conversation import Conversation
from pitboss.chat.session import ChatSession
from pitboss.server.api.routes.chat import MOST_OF_ONE, ChatDesk, ChatStream, desk_of
from pitboss.testing import provider
from pitboss.testing.provider import FakeProvider, Play
from provider_thread import fake_provider

Event = tuple[str, dict[str, Any]]


class ScriptedEndpoint:
    """A model behind HTTP that calls the tools of a script and answers from their results."""

    def __init__(self) -> None:
        self.tools: list[tuple[str, Mapping[str, Any]]] = [("refusals_by_rule", {})]
        self.answer = "R3_POSITION_CAP refused 8 times."
        self.play: Play | None = None
        self.script: list[Play] = []

    def __call__(self, question: Mapping[str, Any]) -> Play:
        if self.script:
            return self.script.pop(0)
        if self.play is not None:
            return self.play
        done = sum(message["role"] == "tool" for message in question["messages"])
        if done < len(self.tools):
            return provider.call(*self.tools[done])
        return provider.say(self.answer)


@pytest.fixture
def model() -> ScriptedEndpoint:
    return ScriptedEndpoint()


@pytest.fixture
def server(model: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    """A configured model. Ask for it before the client."""
    with fake_provider(lambda question: model(question)) as server:
        for name, value in {
            "LLM_BASE_URL": server.url,
            "LLM_API_KEY": "test-key-123456",
            "LLM_MODEL": "fake",
            "PITBOSS_CHAT_MODEL": "llm/fake",
            "PITBOSS_CHAT_PRICE_IN": "1",
            "PITBOSS_CHAT_PRICE_OUT": "2",
        }.items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def run_id(workspace: Workspace) -> str:
    return workspace.runs.listing().runs[0].id


def events(text: str) -> list[Event]:
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


def chat_events(client: TestClient, text: str = "Which rule refuses most?", **body: str) -> list[Event]:
    reply = client.post("/api/chat", json={"text": text, **body})
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"].startswith("text/event-stream")
    return events(reply.text)


def test_a_question_streams_its_steps_its_text_and_its_end(
    server: FakeProvider, client: TestClient, model: ScriptedEndpoint, run_id: str, workspace: Workspace
) -> None:
    model.answer = f"R3_POSITION_CAP refused 8 times [run {run_id} tick 2025-01-22T05:00:00Z rule R3_POSITION_CAP]."
    *told, (name, done) = chat_events(client, about=run_id)
    assert told[0] == ("tool", {"name": "refusals_by_rule", "arguments": {}})
    assert "".join(data["delta"] for kind, data in told if kind == "text") == model.answer
    assert name == "done"
    (citation,) = done["citations"]
    assert citation["href"] == f"/runs/{run_id}#d53"
    assert done["unsupported"] == []
    assert done["cost_usd"] > 0
    assert server.calls == 2
    offered = {tool["function"]["name"] for tool in server.questions[0]["tools"]}
    assert {"show_run", "get_pnl_summary", "propose_fork", "answer"} <= offered
    assert not {"propose_order", "save_skill", "run_backtest"} & offered
    again = chat_events(client, "And before?", about=run_id, conversation=done["conversation"])
    assert again[-1][1]["conversation"] == done["conversation"]
    assert "Which rule refuses most?" in server.questions[-1]["messages"][1]["content"]
    assert again[-1][1]["conversation_cost_usd"] > done["cost_usd"]


def test_text_that_was_not_the_answer_is_withdrawn_and_a_streamed_answer_is_paid(
    server: FakeProvider, client: TestClient, model: ScriptedEndpoint, run_id: str
) -> None:
    model.script = [
        provider.spoken("Let me look.\n", wishes=[("refusals_by_rule", {})]),
        provider.spoken("R3_POSITION_CAP ", "refused 8 times. ", "That is all."),
    ]
    *told, (name, done) = chat_events(client, about=run_id)
    kinds = list(dict.fromkeys(kind for kind, _ in told))
    assert kinds == ["text", "withdraw", "tool"]
    last = [kind for kind, _ in told].index("withdraw")
    assert "".join(data["delta"] for kind, data in told[last:] if kind == "text") == (
        "R3_POSITION_CAP refused 8 times. That is all."
    )
    assert (name, done["unsupported"]) == ("done", [])
    assert done["cost_usd"] == pytest.approx(2 * (1_000 * 1 + 50 * 2) / 1e6)
    assert all(question["stream"] for question in server.questions)


def test_a_prepared_action_comes_as_a_card(
    server: FakeProvider, client: TestClient, model: ScriptedEndpoint, run_id: str
) -> None:
    del server
    model.tools = [("propose_skill_edit", {"set": "risk.max_leverage=2"})]
    model.answer = "Confirm the card."
    told = chat_events(client, "Lower the leverage.", about=run_id)
    (card,) = [data for name, data in told if name == "card"]
    assert card["kind"] == "skill_edit"
    assert card["request"]["method"] == "PUT"
    assert card["request"]["path"] == "/api/skills/trend-thesis"
    assert card["details"] == ["risk.max_leverage: 3 → 2"]


def test_without_a_model_it_says_so_and_how_to_set_one(client: TestClient) -> None:
    reply = client.post("/api/chat", json={"text": "Hello?"})
    assert reply.status_code == 409
    problem = reply.json()
    assert (problem["code"], problem["detail"]) == ("no_model", "the chat has no model")
    assert "chat_model" in problem["hint"]
    assert "give --model" not in problem["hint"], "a request has no such option"


def test_a_used_up_budget_is_refused_cleanly(
    server: FakeProvider, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, run_id: str
) -> None:
    monkeypatch.setenv("PITBOSS_CHAT_DAILY_USD", "0.0001")
    client: TestClient = request.getfixturevalue("client")
    (name, problem) = chat_events(client, about=run_id)[-1]
    assert (name, problem["code"]) == ("error", "budget_exceeded")
    assert "chat_daily_usd" in problem["detail"]
    assert server.calls == 0


def test_what_is_not_there_is_not_found(server: FakeProvider, client: TestClient) -> None:
    del server
    reply = client.post("/api/chat", json={"text": "Hello?", "about": "ffffffffffff"})
    assert (reply.status_code, reply.json()["code"]) == (404, "not_found")


def test_an_error_of_the_model_ends_the_stream_with_a_problem(
    server: FakeProvider, client: TestClient, model: ScriptedEndpoint
) -> None:
    model.play = provider.error(401, "your key test-key-123456 is not valid")
    (name, problem) = chat_events(client)[-1]
    assert (name, problem["code"]) == ("error", "user_error")
    assert "test-key-123456" not in json.dumps(problem)
    assert server.calls == 1


def test_a_bug_in_the_chat_is_logged_with_its_traceback(
    server: FakeProvider, client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    del server

    async def fail(*arguments: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(ChatSession, "ask", fail)
    (name, problem) = chat_events(client)[-1]
    assert (name, problem["code"]) == ("error", "internal_error")
    (record,) = [record for record in caplog.records if record.name == "pitboss.server"]
    assert record.message == "chat failed"
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "broken"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": ""},
        {"text": "x" * 4_001},
        {"text": "x", "about": "../x"},
        {"text": "x", "more": 1},
        {"text": "x", "conversation": "zz"},
    ],
)
def test_a_body_of_another_form_is_refused(body: dict[str, Any], client: TestClient) -> None:
    assert client.post("/api/chat", json=body).status_code == 422


def test_requests_without_credentials_are_refused(anonymous: TestClient) -> None:
    assert anonymous.post("/api/chat", json={"text": "Hello?"}).status_code == 401


def test_one_person_has_few_questions_at_once(
    server: FakeProvider, client: TestClient, model: ScriptedEndpoint
) -> None:
    del server
    model.tools = []
    desk = desk_of(client.app)  # type: ignore[arg-type]
    busy = [Conversation(str(number)) for number in range(MOST_OF_ONE)]
    for conversation in busy:
        desk.begin("local", conversation)
    reply = client.post("/api/chat", json={"text": "Hello?"})
    assert (reply.status_code, reply.json()["code"]) == (429, "too_many_requests")
    for conversation in busy:
        desk.end("local", conversation)
    assert chat_events(client)[-1][0] == "done"


class _UnansweredSession:
    """A session whose answer never comes."""

    def __init__(self) -> None:
        self.is_asked, self.is_cancelled = threading.Event(), threading.Event()

    async def ask(self, conversation: Conversation, text: str, tell: Callable[[ChatStep], None]) -> None:
        del conversation, text
        tell(ChatStep("show_run", {}))
        self.is_asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.is_cancelled.set()


def test_the_work_ends_when_the_caller_goes_away() -> None:
    session, desk, conversation = _UnansweredSession(), ChatDesk(), Conversation("c")
    desk.begin("local", conversation)
    stream = ChatStream(desk, "local", session, conversation)  # type: ignore[arg-type]
    stream.start("Hello?")

    async def reads_one_event() -> bytes:
        events = stream.events()
        first = await anext(events)
        await events.aclose()
        return first

    assert asyncio.run(reads_one_event()).startswith(b"event: tool")
    assert session.is_cancelled.wait(30)
    stream.join()
    assert not conversation.is_busy
