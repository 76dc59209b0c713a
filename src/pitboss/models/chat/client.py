"""`ChatModel`: a model behind any server that speaks chat completions.

It sits at the bottom of the wrappers: caching, money and rates are others' work. `once` makes one try and says what came of
it; `complete` tries again by itself, for where nobody counts tries (`retried`). A server that says it does not know a form
of asking is asked in a plainer one from then on, which costs nothing: it has answered nothing yet. The key goes into one
header, to one origin, and is taken out of everything that comes back. Redirects are not followed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import aiohttp
from aiohttp import hdrs
from yarl import URL

from pitboss.core.errors import UserError
from pitboss.core.intent import NO_USAGE, Usage
from pitboss.core.ports import ModelReply, ModelRequest, ToolCall
from pitboss.models.chat import pool, reply, stream, wire
from pitboss.models.failures import Failure, malformed
from pitboss.models.providers import Provider
from pitboss.models.retried import ATTEMPTS, DEADLINE_S, Learnt, Retried, SingleAttempt
from pitboss.models.secret import Secret

TIMEOUT_S = 45.0
LARGEST = 8 * 1024 * 1024
"""A reply beyond this is no answer to a question of ours."""
ADAPTABLE = frozenset({"bad_setting", "bad_request"})

Seen = Callable[[Mapping[str, str], Usage, int], None]
"""Told headers, tokens (none known: `NO_USAGE`) and status of every reply, good or bad."""


class ChatModel:
    """One model of one provider. Safe to use from any number of tasks of a loop."""

    def __init__(
        self,
        name: str,
        provider: Provider,
        key: Secret | None = None,
        session: Callable[[], aiohttp.ClientSession] = pool.session,
        *,
        random: Callable[[], float],
        clock: Callable[[], float],
        model: str = "",
        timeout_s: float = TIMEOUT_S,
        attempts: int = ATTEMPTS,
        deadline_s: float = DEADLINE_S,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        seen: Seen | None = None,
    ) -> None:
        """`random` gives numbers from 0 to 1 for the jitter, `clock` seconds that never run backwards."""
        if key and not provider.may_hold_key:
            raise UserError(
                f"the key of {provider.name} is not sent to {provider.host}",
                "a key goes only to the address it belongs to; use LLM_BASE_URL with LLM_API_KEY for another one",
            )
        self.name = name
        self.provider = provider
        self.timeout_s = timeout_s
        self.seen = seen
        self._dialect = provider.dialect
        self._key = key
        self._model = model or name.partition("/")[2]
        self._session = session
        self._clock = clock
        self._patient = Retried(
            SingleAttempt(self), random=random, attempts=attempts, deadline_s=deadline_s, sleep=sleep
        )
        try:
            self._url = URL(provider.base_url + "/chat/completions")
        except ValueError:
            raise UserError(f"{provider.name}: the base URL cannot be read", "write it as https://host/v1") from None
        self._headers = {hdrs.CONTENT_TYPE: "application/json"}
        if key:
            self._headers[hdrs.AUTHORIZATION] = f"Bearer {key.reveal()}"

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Ask until there is a reply or no time or try is left."""
        return await self._patient.complete(request)

    async def once(self, request: ModelRequest, left_s: float) -> ModelReply | Failure | Learnt:
        """One try."""
        dialect = self._dialect
        content = wire.content(request, self._model, dialect)
        first_call = sum(len(message.calls) for message in request.messages)
        began = self._clock()
        found = await self._ask(content, first_call, min(self.timeout_s, left_s))
        if isinstance(found, ModelReply):
            return replace(found, latency_ms=round((self._clock() - began) * 1000, 3))
        plainer = wire.adapted(dialect, request, found.message) if found.code in ADAPTABLE else None
        if plainer is None:
            return found
        if self._dialect is dialect:  # else others have learnt in the meantime, and perhaps more
            self._dialect = plainer
        return Learnt(found)

    async def _ask(self, content: bytes, first_call: int, timeout_s: float) -> ModelReply | Failure:
        try:
            async with asyncio.timeout(timeout_s):
                async with self._session().post(
                    self._url, data=content, headers=self._headers, allow_redirects=False
                ) as response:
                    raw = await _whole(response)
                    status, headers = response.status, response.headers
        except TimeoutError:
            return Failure("retry", "timeout", f"{self.name}: no answer within {timeout_s:.3g} s")
        except aiohttp.InvalidURL:
            return Failure("user", "bad_address", f"{self.name}: the base URL cannot be asked", "check the base URL")
        except aiohttp.ClientConnectorCertificateError:
            return Failure(
                "give_up", "certificate", f"{self.name}: the certificate of {self.provider.host} is not valid"
            )
        except aiohttp.ClientConnectorError as error:
            return Failure("retry", "unreachable", f"{self.name}: cannot reach {self.provider.host} ({_why(error)})")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # Their texts may hold anything that the server sent; the kind of error says enough.
            return Failure("retry", "connection", f"{self.name}: the connection broke ({type(error).__name__})")
        found = self._read(raw, status, headers, first_call)
        if self.seen is not None:
            self.seen(headers, found.usage if isinstance(found, ModelReply) else NO_USAGE, status)
        return found

    def _read(
        self, raw: bytes | None, status: int, headers: Mapping[str, str], first_call: int
    ) -> ModelReply | Failure:
        if raw is None:
            return malformed(self.name, f"the reply is larger than {LARGEST:,} bytes")
        key = self._key
        if status >= 300:
            # Before anything is cut to a line: half a key would not be known as one.
            body = reply.parse(raw if key is None else key.hide(raw.decode("utf-8", "replace")))
            return reply.read_error(status, body, headers, self.name, first_call)
        raw = raw if key is None else key.hide_bytes(raw)
        keeps = self.provider.dialect.keeps
        # By what it is: some servers stream without being asked to, and call it anything.
        if raw.lstrip()[:1] in (b"{", b"["):
            found = reply.read(reply.parse(raw), self.name, keeps, first_call)
        else:
            found = stream.read(raw, self.name, keeps, first_call)
        return found if key is None else _hidden(found, key)


def _hidden(found: ModelReply | Failure, key: Secret) -> ModelReply | Failure:
    """The outcome without a key that came back in escapes or in pieces, which only show once they are read."""
    if isinstance(found, Failure):
        return replace(found, message=key.hide(found.message))
    said = [found.text, found.problem, found.state, found.provider_id, found.model]
    said += [word for call in found.calls for word in (call.id, call.name, call.arguments)]
    whole = "\n".join(said)
    if key.hide(whole) == whole:
        return found
    return replace(
        found,
        text=key.hide(found.text),
        problem=key.hide(found.problem),
        state="",
        provider_id=key.hide(found.provider_id),
        model=key.hide(found.model),
        calls=tuple(ToolCall(key.hide(call.id), key.hide(call.name), key.hide(call.arguments)) for call in found.calls),
    )


async def _whole(response: aiohttp.ClientResponse) -> bytes | None:
    """The body; None where it is too large to be taken."""
    length = response.content_length
    if length is not None and length <= LARGEST and hdrs.CONTENT_ENCODING not in response.headers:
        return await response.read()
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > LARGEST:
            response.close()
            return None
        pieces.append(piece)
    return b"".join(pieces)


def _why(error: aiohttp.ClientConnectorError) -> str:
    return (error.os_error.strerror if isinstance(error.os_error, OSError) else "") or "no connection"
