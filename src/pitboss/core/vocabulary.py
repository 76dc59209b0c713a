"""`Vocabulary`: the words and numbers that an intent of a venue may hold, and the strict reading of an untrusted one.

Every venue has its own (`venues/*/intents.py`) and its own rules of what an action needs; how strangers' JSON becomes texts
and exact numbers is the same for all. Reading never raises and never casts: it tells everything that is wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, cast

from pitboss.core.codec import json_number, printable

MOST_NAMED = 5
"""So many unknown keys are named; an intent can hold thousands."""
_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The keys of an intent, by what they must be. `called` is what people call one, such as "a proposal"."""

    called: str
    texts: frozenset[str]
    numbers: frozenset[str]
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other names of numbers. What is named twice must say the same both times."""

    def read(self, raw: Any) -> tuple[dict[str, str], dict[str, Decimal], list[str]]:
        """Texts, numbers, and what is wrong; a null field counts as left out."""
        texts: dict[str, str] = {}
        numbers: dict[str, Decimal] = {}
        if not isinstance(raw, dict):
            return texts, numbers, [f"{self.called} is a JSON object"]
        unknown: list[str] = []
        wrong: list[str] = []
        for key, value in cast("dict[Any, Any]", raw).items():
            if value is None:
                continue
            if key in self.texts:
                if isinstance(value, str):
                    texts[key] = value if value.isascii() else printable(value)
                else:
                    wrong.append(f"{key} must be text")
            elif key in self.numbers or key in self.aliases:
                number, name = json_number(value), self.aliases.get(key, key)
                if number is None:
                    wrong.append(f"{key} must be a finite JSON number")
                elif numbers.setdefault(name, number) != number:
                    wrong.append(f"{name} is given twice and differs")
            else:
                unknown.append(printable(str(key))[:_LONGEST_NAME])
        return texts, numbers, [f"unknown key {key!r}" for key in sorted(unknown)[:MOST_NAMED]] + sorted(wrong)
