"""`HttpModel`: a model behind an HTTP interface, whatever its protocol. One call is one request.

A subclass encodes the request and reads the response. A server that rejects the form of a request (a schema, a forced
tool) is sent a simpler form from then on, which costs nothing because it has answered nothing yet. The key goes into one
header, to one origin, and is removed from everything that comes back, with all other secrets that `hide` knows. Caching, money,
limits and retries are wrappers.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

import aiohttp
from yarl import URL

from pitboss.core.errors import UserError
from pitboss.core.ports import ModelReply, ModelRequest, ToolCall
from pitboss.core.suggestion import did_you_mean
from pitboss.models import http_pool, http_post
from pitboss.models.call import CallContext, CallResult, ModelClient
from pitboss.models.failures import Failure, malformed
from pitboss.models.json_body import encode_json
from pitboss.models.optional_settings import OptionalSettings, changed_settings
from pitboss.models.price_list import similar_model
from pitboss.models.providers import Provider
from pitboss.models.secret import Secret
from pitboss.models.text_stream import TextStream

TIMEOUT_S = 45.0
ADAPTABLE = frozenset({"bad_setting", "bad_request", "too_long"})
"""Codes of failures that may be about the form of a request."""
Form = TypeVar("Form")


class HttpModel(ModelClient, Generic[Form]):
    """One model of one provider. Safe to use from any number of tasks of a loop."""

    def __init__(
        self,
        name: str,
        provider: Provider,
        key: Secret | None,
        form: Form,
        *,
        model: str = "",
        clock: Callable[[], float],
        session: Callable[[], aiohttp.ClientSession] = http_pool.session,
        timeout_s: float = TIMEOUT_S,
        hide: Callable[[str], str] | None = None,
    ) -> None:
        """`form` is how requests are written at first; `clock` returns seconds that never run backwards.

        `model` is the provider's name for the model; by default that in `name`. `hide` removes secrets from a text, the key
        included; by default only the key is removed.
        """
        self.name = name
        self._model = model or name.partition("/")[2]
        self._prices = provider.prices
        self.timeout_s = timeout_s
        self._first_form = self._form = form
        self._can_stream = True
        self._settings = OptionalSettings()
        self._hide = hide or (key.hide if key is not None else None)
        self._headers = {"Content-Type": "application/json", **_key_headers(provider, key)}
        self._session = session
        self._clock = clock
        try:
            self._url = URL(f"{provider.base_url}{self._path()}")
        except ValueError:
            raise UserError(f"{name}: the base URL cannot be read", "write it as https://host/v1") from None

    @abstractmethod
    def _path(self) -> str:
        """The path of requests, after the address of the provider."""

    @abstractmethod
    def _body(self, request: ModelRequest, form: Form) -> dict[str, Any]:
        """The body of a request as plain JSON values."""

    @abstractmethod
    def _read(
        self, content: bytes, status: int, headers: Mapping[str, str], request: ModelRequest, form: Form
    ) -> ModelReply | Failure:
        """What a response means. Any content gives a reply or a failure."""

    @abstractmethod
    def _simpler(self, form: Form, request: ModelRequest, failure: Failure) -> Form | None:
        """A simpler form for a server that rejected this one with a 400 or 422; None where there is none."""

    def _stream_fields(self) -> dict[str, Any] | None:
        """The fields of a body that ask for a stream of events; None for a protocol that is only read as a whole here."""
        return None

    def _text_of(self, event: dict[str, Any]) -> str:
        """The piece of the reply's text that an event of a stream holds; empty for all other events."""
        del event
        return ""

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        """Send one request."""
        form, settings = self._form, self._settings
        body = self._body(request, form)
        fields = self._stream_fields() if context.on_text is not None and self._can_stream else None
        stream = None
        if fields is not None and context.on_text is not None:
            body, stream = body | fields, TextStream(self._text_of, context.on_text, self._hide)
        content = encode_json(settings.without_rejected(body))
        timeout_s = min(self.timeout_s, context.left_s)
        started_s = self._clock()
        with context.sending():
            response = await http_post.post(
                self._session(), self._url, content, self._headers, timeout_s, self.name, stream and stream.feed
            )
        if isinstance(response, Failure):
            return CallResult(failure=response, attempts=1)
        result = CallResult(attempts=1, status=response.status, headers=response.headers)
        outcome = self._outcome(response, request, form)
        if isinstance(outcome, ModelReply):
            latency_ms = round((self._clock() - started_s) * 1000, 3)
            rejected = (*settings.names, *changed_settings(self._first_form, form))
            return replace(result, reply=replace(outcome, latency_ms=latency_ms, rejected_settings=rejected))
        if outcome.code == "unknown_model":
            outcome = replace(outcome, hint=did_you_mean(similar_model(self._prices, self._model), outcome.hint))
        is_adapted = self._adapt(form, settings, body, request, outcome)
        if not is_adapted and stream is not None and outcome.code in ADAPTABLE:
            self._can_stream, is_adapted = False, True
        return replace(result, failure=outcome, is_adapted=is_adapted)

    def _adapt(
        self, form: Form, settings: OptionalSettings, body: Mapping[str, Any], request: ModelRequest, failure: Failure
    ) -> bool:
        """Use a simpler form, or leave out a setting, from now on if that may help. Whether it may."""
        if failure.code not in ADAPTABLE:
            return False
        simpler = self._simpler(form, request, failure)
        if simpler is not None:
            if self._form is form:  # else another call has adapted in the meantime
                self._form = simpler
            return True
        fewer = settings.after(failure.message, body)
        if fewer is None:
            return False
        if self._settings is settings:
            self._settings = fewer
        return True

    def _outcome(self, response: http_post.HttpResponse, request: ModelRequest, form: Form) -> ModelReply | Failure:
        content, hide = response.content, self._hide
        if content is None:
            return malformed(self.name, f"the reply is larger than {http_post.LARGEST_BYTES:,} bytes")
        if hide is None:
            return self._read(content, response.status, response.headers, request, form)
        if response.status >= 300:
            # Secrets are removed before the text is cut to a line: half a key would not be recognised.
            content = hide(content.decode("utf-8", "replace")).encode("utf-8", "replace")
        else:
            text = content.decode("utf-8", "surrogateescape")
            hidden = hide(text)
            content = content if hidden == text else hidden.encode("utf-8", "surrogateescape")
        return _without_secrets(self._read(content, response.status, response.headers, request, form), hide)


