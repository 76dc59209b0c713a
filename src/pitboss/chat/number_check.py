"""Which numbers of an answer appear in no recorded fact.

A number is supported if a tool result of the conversation, or the question, holds it, as it stands or rounded to the digits of the
answer; a share may be written in percent. Dates, times, ids, names and small whole numbers are not checked. What a model has
computed by itself is not supported: that is the point.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

from pitboss.chat.citations import PATTERN as CITATION

SMALL = 10
"""Whole numbers up to this are how items are counted, and are not checked."""
MOST_FACTS = 50_000

_IN_FACTS = re.compile(r"\d[\d,]*(?:\.\d+)?")
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_SKIPPED = re.compile(
    r"\b\d{4}-\d{2}(?:-\d{2})?(?:[T ]\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|\b))?"  # dates
    r"|\b\d{1,2}:\d{2}(?::\d{2})?\b"  # times
    rf"|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? \d{{4}})?\b|\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?\b"
    rf"|\b(?:{_MONTH}|in|year|since|of) (?:19|20)\d{{2}}\b"
    r"|(?m:^\s*\d{1,2}[.)](?=\s))"  # the numbers of a list
    r"|(?<![\d.,$])\d+\s?(?:ms|s|m|min|h|hours?|d|days?|w|weeks?)\b(?!-)"  # intervals
    r"|\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{6,64}\b",  # ids and digests
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?P<about>(?:about|around|roughly|nearly|almost|over|under|approximately|approx\.?|some|~|≈)\s*)?"
    r"(?<![\w.])[$€£+\-−]*(?P<whole>\d{1,3}(?:,\d{3})+|\d+)(?P<part>\.\d+)?"
    r"(?P<unit>\s?(?:%|percent\b|k\b|m\b|million\b|thousand\b)|[x×](?!\w)|(?![\w]|\.\d))",
    re.IGNORECASE,
)
_SCALES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6}


@dataclass
class FactNumbers:
    """The numbers of the facts that a conversation has seen. Signs do not count."""

    values: list[float] = field(default_factory=list[float])

    def add(self, text: str) -> None:
        """Add the numbers of a fact, and how many lines it has: that is how its items are counted."""
        lines = text.count("\n") + 1
        numbers = {float(number.replace(",", "")) for number in _IN_FACTS.findall(text)} | {lines, lines - 1.0}
        self.values = sorted({*self.values, *numbers})[:MOST_FACTS]

    def has(self, low: float, high: float) -> bool:
        """Whether a number lies within two bounds."""
        index = bisect_left(self.values, low)
        return index < len(self.values) and self.values[index] <= high


def unsupported_numbers(text: str, facts: FactNumbers) -> list[str]:
    """The numbers of an answer that no fact holds, as they stand there, each once."""
    plain = _SKIPPED.sub(" ", CITATION.sub(" ", text))
    unsupported = [match.group().strip() for match in _NUMBER.finditer(plain) if not _is_supported(match, facts)]
    return list(dict.fromkeys(unsupported))


def _is_supported(match: re.Match[str], facts: FactNumbers) -> bool:
    whole, part, unit = match["whole"].replace(",", ""), match["part"] or "", (match["unit"] or "").strip().lower()
    value, scale = float(whole + part), _SCALES.get(unit, 1.0)
    if not part and not unit and value <= SMALL and "$" not in match.group():
        return True
    if math.isinf(value * scale):  # hundreds of digits: no fact has so many
        return False
    digits = len(part) - 1 if part else 0
    step = 10.0**-digits * scale
    if match["about"] and not part:
        step *= 10.0 ** (len(whole) - len(whole.rstrip("0")))
    return any(_has(facts, value * scale / share, step / share) for share in _shares(unit))


def _shares(unit: str) -> Iterable[float]:
    """What a fact is multiplied by before it is compared: a share may be written in percent."""
    return (1.0, 100.0) if unit in ("%", "percent") else (1.0,)


def _has(facts: FactNumbers, value: float, step: float) -> bool:
    """Whether a fact rounds to the value; digits that were cut off are accepted too."""
    slack = abs(value) * 1e-9 + 1e-12
    return facts.has(value - step / 2 - slack, value + step / 2 + slack) or facts.has(value, value + step - slack)
