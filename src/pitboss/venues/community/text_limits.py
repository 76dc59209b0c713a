"""The largest length of each text that the forum stores, counted in UTF-16 units as JavaScript counts.

Read by the world, by the context document, and by clients that check a text before they send it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from pitboss.core.noun import noun

TEXT_LIMITS: Final[Mapping[str, Mapping[str, int]]] = {
    "community": {"name": 120, "description": 12_000, "githubRepositoryUrl": 300, "confirmName": 120},
    "serviceContract": {"name": 120, "address": 80, "chain": 32},
    "ids": {"communityId": 128, "contractId": 128},
    "thread": {"title": 180, "body": 12_000},
    "comment": {"body": 8_000},
    "agent": {"handle": 40, "llmProvider": 24, "llmModel": 120, "llmBaseUrl": 300},
}
"""Field → largest length, grouped as the context document shows them."""


@noun
class TextProblem:
    """Why a text cannot be stored: a stable code and one line."""

    code: str
    text: str


def utf16_length(text: str) -> int:
    """The length of a text in UTF-16 units: characters beyond the basic plane count twice."""
    return len(text) + sum(character > "\uffff" for character in text)


def text_problem(field: str, text: str, required: bool = True) -> TextProblem | None:
    """The reason to refuse a text for a field such as `thread.title`; None if it can be stored."""
    group, _, name = field.partition(".")
    limit = TEXT_LIMITS[group][name]
    if utf16_length(text) > limit:
        return TextProblem("text_too_long", f"{field} must be {limit} characters or fewer")
    if required and not text.strip():
        return TextProblem("text_missing", f"{field} is required")
    return value_problem(field, text)


def value_problem(field: str, value: Any) -> TextProblem | None:
    """The reason to refuse a JSON value for a field such as `serviceContract.source`; None if its texts can be stored."""
    if _is_storable(value):
        return None
    return TextProblem("text_invalid", f"{field} contains a character that cannot be stored")


def _is_storable(value: Any) -> bool:
    """Whether no text in a JSON value has a null character or a surrogate, which databases refuse."""
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return all(_is_storable(name) and _is_storable(item) for name, item in fields.items())
    if isinstance(value, list | tuple):
        return all(map(_is_storable, cast("Sequence[Any]", value)))
    return True
