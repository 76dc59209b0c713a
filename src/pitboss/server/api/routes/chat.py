"""`/api/chat`: questions to the chat agent, answered as a stream of events.

The agent works in a thread with a loop of its own, because its tools read the database and replay runs; the server's loop only
passes its events on. It ends when the caller goes away. Conversations are kept in memory, a bounded number of them.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from pitboss.bootstrap.machine import random_hex
from pitboss.chat.agent import MOST_QUESTION, ChatAnswer, ChatEvent, ChatStep, ChatText, ChatWithdrawal
from pitboss.chat.chat_model import NoChatModel, chosen_model
from pitboss.chat.conversation import Conversation, Conversations
from pitboss.chat.session import ChatSession
from pitboss.core import codec
from pitboss.core.errors import BudgetExceeded
from pitboss.server.access.caller import OwnWorkspace, Viewer
from pitboss.server.api.lookup import named_subject
from pitboss.server.error_log import log_bug
from pitboss.server.problem import BUG, Problem, problem_document, problem_of, responses

router = APIRouter(prefix="/chat", tags=["chat"])
KEEP_ALIVE_S = 15.0
MOST_AT_ONCE, MOST_OF_ONE = 8, 2
BUDGET_HINT = "raise the setting chat_daily_usd, or wait until tomorrow"


class ChatQuestion(BaseModel):
    """A question, and the conversation that it belongs to."""

    model_config = ConfigDict(extra="forbid")

    about: Annotated[str, Field(max_length=64, pattern="^[0-9a-zA-Z_-]*$", examples=["3f9a1c22d0b4"])] = ""
    """A run or a deployment; empty for the whole workspace."""
    text: Annotated[str, Field(min_length=1, max_length=MOST_QUESTION, examples=["Which rule refused most?"])]
    conversation: Annotated[str, Field(max_length=64, pattern="^[0-9a-f]*$")] = ""
    """As `done` gave it; empty for a new one. One that is not kept any more begins anew."""


class ChatDesk:
    """The conversations of a server, and how many questions are being answered."""

    def __init__(self) -> None:
        self.conversations = Conversations()
        self._lock = threading.Lock()
        self._busy: dict[str, int] = {}

    def begin(self, person: str, conversation: Conversation) -> None:
        """Count a question; raises a problem where there are too many at once."""
        with self._lock:
            if conversation.is_busy:
                raise Problem(409, "busy", "this conversation waits for an answer", "wait for it, or begin a new one")
            if self._busy.get(person, 0) >= MOST_OF_ONE or sum(self._busy.values()) >= MOST_AT_ONCE:
                raise Problem(429, "too_many_requests", "too many questions at once", "wait for an answer")
            conversation.is_busy = True
            self._busy[person] = self._busy.get(person, 0) + 1

    def end(self, person: str, conversation: Conversation) -> None:
        """The question is answered or given up."""
        with self._lock:
            conversation.is_busy = False
            self._busy[person] -= 1
            if not self._busy[person]:
                del self._busy[person]


def desk_of(app: FastAPI) -> ChatDesk:
    """The desk of a server."""
    return app.state.chat_desk


EXAMPLE = (
    'event: tool\ndata: {"name":"refusals_by_rule","arguments":{}}\n\n'
    'event: text\ndata: {"delta":"R3_POSITION_CAP refused 8 times [run 3f9a1c22d0b4]."}\n\n'
    'event: done\ndata: {"cost_usd":0.0021,"citations":[],"unsupported":[],"conversation":"8c1f"}\n\n'
)


@router.post(
    "",
    response_class=StreamingResponse,
    responses={
        **responses(404, 409),
        200: {
            "description": "Server-sent events: `tool {name, arguments}`, `card {kind, title, request, details}`, `text {delta}`, "
            "`withdraw {}` when the text so far is to be discarded, then `done {cost_usd, citations, unsupported, conversation}` or `error` with a problem.",
            "content": {"text/event-stream": {"schema": {"type": "string"}, "example": EXAMPLE}},
        },
    },
)
def ask(question: ChatQuestion, request: Request, caller: Viewer, workspace: OwnWorkspace) -> StreamingResponse:
    """Ask the chat agent. It reads what the caller may see, and changes nothing; the answer streams as events."""
    settings = workspace.settings
    try:
        model = chosen_model(settings)
    except NoChatModel as error:
        raise Problem(409, "no_model", error.message, error.hint) from None
    about = ""
    if question.about:
        about = named_subject(workspace, question.about).id
    desk = desk_of(request.app)
    owner = f"{caller.owner}/{caller.name}"
    conversation = desk.conversations.find(question.conversation, owner, about) if question.conversation else None
    if conversation is None:
        conversation = Conversation(random_hex(16), owner, about)
        desk.conversations.keep(conversation)
    session = ChatSession(settings, workspace.database, caller.owner, caller.name, model)
    try:
        session.budget().require()
    except BudgetExceeded as error:
        raise Problem(409, "budget_exceeded", str(error), BUDGET_HINT) from None
    desk.begin(caller.name, conversation)
    stream = ChatStream(desk, caller.name, session, conversation)
    stream.start(question.text)
    return StreamingResponse(stream.events(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


class ChatStream:
    """One answer on its way: a thread that works, and the events that the server's loop passes on."""

    def __init__(self, desk: ChatDesk, person: str, session: ChatSession, conversation: Conversation) -> None:
        self._desk = desk
        self._person = person
        self._session = session
        self._conversation = conversation
        self._lock = threading.Lock()
        self._events: deque[bytes | None] = deque()
        self._wake: Callable[[], object] = lambda: None
        self._stop: Callable[[], object] | None = None
        self._is_stopped = False

    def start(self, text: str) -> None:
        """Start the work. It ends by itself, also if nobody reads its events."""
        self._thread = threading.Thread(target=self._work, args=(text,), daemon=True, name="chat")
        self._thread.start()

    def join(self) -> None:
        """Wait until the work has ended."""
        self._thread.join()

    async def events(self) -> AsyncIterator[bytes]:
        """The events as bytes, as they come. Closing the iterator stops the work."""
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()
        with self._lock:
            self._wake = lambda: loop.call_soon_threadsafe(arrived.set)
        try:
            while True:
                while self._events:
                    event = self._events.popleft()
                    if event is None:
                        return
                    yield event
                try:
                    await asyncio.wait_for(arrived.wait(), KEEP_ALIVE_S)
                except TimeoutError:
                    yield b": waiting\n\n"
                arrived.clear()
        finally:
            self._cancel()

    def _put(self, name: str, data: Any) -> None:
        self._append(b"event: %s\ndata: %s\n\n" % (name.encode(), codec.dumps(data)))

    def _append(self, event: bytes | None) -> None:
        self._events.append(event)
        with self._lock, suppress(RuntimeError):  # the server's loop may have ended
            self._wake()

    def _work(self, text: str) -> None:
        try:
            asyncio.run(self._answer(text))
        except asyncio.CancelledError:
            pass
        except Exception as error:  # noqa: BLE001  # whatever it is, the caller is told; the status is sent already
            problem = problem_of(error)
            if problem.status == BUG:
                log_bug("chat failed", error)
            if isinstance(error, BudgetExceeded):
                problem.hint = BUDGET_HINT
            self._put("error", problem_document(problem))
        finally:
            self._desk.end(self._person, self._conversation)
            self._append(None)

    async def _answer(self, text: str) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        with self._lock:
            if self._is_stopped:
                return
            self._stop = lambda: loop.call_soon_threadsafe(task.cancel)
        answer = await self._session.ask(self._conversation, text, lambda event: self._put(*_event(event)))
        self._put("done", _done(answer, self._conversation))

    def _cancel(self) -> None:
        with self._lock, suppress(RuntimeError):  # the work may have ended
            self._is_stopped = True
            if self._stop is not None:
                self._stop()


def _event(event: ChatEvent) -> tuple[str, Any]:
    if isinstance(event, ChatText):
        return "text", {"delta": event.delta}
    if isinstance(event, ChatWithdrawal):
        return "withdraw", {}
    if isinstance(event, ChatStep):
        return "tool", {"name": event.name, "arguments": event.arguments}
    return "card", event.plain()


def _done(answer: ChatAnswer, conversation: Conversation) -> dict[str, Any]:
    return {
        "cost_usd": None if answer.cost_usd is None else float(answer.cost_usd),
        "conversation_cost_usd": float(conversation.cost_usd),
        "citations": [citation.plain() for citation in answer.citations],
        "unsupported": list(answer.unsupported),
        "conversation": conversation.id,
    }