def _key_headers(provider: Provider, key: Secret | None) -> dict[str, str]:
    """The header that carries a provider's key. Refuses to send it to an address that it does not belong to."""
    if key is None:
        return {}
    if not provider.may_hold_key:
        raise UserError(
            f"the key of {provider.name} is not sent to {provider.host}",
            "a key goes only to the address it belongs to; use LLM_BASE_URL with LLM_API_KEY for another one",
        )
    return {provider.key_header: key.reveal()} if provider.key_header else {"Authorization": f"Bearer {key.reveal()}"}


def _without_secrets(outcome: ModelReply | Failure, hide: Callable[[str], str]) -> ModelReply | Failure:
    """The outcome without a secret that was escaped or split in the response and shows only once it is read."""
    if isinstance(outcome, Failure):
        return replace(outcome, message=hide(outcome.message))
    texts = [outcome.text, outcome.problem, outcome.state, outcome.provider_id, outcome.model]
    texts += [text for call in outcome.calls for text in (call.id, call.name, call.arguments)]
    joined = "\n".join(texts)
    if hide(joined) == joined:
        return outcome
    return replace(
        outcome,
        text=hide(outcome.text),
        problem=hide(outcome.problem),
        state="",
        provider_id=hide(outcome.provider_id),
        model=hide(outcome.model),
        calls=tuple(ToolCall(hide(call.id), hide(call.name), hide(call.arguments)) for call in outcome.calls),
    )
