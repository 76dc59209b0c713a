"""`ChatModel`: a model behind any server that speaks chat completions."""

from collections.abc import Mapping
from typing import Any

from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.models.chat import reply, stream, wire
from pitboss.models.chat.adaptation import simpler_dialect
from pitboss.models.failures import Failure
from pitboss.models.http_model import HttpModel
from pitboss.models.json_body import as_dict, as_str, parse_body
from pitboss.models.providers import Dialect, Provider
from pitboss.models.secret import Secret


class ChatModel(HttpModel[Dialect]):
    """One model of one provider."""

    def __init__(self, name: str, provider: Provider, key: Secret | None = None, **options: Any) -> None:
        """`options` are those of `HttpModel`."""
        super().__init__(name, provider, key, provider.dialect, **options)
        self._keeps = provider.dialect.keeps

    def _path(self) -> str:
        return "/chat/completions"

    def _body(self, request: ModelRequest, form: Dialect) -> dict[str, Any]:
        return wire.body(request, self._model, form)

    def _stream_fields(self) -> dict[str, Any] | None:
        return {"stream": True, "stream_options": {"include_usage": True}}

    def _text_of(self, event: dict[str, Any]) -> str:
        choices = event.get("choices")
        first = as_dict(choices[0]) if isinstance(choices, list) and choices else {}
        return as_str(as_dict(first.get("delta")).get("content"))

    def _read(
        self, content: bytes, status: int, headers: Mapping[str, str], request: ModelRequest, form: Dialect
    ) -> ModelReply | Failure:
        first_call = sum(len(message.calls) for message in request.messages)
        if status >= 300:
            return reply.read_error(status, parse_body(content), headers, self.name, first_call)
        # By its content: some servers stream without being asked to, with any content type.
        if content.lstrip()[:1] in (b"{", b"["):
            return reply.read(parse_body(content), self.name, self._keeps, first_call)
        return stream.read(content, self.name, self._keeps, first_call)

    def _simpler(self, form: Dialect, request: ModelRequest, failure: Failure) -> Dialect | None:
        return simpler_dialect(form, request, failure.message)
