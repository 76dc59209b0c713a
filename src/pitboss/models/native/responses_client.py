"""`ResponsesModel`: a model behind any server that speaks OpenAI's Responses protocol."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.models.chat.client import key_headers
from pitboss.models.failures import Failure
from pitboss.models.http_model import HttpModel
from pitboss.models.native import responses_reply, responses_request
from pitboss.models.native.reply import ReplyContext
from pitboss.models.native.responses_request import ResponsesForm
from pitboss.models.providers import Provider
from pitboss.models.secret import Secret

_ABOUT_REASONING_ITEMS = re.compile(r"encrypted content|reasoning.encrypted|of type 'reasoning'", re.IGNORECASE)


class ResponsesModel(HttpModel[ResponsesForm]):
    """One model of one provider."""

    def __init__(
        self,
        name: str,
        provider: Provider,
        key: Secret | None = None,
        *,
        clock: Callable[[], float],
        model: str = "",
        **options: Any,
    ) -> None:
        """`options` are those of `HttpModel`."""
        headers = key_headers(provider, key)
        super().__init__(name, f"{provider.base_url}/responses", headers, ResponsesForm(), key, clock=clock, **options)
        self._model = model or name.partition("/")[2]

    def _body(self, request: ModelRequest, form: ResponsesForm) -> dict[str, Any]:
        return responses_request.body(request, self._model, form)

    def _read(
        self, content: bytes, status: int, headers: Mapping[str, str], request: ModelRequest, form: ResponsesForm
    ) -> ModelReply | Failure:
        turn = sum(message.role == "assistant" for message in request.messages)
        answer = responses_request.form_of(request, form)
        return responses_reply.read(content, status, headers, ReplyContext(self.name, turn, answer.call, self._model))

    def _simpler(self, form: ResponsesForm, request: ModelRequest, failure: Failure) -> ResponsesForm | None:
        message = failure.message.lower()
        if form.has_reasoning_items and _ABOUT_REASONING_ITEMS.search(message):
            return replace(form, has_reasoning_items=False)
        if form.can_force and request.must_call and ("tool_choice" in message or "tool choice" in message):
            return replace(form, can_force=False)
        is_about_schema = "text.format" in message or "json_schema" in message or "response format" in message
        if form.has_schemas and is_about_schema and responses_request.form_of(request, form).output is not None:
            return replace(form, has_schemas=False)
        return None
