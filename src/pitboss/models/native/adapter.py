"""What the two native adapters share: one question, tried again where that helps, within a deadline.

A vendor's own file says how its client is built, what its models can be made to do and how settings are spelt. Prices,
limits, budgets and caches are wrappers around this, not in it.
"""

import asyncio
import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import cache
from typing import Any

import httpx2
from pydantic_ai import exceptions
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model, StreamedResponse

from pitboss.core.errors import UserError
from pitboss.core.intent import NO_USAGE, Usage
from pitboss.core.ports import ModelReply, ModelRequest, ToolCall
from pitboss.models.failures import Failure
from pitboss.models.native import hear, talk, trouble
from pitboss.models.native.talk import Ability, Plan
from pitboss.models.secret import Secret

TIMEOUT_S = 45.0
ATTEMPTS = 4
DEADLINE_S = 120.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 20.0
CONNECT_S = 10.0
Seen = Callable[[Mapping[str, str], Usage, int], None]
"""Told the headers and the status of every reply, good or bad, for whoever learns limits from them."""

_NO_SCHEMA = frozenset({"bad_request", "bad_setting"})


class Native(ABC):
    """A vendor's model behind the Model port."""

    def __init__(
        self,
        name: str,
        model: str,
        key: Secret | None,
        *,
        base_url: str = "",
        timeout_s: float = TIMEOUT_S,
        attempts: int = ATTEMPTS,
        deadline_s: float = DEADLINE_S,
        random: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        http: httpx2.AsyncClient | None = None,
        seen: Seen | None = None,
    ) -> None:
        """`random` gives numbers from 0 to 1 for the jitter, `clock` seconds that never run backwards."""
        if not key:
            raise UserError(f"{name} needs a key", "`pitboss secrets set NAME`, or the provider's environment variable")
        self.name = name
        self.model = model
        self._key = key
        self._base_url = base_url
        self._timeout_s = timeout_s
        self._attempts = max(1, attempts)
        self._deadline_s = deadline_s
        self._random = random
        self._clock = clock
        self._sleep = sleep
        self._http = http
        self._given = http is not None
        self._seen = seen
        self._speaks: tuple[asyncio.AbstractEventLoop, Model[Any]] | None = None
        self._refused_schemas = False

    # What a vendor's file says ---------------------------------------------------------------------------------------

    @abstractmethod
    def _open(self, key: str, http: httpx2.AsyncClient) -> Model[Any]:
        """pydantic-ai's model over this HTTP client."""

    @abstractmethod
    def _ability(self, model: Model[Any], request: ModelRequest) -> Ability:
        """What the model can be made to do with these settings."""

    @abstractmethod
    def _settings(self, model: Model[Any], request: ModelRequest) -> dict[str, Any]:
        """Our settings in the vendor's words, but for those that all share."""

    # Asking ----------------------------------------------------------------------------------------------------------

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Ask until there is an answer, no point in asking, or no time."""
        ends_at = self._clock() + self._deadline_s
        tried, charged = 0, False
        while True:
            tried += 1
            reply = await self.once(request, max(0.0, ends_at - self._clock()))
            if isinstance(reply, ModelReply):
                return reply
            charged = charged or reply.charged
            if reply.reaction != "retry" or tried >= self._attempts:
                raise reply.error(charged)
            pause = self._pause(tried, reply.wait_s)
            if self._clock() + pause >= ends_at:
                raise reply.error(charged)
            await self._sleep(pause)

    def _pause(self, tried: int, wanted: float | None) -> float:
        """Full jitter, after what the provider asked for."""
        most = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (tried - 1))
        return (wanted or 0.0) + self._random() * most

    async def once(self, request: ModelRequest, left_s: float, streamed: bool = False) -> ModelReply | Failure:
        """One try. A schema that the provider does not take is asked for in another way within the same try."""
        model = self._model()
        ability = self._ability(model, request)
        if self._refused_schemas:
            ability = replace(ability, schemas=False)
        plan = self._plan(model, request, ability)
        ends_at = self._clock() + left_s
        reply = await self._try(model, request, plan, left_s, streamed)
        native = plan.parameters.output_mode == "native"
        if native and isinstance(reply, Failure) and reply.code in _NO_SCHEMA:
            self._refused_schemas = True
            plan = self._plan(model, request, replace(ability, schemas=False))
            reply = await self._try(model, request, plan, max(0.0, ends_at - self._clock()), streamed)
        return reply

    def _plan(self, model: Model[Any], request: ModelRequest, ability: Ability) -> Plan:
        settings = {"max_retries": 0, "timeout": self._timeout_s, "max_tokens": max_tokens(request.settings)}
        return talk.plan(request, ability, {**settings, **self._settings(model, request)})

    async def _try(
        self, model: Model[Any], request: ModelRequest, plan: Plan, left_s: float, streamed: bool
    ) -> ModelReply | Failure:
        turn = sum(message.role == "assistant" for message in request.messages)
        limit = min(self._timeout_s, left_s)
        began = self._clock()
        try:
            async with asyncio.timeout(limit):
                response = await _ask(model, plan, streamed)
            reply = hear.reply_of(response, turn, plan.call, (self._clock() - began) * 1000)
        except TimeoutError:
            return trouble.late(self.name, limit)
        except (exceptions.ModelAPIError, exceptions.UserError) as error:
            return self._hide_failure(trouble.failure_of(error, self.name))
        except trouble.UNREADABLE as error:
            return trouble.unreadable(error, self.name)
        except httpx2.HTTPError:
            return Failure("retry", "network", f"{self.name}: the connection failed")
        return self._hide(reply)

    # Keys and clients ------------------------------------------------------------------------------------------------

    def _model(self) -> Model[Any]:
        """The vendor's client, made at the first question and again on another event loop."""
        loop = asyncio.get_running_loop()
        if self._speaks is None or self._speaks[0] is not loop:
            if self._http is None or not self._given:
                # Redirects are never followed: the key belongs to one host.
                timeout = httpx2.Timeout(self._timeout_s, connect=min(CONNECT_S, self._timeout_s))
                self._http = httpx2.AsyncClient(
                    timeout=timeout,
                    follow_redirects=False,
                    trust_env=False,
                    verify=trust(),
                    event_hooks={"request": [_name_once], "response": [self._learn]},
                )
            self._speaks = loop, self._open(self._key.reveal(), self._http)
        return self._speaks[1]

    async def _learn(self, response: httpx2.Response) -> None:
        if self._seen is not None:
            self._seen(dict(response.headers), NO_USAGE, response.status_code)

    async def close(self) -> None:
        """Give the connections back; a client that was handed in stays its owner's."""
        if self._http is not None and not self._given:
            await self._http.aclose()
            self._http = None
        self._speaks = None

    def _hide_failure(self, failure: Failure) -> Failure:
        return replace(failure, message=self._key.hide(failure.message))

    def _hide(self, reply: ModelReply) -> ModelReply:
        """A reply that repeats the key is stored without it."""
        hide = self._key.hide
        return replace(
            reply,
            text=hide(reply.text),
            problem=hide(reply.problem),
            state=hide(reply.state),
            calls=tuple(ToolCall(call.id, hide(call.name), hide(call.arguments)) for call in reply.calls),
        )


