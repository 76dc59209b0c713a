"""`OpenAIModel`: chat completions or Responses, whichever the provider accepts for a model.

A table says which models of OpenAI need Responses. For every other model, and on every compatible host, the protocol is
learnt from the provider's own refusal, once per client.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from pitboss.core.ports import ModelRequest
from pitboss.models.call import CallContext, CallResult, ModelClient
from pitboss.models.failures import Failure

_USE_RESPONSES = re.compile(r"v1/responses|\bresponses api\b", re.IGNORECASE)
_USE_CHAT = re.compile(r"chat/completions|\bchat completions\b", re.IGNORECASE)


class OpenAIModel(ModelClient):
    """One model over two protocols. Safe to use from any number of tasks of a loop."""

    def __init__(
        self, chat: ModelClient, responses: ModelClient, prefers_responses: Callable[[ModelRequest], bool]
    ) -> None:
        """`prefers_responses` decides which protocol a request is sent by at first."""
        self.name = chat.name
        self._chat = chat
        self._responses = responses
        self._prefers_responses = prefers_responses
        self._learnt: ModelClient | None = None

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        """Send one request."""
        client = self._learnt or (self._responses if self._prefers_responses(request) else self._chat)
        result = await client.call(request, context)
        if result.failure is None or result.is_adapted:
            return result
        if client is self._chat and _refuses_chat(result.failure):
            other = self._responses
        elif client is self._responses and _refuses_responses(result.failure):
            other = self._chat
        else:
            return result
        if self._learnt is client:  # it has been refused by both: no further change helps
            return result
        self._learnt = other
        return replace(result, is_adapted=True)


def _refuses_chat(failure: Failure) -> bool:
    return failure.status in (400, 404) and _USE_RESPONSES.search(failure.message) is not None


def _refuses_responses(failure: Failure) -> bool:
    """Whether a host does not speak Responses: it says so, or there is nothing at that address."""
    if failure.status in (404, 405, 501) and failure.code == "bad_address":
        return True
    return failure.status in (400, 404) and _USE_CHAT.search(failure.message) is not None
