"""`AnthropicModel` and `GoogleModel`: models behind the providers' own protocols."""

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from pitboss.core.errors import UserError
from pitboss.core.noun import noun
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.models.failures import Failure
from pitboss.models.http_model import HttpModel
from pitboss.models.native import anthropic_reply, anthropic_request, google_reply, google_request
from pitboss.models.native.answer_form import AnswerForm
from pitboss.models.native.capabilities import anthropic_capabilities, google_capabilities
from pitboss.models.native.reply import ReplyContext
from pitboss.models.providers import ANTHROPIC, GOOGLE
from pitboss.models.secret import Secret

ANTHROPIC_VERSION = "2026-10-21"
STALE_THINKING = "bound to a different conversation"
"""In the message of an error about thinking that is sent back with other tools than it was made with."""
_ABOUT_SCHEMA = re.compile(r"schema|output|response|grammar|json", re.IGNORECASE)
"""Messages that may be about the schema of the reply."""


@noun
class NativeForm:
    """What requests may contain. It becomes less for the whole life of a client where the provider rejects something.

    Without schemas a model gets the schema described in a message. Without thinking the model's own thinking is not sent
    back: the newest models of Anthropic bind it to the tools of the request, which change with the last step of a tick.
    """

    has_schemas: bool = True
    has_thinking: bool = True


class NativeModel(HttpModel[NativeForm]):
    """What both clients share."""

    def __init__(self, name: str, key: Secret | None, url: str, header: str, prefix: str = "", **options: Any) -> None:
        if not key:
            raise UserError(f"{name} needs a key", "`pitboss secrets set NAME`, or the provider's environment variable")
        headers = {header: f"{prefix}{key.reveal()}", **options.pop("headers", {})}
        super().__init__(name, url, headers, NativeForm(), key, **options)

    def _simpler(self, form: NativeForm, request: ModelRequest, failure: Failure) -> NativeForm | None:
        if form.has_thinking and STALE_THINKING in failure.message:
            return replace(form, has_thinking=False)
        if not _ABOUT_SCHEMA.search(failure.message) or self._answer_form(request, form).output is None:
            return None
        return replace(form, has_schemas=False)

    @abstractmethod
    def _answer_form(self, request: ModelRequest, form: NativeForm) -> AnswerForm:
        """How the model is made to answer a request."""

    def _context(self, request: ModelRequest, form: NativeForm, model: str = "") -> ReplyContext:
        turn = sum(message.role == "assistant" for message in request.messages)
        return ReplyContext(self.name, turn, self._answer_form(request, form).call, model)


class AnthropicModel(NativeModel):
    """`anthropic/…`."""

    def __init__(
        self,
        name: str,
        model: str,
        key: Secret | None,
        *,
        base_url: str = "",
        clock: Callable[[], float],
        **options: Any,
    ) -> None:
        """`options` are those of `HttpModel`."""
        url = f"{(base_url or ANTHROPIC).rstrip('/')}/v1/messages"
        headers = {"anthropic-version": ANTHROPIC_VERSION}
        super().__init__(name, key, url, "Authorization", "Bearer ", headers=headers, clock=clock, **options)
        # Names are written with dots as well as dashes; on the wire there are only dashes.
        self._model = model.replace(".", "-")
        self._capabilities = anthropic_capabilities(self._model)

    def _answer_form(self, request: ModelRequest, form: NativeForm) -> AnswerForm:
        return anthropic_request.form_of(request, self._capabilities, form.has_schemas)

    def _body(self, request: ModelRequest, form: NativeForm) -> dict[str, Any]:
        answer = self._answer_form(request, form)
        return anthropic_request.body(request, self._model, self._capabilities, answer, form.has_thinking)

    def _read(
        self, content: bytes, status: int, headers: Mapping[str, str], request: ModelRequest, form: NativeForm
    ) -> ModelReply | Failure:
        return anthropic_reply.read(content, status, headers, self._context(request, form))


class GoogleModel(NativeModel):
    """`google/…`."""

    def __init__(
        self,
        name: str,
        model: str,
        key: Secret | None,
        *,
        base_url: str = "",
        clock: Callable[[], float],
        **options: Any,
    ) -> None:
        """`options` are those of `HttpModel`."""
        path = model if model.startswith(("models/", "tunedModels/")) else f"models/{model}"
        url = f"{(base_url or GOOGLE).rstrip('/')}/v1beta/{quote(path)}:generateContent"
        super().__init__(name, key, url, "x-goog-api-key", clock=clock, **options)
        self._model = model
        self._capabilities = google_capabilities(model)

    def _answer_form(self, request: ModelRequest, form: NativeForm) -> AnswerForm:
        return google_request.form_of(request, self._capabilities, form.has_schemas)

    def _body(self, request: ModelRequest, form: NativeForm) -> dict[str, Any]:
        return google_request.body(request, self._capabilities, self._answer_form(request, form))

    def _read(
        self, content: bytes, status: int, headers: Mapping[str, str], request: ModelRequest, form: NativeForm
    ) -> ModelReply | Failure:
        return google_reply.read(content, status, headers, self._context(request, form, self._model))
