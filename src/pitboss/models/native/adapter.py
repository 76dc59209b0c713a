"""What the two native adapters share: one try at a question, and what the vendor's client is made of.

A vendor's own file says how its client is built, what its models can be made to do and how settings are spelt. Prices,
limits, budgets, tries and caches are wrappers around this, not in it.
"""

import asyncio
import re
import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import httpx2
from pydantic_ai.models import Model

from pitboss.core.errors import UserError
from pitboss.core.intent import NO_USAGE, Usage
from pitboss.core.ports import ModelReply, ModelRequest, ToolCall
from pitboss.models.failures import Failure
from pitboss.models.native import decode as hear
from pitboss.models.native import encode as talk
from pitboss.models.native import errors as trouble
from pitboss.models.native.encode import Ability, EncodedRequest
from pitboss.models.native.gate import ReplyGate
from pitboss.models.retried import ATTEMPTS, DEADLINE_S, Learnt, Retried, SingleAttempt
from pitboss.models.secret import Secret

TIMEOUT_S = 45.0
CONNECT_S = 10.0
Seen = Callable[[Mapping[str, str], Usage, int], None]
"""Told the headers and the status of every reply, good or bad, for whoever learns limits from them."""

_ADAPTABLE = frozenset({"bad_request", "bad_setting"})
_OF_SCHEMA = re.compile(r"schema|output|response|grammar|json", re.IGNORECASE)
"""Complaints that may be about the form of the answer."""


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
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        transport: httpx2.AsyncBaseTransport | None = None,
        seen: Seen | None = None,
    ) -> None:
        """`random` gives numbers from 0 to 1 for the jitter, `clock` seconds that never run backwards.

        `transport` stands in for the way to the vendor.
        """
        if not key:
            raise UserError(f"{name} needs a key", "`pitboss secrets set NAME`, or the provider's environment variable")
        self.name = name
        self.model = model
        self._key = key
        self._base_url = base_url
        self._timeout_s = timeout_s
        self._clock = clock
        self._patient = Retried(
            SingleAttempt(self), random=random, attempts=attempts, deadline_s=deadline_s, sleep=sleep
        )
        self._transport = transport
        self._http: httpx2.AsyncClient | None = None
        self._seen = seen
        self._speaks: tuple[asyncio.AbstractEventLoop, Model[Any]] | None = None
        self._refused_schemas = False

    # What a vendor's file says ---------------------------------------------------------------------------------------

    @abstractmethod
    def _read(self, body: object) -> dict[str, Any]:
        """A body as the vendor's client is to see it."""

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
        """Ask until there is an answer, no point in asking, or no try or time left."""
        return await self._patient.complete(request)

    async def once(self, request: ModelRequest, left_s: float) -> ModelReply | Failure | Learnt:
        """One try. A model that does not take a schema is asked in another way from then on."""
        model = self._model()
        ability = self._ability(model, request)
        if self._refused_schemas:
            ability = replace(ability, schemas=False)
        plan = self._plan(model, request, ability)
        reply = await self._try(model, request, plan, left_s)
        native = plan.parameters.output_mode == "native"
        if native and isinstance(reply, Failure) and reply.code in _ADAPTABLE and _OF_SCHEMA.search(reply.message):
            self._refused_schemas = True
            return Learnt(reply)
        return reply

    def _plan(self, model: Model[Any], request: ModelRequest, ability: Ability) -> EncodedRequest:
        settings = {"max_retries": 0, "timeout": self._timeout_s, "max_tokens": max_tokens(request.settings)}
        return talk.plan(request, ability, {**settings, **self._settings(model, request)})

    async def _try(
        self, model: Model[Any], request: ModelRequest, plan: EncodedRequest, left_s: float
    ) -> ModelReply | Failure:
        turn = sum(message.role == "assistant" for message in request.messages)
        limit = min(self._timeout_s, left_s)
        began = self._clock()
        settings: Any = plan.settings
        try:
            async with asyncio.timeout(limit):
                response = await model.request(plan.messages, settings, plan.parameters)
            reply = hear.reply_of(response, turn, plan.call, (self._clock() - began) * 1000)
        except TimeoutError:
            return trouble.late(self.name, limit)
        except Exception as error:  # noqa: BLE001 – what others' code makes of others' bytes must not end a run
            return self._hide_failure(trouble.failure_of(error, self.name))
        return self._hide(reply)

    # Keys and clients ------------------------------------------------------------------------------------------------

    def _model(self) -> Model[Any]:
        """The vendor's client, made at the first question and again on another event loop."""
        loop = asyncio.get_running_loop()
        if self._speaks is None or self._speaks[0] is not loop:
            # Redirects are never followed: the key belongs to one host.
            self._http = httpx2.AsyncClient(
                transport=ReplyGate(
                    self._transport or httpx2.AsyncHTTPTransport(verify=trust(), trust_env=False),
                    self._read,
                    self._key.hide,
                    self._learn,
                ),
                timeout=httpx2.Timeout(self._timeout_s, connect=min(CONNECT_S, self._timeout_s)),
                follow_redirects=False,
                trust_env=False,
                event_hooks={"request": [_name_once]},
            )
            self._speaks = loop, self._open(self._key.reveal(), self._http)
        return self._speaks[1]

    def _learn(self, headers: Mapping[str, str], status: int) -> None:
        if self._seen is not None:
            self._seen(dict(headers), NO_USAGE, status)

    async def close(self) -> None:
        """Give the connections back."""
        if self._http is not None:
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
            provider_id=hide(reply.provider_id),
            model=hide(reply.model),
            calls=tuple(ToolCall(hide(call.id), hide(call.name), hide(call.arguments)) for call in reply.calls),
        )


async def _name_once(request: httpx2.Request) -> None:
    """pydantic-ai and Google's client each name themselves; two such headers are refused by strict servers."""
    request.headers["user-agent"] = request.headers["user-agent"]


@cache
def trust() -> ssl.SSLContext:
    """The certificates this machine trusts, loaded once: it takes tens of milliseconds."""
    return httpx2.create_ssl_context()


def max_tokens(settings: Mapping[str, Any]) -> int:
    """The bound of an answer, which is always sent."""
    return int(settings.get("max_tokens") or talk.MAX_TOKENS)


def reasons(settings: Mapping[str, Any]) -> str:
    """How much thinking is asked for: `none`, a level, or empty for the provider's default."""
    return str(settings.get("reasoning") or "")