async def _name_once(request: httpx2.Request) -> None:
    """pydantic-ai and Google's client each name themselves; two such headers are refused by strict servers."""
    request.headers["user-agent"] = request.headers["user-agent"]


@cache
def trust() -> ssl.SSLContext:
    """The certificates this machine trusts, loaded once: it takes tens of milliseconds."""
    return httpx2.create_ssl_context()


async def _ask(model: Model[Any], plan: Plan, streamed: bool) -> ModelResponse:
    settings: Any = plan.settings
    if not streamed:  # the only way the port asks; streams are read for recordings
        return await model.request(plan.messages, settings, plan.parameters)
    stream: AbstractAsyncContextManager[StreamedResponse] = model.request_stream(
        plan.messages, settings, plan.parameters
    )
    async with stream as events:
        async for _ in events:
            pass
        response = events.get()
    if response.finish_reason is None and "finish_reason" not in (response.provider_details or {}):
        raise exceptions.UnexpectedModelBehavior("the stream ended before the reply did")
    return response


def max_tokens(settings: Mapping[str, Any]) -> int:
    """The bound of an answer, which is always sent."""
    return int(settings.get("max_tokens") or talk.MAX_TOKENS)


def reasons(settings: Mapping[str, Any]) -> str:
    """How much thinking is asked for: `none`, a level, or empty for the provider's default."""
    return str(settings.get("reasoning") or "")
