"""`ChatModel`: a model behind any server that speaks chat completions."""

from collections.abc import Callable, Mapping
from typing import Any

from pitboss.core.errors import UserError
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.models.chat import reply, stream, wire
from pitboss.models.chat.adaptation import simpler_dialect
from pitboss.models.failures import Failure
from pitboss.models.http_model import HttpModel
from pitboss.models.json_body import parse_body
from pitboss.models.providers import Dialect, Provider
from pitboss.models.secret import Secret


class ChatModel(HttpModel[Dialect]):
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
        url = f"{provider.base_url}/chat/completions"
        super().__init__(name, url, headers, provider.dialect, key, clock=clock, **options)
        self.provider = provider
        self._model = model or name.partition("/")[2]

    def _body(self, request: ModelRequest, form: Dialect) -> dict[str, Any]:
        return wire.body(request, self._model, form)

    def _read(
        self, content: bytes, status: int, headers: Mapping[str, str], request: ModelRequest, form: Dialect
    ) -> ModelReply | Failure:
        first_call = sum(len(message.calls) for message in request.messages)
        if status >= 300:
            return reply.read_error(status, parse_body(content), headers, self.name, first_call)
        keeps = self.provider.dialect.keeps
        # By its content: some servers stream without being asked to, with any content type.
        if content.lstrip()[:1] in (b"{", b"["):
            return reply.read(parse_body(content), self.name, keeps, first_call)
        return stream.read(content, self.name, keeps, first_call)

    def _simpler(self, form: Dialect, request: ModelRequest, failure: Failure) -> Dialect | None:
        return simpler_dialect(form, request, failure.message)


def key_headers(provider: Provider, key: Secret | None) -> dict[str, str]:
    """The headers that carry a provider's key. Refuses to send it to an address that it does not belong to."""
    if key is None:
        return {}
    if not provider.may_hold_key:
        raise UserError(
            f"the key of {provider.name} is not sent to {provider.host}",
            "a key goes only to the address it belongs to; use LLM_BASE_URL with LLM_API_KEY for another one",
        )
    return {"Authorization": f"Bearer {key.reveal()}"}
