"""Rewriting of text by regular expressions that can map a place in the result back to the original text.

Used by `core.redaction`, which searches a text as it reads after decoding and changes it as it was written.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence

from pitboss.core.noun import noun

MOST_ROUNDS = 8
"""How many times a rewriting is repeated, because its result may match again (`%2541` is `%41` is `A`)."""

Span = tuple[int, int]


@noun
class Rewrite:
    """Replaces what matches. `may_match` is a faster test that is true for every text with a match."""

    pattern: "re.Pattern[str]"
    replacement: Callable[["re.Match[str]"], str] = lambda _: ""
    may_match: Callable[[str], bool] = lambda _: True


def rewrite(text: str, rules: Sequence[Rewrite]) -> str:
    """The text after all rules, repeated until nothing changes."""
    for _ in range(MOST_ROUNDS):
        before = text
        for rule in rules:
            if rule.may_match(text):
                text = rule.pattern.sub(rule.replacement, text)
        if text == before:
            break
    return text


class TracedText:
    """A text that is rewritten step by step; `source` maps places back to the original text."""

    __slots__ = ("_changes", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._changes: list[_Change] = []

    def rewrite(self, rules: Sequence[Rewrite], rounds: int = MOST_ROUNDS) -> None:
        """Rewrite the text as the function `rewrite` does."""
        for _ in range(rounds):
            before = self.text
            for rule in rules:
                if rule.may_match(self.text):
                    change = _Change(self.text, rule)
                    self.text = change.text
                    self._changes.append(change)
            if self.text == before:
                break

    def source(self, span: Span) -> Span:
        """The place in the original text that became a place in the present text."""
        for change in reversed(self._changes):
            span = change.source(span)
        return span


class _Change:
    """One pass of one rule: where each replacement was, and where it ends now."""

    __slots__ = ("_ends", "_new_ends", "_starts", "text")

    def __init__(self, text: str, rule: Rewrite) -> None:
        self._starts, self._ends, self._new_ends = list[int](), list[int](), list[int]()
        pieces, at, size = list[str](), 0, 0
        for match in rule.pattern.finditer(text):
            start, end = match.span()
            replacement = rule.replacement(match)
            pieces += (text[at:start], replacement)
            size += start - at + len(replacement)
            self._starts.append(start)
            self._ends.append(end)
            self._new_ends.append(size)
            at = end
        self.text = "".join((*pieces, text[at:]))
        self._starts.append(len(text))
        self._ends.append(len(text))

    def source(self, span: Span) -> Span:
        first, next_to_first = self._copied_from(span[0])
        last, next_to_last = self._copied_from(span[1] - 1)
        is_copied = last < self._starts[next_to_last]
        return min(first, self._starts[next_to_first]), last + 1 if is_copied else self._ends[next_to_last]

    def _copied_from(self, position: int) -> tuple[int, int]:
        """Where a character was if it was copied, and the number of the first replacement that does not end before it."""
        number = bisect_right(self._new_ends, position)
        return (position + self._ends[number - 1] - self._new_ends[number - 1] if number else position), number
