"""`Vocabulary`: the keys that an intent of a venue may hold, and the strict reading of an untrusted intent.

Every venue declares its own (`venues/*/intents.py`) and its own rules of what an action requires; reading untrusted JSON
as texts and exact numbers is the same for all. Reading never raises and never casts; it returns every problem.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, cast

from pitboss.core.codec import json_number, printable

MAX_KEYS_LISTED = 5
"""How many unknown keys are listed; an intent can hold thousands."""
_MAX_KEY_CHARS = 40


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The keys of an intent by type. `called` is the noun for such an intent in messages, such as "a proposal"."""

    called: str
    texts: frozenset[str]
    numbers: frozenset[str]
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other names of numbers. A number given under two names must be equal in both."""

    @classmethod
    def of_schema(
        cls, called: str, schema: Mapping[str, Any], aliases: Mapping[str, str] | None = None
    ) -> "Vocabulary":
        """The properties of a JSON Schema: those of type `string` are texts, those of type `number` or `integer` numbers."""
        types = {name: about["type"] for name, about in schema["properties"].items()}
        texts = frozenset(name for name, kind in types.items() if kind == "string")
        numbers = frozenset(name for name, kind in types.items() if kind in ("number", "integer"))
        return cls(called, texts, numbers, aliases or {})

    def read(self, raw: Any) -> tuple[dict[str, str], dict[str, Decimal], list[str]]:
        """Texts, numbers and problems; a null field counts as absent."""
        texts: dict[str, str] = {}
        numbers: dict[str, Decimal] = {}
        if not isinstance(raw, dict):
            return texts, numbers, [f"{self.called} is a JSON object"]
        unknown_keys: list[str] = []
        problems: list[str] = []
        for key, value in cast("dict[Any, Any]", raw).items():
            if value is None:
                continue
            if key in self.texts:
                if isinstance(value, str):
                    texts[key] = value if value.isascii() else printable(value)
                else:
                    problems.append(f"{key} must be text")
            elif key in self.numbers or key in self.aliases:
                number, name = json_number(value), self.aliases.get(key, key)
                if number is None:
                    problems.append(f"{key} must be a finite JSON number")
                elif numbers.setdefault(name, number) != number:
                    problems.append(f"{name} is given twice and differs")
            else:
                unknown_keys.append(printable(str(key))[:_MAX_KEY_CHARS])
        if not unknown_keys and not problems:
            return texts, numbers, problems
        return (
            texts,
            numbers,
            [f"unknown key {key!r}" for key in sorted(unknown_keys)[:MAX_KEYS_LISTED]] + sorted(problems),
        )
