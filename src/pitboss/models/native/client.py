"""The clients of the protocols that are not chat completions: Anthropic, Google, Bedrock, and OpenAI's Responses."""

import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from pitboss.core.errors import UserError
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.models.failures import Failure
from pitboss.models.http_model import HttpModel
from pitboss.models.json_body import as_dict, as_str
from pitboss.models.native import (
    anthropic_reply,
    anthropic_request,
    converse,
    google_reply,
    google_request,
    responses_reply,
    responses_request,
)
from pitboss.models.native.answer_form import AnswerForm, NativeForm
from pitboss.models.native.capabilities import anthropic_capabilities, google_capabilities
from pitboss.models.native.reply import ReplyContext
from pitboss.models.providers import Provider
from pitboss.models.secret import Secret

ANTHROPIC_VERSION = "2026-10-21"
_ABOUT_THINKING = re.compile(
    r"bound to a different conversation|encrypted content|reasoning.encrypted|of type 'reasoning'", re.IGNORECASE
)
"""Messages about thinking that is sent back: with other tools than it was made with, or where it is not accepted."""
_ABOUT_FORCING = re.compile(r"tool[_ ]?choice", re.IGNORECASE)
_ABOUT_SCHEMA = re.compile(r"schema|output|response|grammar|json|text\.format", re.IGNORECASE)
"""Messages that may be about the schema of the reply."""
_ABOUT_CACHE = re.compile(r"cache ?point|\bcaching\b", re.IGNORECASE)


class NativeModel(HttpModel[NativeForm]):
    """What these clients share."""

    def __init__(self, name: str, provider: Provider, key: Secret | None = None, **options: Any) -> None:
        """`options` are those of `HttpModel`."""
        if key is None and provider.needs_key:
            raise UserError(f"{name} needs a key", "`pitboss secrets set NAME`, or the provider's environment variable")
        super().__init__(name, provider, key, NativeForm(), **options)

    def _simpler(self, form: NativeForm, request: ModelRequest, failure: Failure) -> NativeForm | None:
        message, answer = failure.message, self._answer_form(request, form)
        if form.has_thinking and _ABOUT_THINKING.search(message):
            return replace(form, has_thinking=False)
        if answer.kind == "forced" and _ABOUT_FORCING.search(message):
            return replace(form, can_force=False)
        if form.has_cache_marks and _ABOUT_CACHE.search(message):
            return replace(form, has_cache_marks=False)
        if answer.output is not None and _ABOUT_SCHEMA.search(message):
            return replace(form, has_schemas=False)
        return None

    @abstractmethod
    def _answer_form(self, request: ModelRequest, form: NativeForm) -> AnswerForm:
        """How the model is made to answer a request."""

    def _context(self, request: ModelRequest, form: NativeForm) -> ReplyContext:
        turn = sum(message.role == "assistant" for message in request.messages)
        return ReplyContext(self.name, turn, self._answer_form(request, form).call, self._model)


class AnthropicModel(NativeModel):
    """`anthropic/…`."""

    def __init__(self, name: str, provider: Provider, key: Secret | None = None, **options: Any) -> None:
        """`options` are those of `HttpModel`."""
        super().__init__(name, provider, key, **options)
        self._headers["anthropic-version"] = ANTHROPIC_VERSION
        # Names are written with dots as well as dashes; on the wire there are only dashes.
        self._model = self._model.replace(".", "-")
        self._capabilities = anthropic_capabilities(self._model)

    def _path(self) -> str:
        return "/v1/messages"

    def _answer_form(self, request: ModelRequest, form: NativeForm) -> AnswerForm:
        return anthropic_request.form_of(request, self._capabilities, form)

    def _body(self, request: ModelRequest, form: NativeForm) -> dict[str, Any]:
        answer = self._answer_form(request, form)
        return anthropic_request.body(request, self._model, self._capabilities, answer, form.has_thinking)

    def _stream_fields(self) -> dict[str, Any] | None:
        return {"stream": True}

    def _text_of(self, event: dict[str, Any]) -> str:
        delta = as_dict(event.get("delta"))
        return as_str(delta.get("text")) if delta.get("type") == "text_delta" else ""

    def _read(
        self, content: bytes, status: int, headers: Mapping[str, str], request: ModelRequest, form: NativeForm
    ) -> ModelReply | Failure:
        return anthropic_reply.read(content, status, headers, self._context(request, form))


class GoogleModel(NativeModel):
    """`google/…`."""

    def __init__(self, name: str, provider: Provider, key: Secret | None = None, **options: Any) -> None:
        """`options` are those of `HttpModel`."""
        super().__init__(name, provider, key, **options)
        self._capabilities = google_capabilities(self._model)

    def _path(self) -> str:
        is_path = self._model.startswith(("models/", "tunedModels/"))
        return f"/v1beta/{quote(self._model if is_path else f'models/{self._model}')}:generateContent"

    def _answer_form(self, request: ModelRequest, form: NativeForm) -> AnswerForm:
        return google_request.form_of(request, self._capabilities, form)

    def _body(self, request: ModelRequest, form: NativeForm) -> dict[str, Any]:
        return google_request.body(request, self._capabilities, self._answer_form(request, form))

    def _read(
        self, content: bytes, status: int, headers: Mapping[str, str], request: ModelRequest, form: NativeForm
    ) -> ModelReply | Failure:
        return google_reply.read(content, status, headers, self._context(request, form))


class BedrockModel(NativeModel):
    """`bedrock/…`: any model that Amazon Bedrock offers, by its Converse protocol."""

    def _path(self) -> str:
        return f"/model/{quote(self._model, safe='')}/converse"

    def _answer_form(self, request: ModelRequest, form: NativeForm) -> AnswerForm:
        return converse.form_of(request, self._model, form)

    def _body(self, request: ModelRequest, form: NativeForm) -> dict[str, Any]:
        return converse.body(request, self._model, form)

    def _read(
        self, content: bytes, status: int, headers: Mapping[str, str], request: ModelRequest, form: NativeForm
    ) -> ModelReply | Failure:
        return converse.read(content, status, headers, self._context(request, form))


class ResponsesModel(NativeModel):
    """A model behind any server that speaks OpenAI's Responses protocol."""

    def _path(self) -> str:
        return "/responses"

    def _answer_form(self, request: ModelRequest, form: NativeForm) -> AnswerForm:
        return responses_request.form_of(request, form)

    def _body(self, request: ModelRequest, form: NativeForm) -> dict[str, Any]:
        return responses_request.body(request, self._model, form)

    def _stream_fields(self) -> dict[str, Any] | None:
        return {"stream": True}

    def _text_of(self, event: dict[str, Any]) -> str:
        return as_str(event.get("delta")) if event.get("type") == "response.output_text.delta" else ""

    def _read(
        self, content: bytes, status: int, headers: Mapping[str, str], request: ModelRequest, form: NativeForm
    ) -> ModelReply | Failure:
        return responses_reply.read(content, status, headers, self._context(request, form))
