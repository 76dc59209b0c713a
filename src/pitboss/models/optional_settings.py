"""`OptionalSettings`: the settings of a request that a server has rejected, and that are left out from then on.

Which settings a model accepts changes faster than any table. A rejected one is recognised by its name in the provider's
message, once per client; every reply says which settings were left out (`ModelReply.rejected_settings`).
"""

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from pitboss.core.noun import noun

OPTIONAL = (
    "temperature", "seed", "random_seed", "parallel_tool_calls", "reasoning_effort", "reasoning", "thinking",
    "prompt_cache_key", "include", "store", "generationConfig.temperature", "generationConfig.seed",
    "generationConfig.thinkingConfig", "inferenceConfig.temperature",
    "additionalModelRequestFields.thinking", "additionalModelRequestFields.reasoning_effort",
)  # fmt: skip
"""Fields of request bodies that a request can do without; a dot leads into an object."""
TOKEN_LIMITS = (
    "max_tokens", "max_completion_tokens", "max_output_tokens", "generationConfig.maxOutputTokens",
    "inferenceConfig.maxTokens",
)  # fmt: skip
"""Fields of request bodies that limit the tokens of a reply."""
_ABOUT_TOKENS = re.compile(
    r"max_?(completion|output)?_?tokens|maximum (number of )?((output|completion) )?tokens", re.IGNORECASE
)
LEAST_TOKENS = 1_024
"""Smaller numbers in a message are not limits of a reply."""
_NUMBER = re.compile(r"\d[\d,]*")
FORM_SETTINGS = {
    "force": "tool_choice",
    "can_force": "tool_choice",
    "schema": "response_format",
    "has_schemas": "response_format",
    "system": "system message",
    "max_tokens": "max_tokens",
    "has_thinking": "thinking of earlier steps",
    "has_cache_marks": "cache marks",
}
"""The setting that each field of a request's form stands for, by the fields of all protocols."""


def changed_settings(first: Any, now: Any) -> tuple[str, ...]:
    """The settings in which the form of a request differs from the first one."""
    if first is now:
        return ()
    names = [field.name for field in fields(first) if getattr(first, field.name) != getattr(now, field.name)]
    return tuple(dict.fromkeys(FORM_SETTINGS.get(name, name) for name in names))


@noun
class OptionalSettings:
    """The fields that are left out of every request."""

    rejected: tuple[str, ...] = ()
    most_tokens: int | None = None
    """The most tokens of a reply that the server accepts, where it has said so."""

    @property
    def names(self) -> tuple[str, ...]:
        """The rejected settings, for people."""
        return self.rejected if self.most_tokens is None else (*self.rejected, f"max_tokens above {self.most_tokens}")

    def without_rejected(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body without the rejected fields, and with a limit of tokens that the server accepts."""
        for path in self.rejected:
            body = _without(body, path)
        if self.most_tokens is not None:
            for path in TOKEN_LIMITS:
                body = _capped(body, path, self.most_tokens)
        return body

    def after(self, message: str, body: Mapping[str, Any]) -> "OptionalSettings | None":
        """The settings after a rejection with this message; None where it names no optional field of the body."""
        for path in OPTIONAL:
            name = re.escape(path.rpartition(".")[2])
            if path not in self.rejected and _has(body, path) and re.search(rf"\b{name}\b", message, re.IGNORECASE):
                return replace(self, rejected=(*self.rejected, path))
        most = _accepted_tokens(message, body)
        return None if most is None or most == self.most_tokens else replace(self, most_tokens=most)


def _has(body: Mapping[str, Any], path: str) -> bool:
    head, _, tail = path.partition(".")
    inner = body.get(head)
    return head in body and (not tail or (isinstance(inner, Mapping) and tail in inner))


def _without(body: dict[str, Any], path: str) -> dict[str, Any]:
    if not _has(body, path):
        return body
    head, _, tail = path.partition(".")
    if tail:
        return {**body, head: _without(dict(body[head]), tail)}
    return {name: value for name, value in body.items() if name != head}


def _capped(body: dict[str, Any], path: str, most: int) -> dict[str, Any]:
    if not _has(body, path):
        return body
    head, _, tail = path.partition(".")
    if tail:
        return {**body, head: _capped(dict(body[head]), tail, most)}
    return {**body, head: min(body[head], most)}


def _accepted_tokens(message: str, body: Mapping[str, Any]) -> int | None:
    """The largest limit of tokens that a message names and that is below the requested one."""
    if not _ABOUT_TOKENS.search(message):
        return None
    requested = max((_value(body, path) for path in TOKEN_LIMITS if _has(body, path)), default=0)
    numbers = [int(text.replace(",", "")) for text in _NUMBER.findall(message)]
    return max((number for number in numbers if LEAST_TOKENS <= number < requested), default=None)


def _value(body: Mapping[str, Any], path: str) -> int:
    head, _, tail = path.partition(".")
    return body[head][tail] if tail else body[head]
