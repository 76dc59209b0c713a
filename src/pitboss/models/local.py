"""`LocalModel`: a model on this machine, behind a server that is started at the first call and again if it has died.

Small models cannot call tools through llama.cpp, so they are asked in schema form (`forcing="schema"`).
"""

import asyncio
from collections.abc import Callable

from pitboss.core.ports import ModelRequest
from pitboss.models.call import CallContext, CallResult, ModelClient
from pitboss.models.failures import Failure
from pitboss.models.local_server import LocalServer


class LocalModel(ModelClient):
    """A model behind its own server. `connect` makes the client for an address; `close` stops the server."""

    def __init__(self, name: str, server: LocalServer, connect: Callable[[str], ModelClient]) -> None:
        self.name = name
        self.server = server
        self.connect = connect
        self._client: ModelClient | None = None
        self._starting = asyncio.Lock()

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        """Start the server where it does not run, and call."""
        async with self._starting:
            if self._client is None or not self.server.is_alive:
                self._client = self.connect(await self.server.start())
        result = await self._client.call(request, context)
        failure = result.failure
        if failure is None or not result.is_transient:
            return result
        if failure.code == "too_long":
            limit, name = self.server.context_tokens, self.name.partition("#")[0]
            failure = Failure(
                "user",
                failure.code,
                f"a question is longer than the {limit:,} tokens that {name} is served with",
                "shorten the skill's context: fewer symbols or tools, a smaller bars_lookback or news_top_k",
            )
        elif not self.server.is_alive:
            message = f"the server of {self.name} died; it is started again at the next question"
            failure = Failure("give_up", "server_died", message)
        return CallResult(failure=failure, attempts=result.attempts)

    def close(self) -> None:
        """Stop the server."""
        self.server.stop()
