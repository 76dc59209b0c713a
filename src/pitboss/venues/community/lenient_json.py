"""Reads JSON as models write it: with comments, trailing commas, single or typographic quotes, raw line breaks.

Used only for text that strict JSON cannot read. Strings are read as strings, so comment marks, commas and quotes inside
them stay as they are. Numbers are exact. What is cut off or ambiguous is an error; nothing is guessed.
"""

import re
from decimal import Decimal
from typing import Any

from pitboss.core.codec import distinct_keys

MAX_DEPTH = 64
MAX_INNER_QUOTES = 500
"""Most quotes inside a string in single or typographic quotes; bounds the time for a hostile text."""
MAX_STEPS = 200_000
"""Most values, parts of strings and comments that one reader reads, over all attempts at its text; for the same reason."""
STEP_CHARS = 64
"""How many characters of a comment count as one step."""
_SPACE = re.compile(r"\s+")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STRAIGHT = re.compile(r'[^"\\]*')
_CLOSERS = {"'": "'", "“": '”“"', "”": '”"', "„": "“”", "‘": "’‘'", "’": "’'"}
"""Opening quote → the quotes that may close it."""
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LITERALS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}


class LenientReader:
    """Reads values of one text by recursive descent; methods return what they read and the position after it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.last_comment_end = text.rfind("*/")
        self.steps = 0

    def count(self, steps: int = 1) -> None:
        """Count steps; raises `ValueError` if there were too many."""
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise ValueError("too much to read")

    def skip(self, at: int) -> int:
        """The position after white space and comments."""
        while True:
            match = _SPACE.match(self.text, at)
            at = at if match is None else match.end()
            if self.text.startswith("//", at):
                line_end = self.text.find("\n", at)
                end = len(self.text) if line_end < 0 else line_end
            elif self.text.startswith("/*", at) and at + 2 <= self.last_comment_end:
                end = self.text.find("*/", at + 2) + 2
            else:
                return at
            self.count(1 + (end - at) // STEP_CHARS)
            at = end

    def ends_value(self, at: int) -> bool:
        """Whether a value can end at a position: a mark follows that closes it or separates it from the next."""
        at = self.skip(at)
        return at < len(self.text) and self.text[at] in ",:}]"

    def value(self, at: int, depth: int = 0) -> tuple[Any, int]:
        """The value that begins at a position, and where it ends. Raises `ValueError`."""
        self.count()
        at = self.skip(at)
        first = self.text[at : at + 1]
        if depth > MAX_DEPTH:
            raise ValueError("nested too deep")
        if first == "{":
            return self.object(at + 1, depth)
        if first == "[":
            return self.array(at + 1, depth)
        if first == '"' or first in _CLOSERS:
            return self.string(at)
        if (match := _NUMBER.match(self.text, at)) is not None:
            digits = match.group()
            return (int(digits) if digits.lstrip("-").isdigit() else Decimal(digits)), match.end()
        match = _NAME.match(self.text, at)
        if match is None or match.group() not in _LITERALS:
            raise ValueError(f"no value at {at}")
        return _LITERALS[match.group()], match.end()

    def object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        """An object whose brace was read. Names may be bare words."""
        pairs: list[tuple[str, Any]] = []
        at = self.skip(at)
        while self.text[at : at + 1] != "}":
            bare = _NAME.match(self.text, at)
            if bare is not None:
                name, at = bare.group(), bare.end()
            else:
                name, at = self.string(at)
            at = self.expect(at, ":")
            value, at = self.value(at, depth + 1)
            pairs.append((name, value))
            at = self.separated(at, "}")
        return distinct_keys(pairs), at + 1

    def array(self, at: int, depth: int) -> tuple[list[Any], int]:
        """An array whose bracket was read."""
        values: list[Any] = []
        at = self.skip(at)
        while self.text[at : at + 1] != "]":
            value, at = self.value(at, depth + 1)
            values.append(value)
            at = self.separated(at, "]")
        return values, at + 1

    def expect(self, at: int, mark: str) -> int:
        """The position after a mark and the space around it."""
        at = self.skip(at)
        if self.text[at : at + 1] != mark:
            raise ValueError(f"no {mark} at {at}")
        return self.skip(at + 1)

    def separated(self, at: int, closer: str) -> int:
        """The position of the next item, after a comma, or of the closing mark."""
        at = self.skip(at)
        return at if self.text[at : at + 1] == closer else self.expect(at, ",")

    def string(self, at: int) -> tuple[str, int]:
        """A string. One in straight double quotes ends at the next of them that is not escaped.

        In other quotes, which texts also use as apostrophes, it ends at the first closing quote after which a value can
        end.
        """
        quote = self.text[at : at + 1]
        if quote == '"':
            closers, inside = '"', _STRAIGHT
        elif quote in _CLOSERS:
            closers = _CLOSERS[quote]
            inside = re.compile(rf"[^\\{re.escape(closers)}]*")
        else:
            raise ValueError(f"no string at {at}")
        pieces: list[str] = []
        inner_quotes = 0
        at += 1
        while True:
            self.count()
            match = inside.match(self.text, at)
            assert match is not None  # it may be empty
            pieces.append(match.group().replace("\r", ""))
            at = match.end()
            mark = self.text[at : at + 1]
            if not mark:
                raise ValueError("a string does not end")
            if mark == "\\":
                piece, at = self.escape(at + 1)
                pieces.append(piece)
            elif quote == '"' or self.ends_value(at + 1):
                return "".join(pieces), at + 1
            else:
                inner_quotes += 1
                if inner_quotes > MAX_INNER_QUOTES:
                    raise ValueError("a string does not end")
                pieces.append(mark)
                at += 1

    def escape(self, at: int) -> tuple[str, int]:
        """What stands for the escape whose backslash was read. Pairs of surrogates are joined."""
        mark = self.text[at : at + 1]
        if mark == "u":
            code = self.code_unit(at + 1)
            following = self.text[at + 5 : at + 7]
            if 0xD800 <= code < 0xDC00 and following == "\\u":
                low = self.code_unit(at + 7)
                if 0xDC00 <= low < 0xE000:
                    return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)), at + 11
            return chr(code), at + 5
        if mark in _ESCAPES:
            return _ESCAPES[mark], at + 1
        if mark and mark in "\"'\\/“”‘’":
            return mark, at + 1
        raise ValueError(f"no escape at {at}")

    def code_unit(self, at: int) -> int:
        """Four hexadecimal digits."""
        digits = self.text[at : at + 4]
        if re.fullmatch(r"[0-9A-Fa-f]{4}", digits) is None:
            raise ValueError(f"no escape at {at}")
        return int(digits, 16)
