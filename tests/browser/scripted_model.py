"""What the model of the browser tests answers: questions of the chat by their words, ticks of runs with a decision.

A run with the model `slow` gets its answers one by one: `let(count)` lets so many ticks more happen.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from pitboss.testing import provider
from pitboss.testing.provider import FakeProvider, Play

SLOW = "slow"
CHAT = "Question of the person:"


class ScriptedModel:
    """The script of a `FakeProvider`."""

    provider: FakeProvider
    """The server that plays it."""

    def __init__(self) -> None:
        self.says: dict[str, str] = {}
        """Answers of the chat by words of the question."""
        self.wishes: dict[str, str] = {}
        """Names of tools that it asks for before it answers, by words of the question."""
        self._allowed = asyncio.Semaphore(0)
        self._loop: asyncio.AbstractEventLoop | None = None

    def __call__(self, question: Mapping[str, Any]) -> Play:
        text = str(question["messages"][1]["content"])
        if CHAT in text:
            return self._chat(text.rpartition(CHAT)[2].strip(), question["messages"])
        play = provider.decide(question)
        return self._when_let(play) if question["model"] == SLOW else play

    def hold(self) -> None:
        """Let the slow model answer nothing, whatever was allowed before."""
        self._allowed = asyncio.Semaphore(0)

    def let(self, count: int) -> None:
        """Let the slow model answer this many more questions."""
        for _ in range(count):
            if self._loop is None:
                self._allowed.release()
            else:
                self._loop.call_soon_threadsafe(self._allowed.release)

    def _chat(self, asked: str, messages: list[Mapping[str, Any]]) -> Play:
        """Uses a tool, then answers by what was asked."""
        results = [message["content"] for message in messages if message["role"] == "tool"]
        for words, answer in self.says.items():
            if words in asked:
                is_asked = words in self.wishes and not results
                return provider.call(self.wishes[words], {}) if is_asked else provider.say(answer)
        if "change" in asked:
            if not results:
                return provider.call("propose_skill_edit", {"set": "risk.max_leverage=2"})
            return provider.say("Please confirm the card.")
        if not results:
            return provider.call("explain_decision", {})
        cited = next(word for word in results[0].split("cite as ")[1].split("] ") if "tick" in word).rstrip("]") + "]"
        return provider.say(f"R3_POSITION_CAP refused it {cited}. I also believe 77,777 of it.")

    def _when_let(self, play: Play) -> Play:
        async def wait(request: web.BaseRequest, question: Mapping[str, Any]) -> web.StreamResponse:
            self._loop = asyncio.get_running_loop()
            await self._allowed.acquire()
            return await play(request, question)

        return wait
