"""Parses the user message back from its text, for the stand-in, which gets only text like any model.

It is tolerant on purpose: a section that is missing, new or worded differently leaves its part empty and never raises.
Numbers read here are rounded; nothing exact may be derived from them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

# Heads begin with the end of the line before: a search for a character is much faster than one for the start of a line.
_SECTION = re.compile(r"\n## (.+)$", re.MULTILINE)
_SYMBOL = re.compile(r"\n### (\S+)\s*$", re.MULTILINE)
_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_ROW = re.compile(
    rf"^(?:\d{{4}}-)?\d\d-\d\d \d\d:\d\d ({_NUMBER}) ({_NUMBER}) ({_NUMBER}) ({_NUMBER}) ({_NUMBER})\s*$", re.MULTILINE
)
_TABLE = re.compile(r"\n(\d+[mhd]) bars\b[^\n]*:\s*$", re.MULTILINE)
_REGIME = re.compile(r"^regime\b[^:\n]*: *(\w+)", re.MULTILINE)
_POSITION = re.compile(r"^- (\S+) (long|short)\b:?(.*)$", re.MULTILINE)
_NEWS = re.compile(rf"^- .*?\bsentiment ({_NUMBER})\b(.*)$", re.MULTILINE)
_FENCED = re.compile(r"<data>.*?</data>", re.DOTALL)


class PromptBar(NamedTuple):
    """One bar as printed."""

    open: float
    high: float
    low: float
    close: float
    volume: float


@dataclass(frozen=True, slots=True)
class PromptChart:
    """One symbol's regime and tables, the finest interval first, rows oldest first."""

    regime: str = "unknown"
    tables: Mapping[str, tuple[PromptBar, ...]] = field(default_factory=dict[str, tuple[PromptBar, ...]])

    @property
    def rows(self) -> tuple[PromptBar, ...]:
        """The bars of the finest interval, on which the agent works."""
        return next(iter(self.tables.values()), ())


@dataclass(frozen=True, slots=True)
class PromptPosition:
    """One position as printed."""

    side: int
    entry: float
    mark: float
    unrealised_usd: float


@dataclass(frozen=True, slots=True)
class Room:
    """What the caps leave for an open in one symbol."""

    largest_usd: float = 0.0
    cap_usd: float = 0.0
    top_leverage: int = 1


@dataclass(frozen=True, slots=True)
class ParsedPrompt:
    """Everything that could be parsed."""

    charts: Mapping[str, PromptChart]
    mood: Mapping[str, float]
    positions: Mapping[str, PromptPosition]
    room: Mapping[str, Room]
    working: frozenset[str]
    halted: bool
    refused: str
    refused_symbol: str


@lru_cache(maxsize=8)
def parse_prompt(message: str) -> ParsedPrompt:
    """Parse a user message; cached for the further steps of its tick."""
    parts = _sections(message)
    charts = {symbol: _chart(body) for symbol, body in _parts(_SYMBOL, parts.get("Market context", ""))}
    portfolio = parts.get("Portfolio", "")
    caps = parts.get("Risk caps", "")
    refused, refused_symbol = _last(parts.get("Last decision", ""))
    return ParsedPrompt(
        charts=charts,
        mood=_mood(parts.get("News", ""), charts),
        positions=_positions(portfolio),
        room={symbol: _room(symbol, caps) for symbol in charts},
        working=_working(parts.get("Open orders", ""), charts),
        halted=bool(re.search(r"^Halts on: (?!none\b)", caps, re.MULTILINE)),
        refused=refused,
        refused_symbol=refused_symbol,
    )


def rows_of(text: str) -> tuple[PromptBar, ...]:
    """Return every bar row in a text, in its order."""
    return tuple([row for row in map(_row, text.split("\n")) if row is not None])


@lru_cache(maxsize=8192)
def _row(line: str) -> PromptBar | None:
    """Parse one line as a bar, or None; cached, because most lines repeat from one prompt to the next."""
    match = _ROW.match(line)
    return PromptBar._make(map(float, match.groups())) if match else None


def _parts(head: re.Pattern[str], text: str) -> list[tuple[str, str]]:
    """Return the text behind each head, up to the next one."""
    text = f"\n{text}"
    matches = list(head.finditer(text))
    ends = [*(match.start() for match in matches[1:]), len(text)]
    return [(match[1], text[match.end() : end]) for match, end in zip(matches, ends, strict=False)]


def _sections(message: str) -> dict[str, str]:
    # Keyed by the words before any bracket: `## News (last 6h, …)` is `News` whatever its numbers are.
    return {title.split("(")[0].strip(): body.strip("\n") for title, body in _parts(_SECTION, message)}


def _chart(text: str) -> PromptChart:
    regime = _REGIME.search(text)
    tables = {interval: rows for interval, body in _parts(_TABLE, text) if (rows := rows_of(body))}
    return PromptChart(regime[1] if regime else "unknown", tables)


def _mood(text: str, charts: Mapping[str, PromptChart]) -> dict[str, float]:
    """Return the mean sentiment of the headlines that name a symbol; nothing else of a headline is read."""
    scores_by_symbol: dict[str, list[float]] = {}
    for sentiment, headline in _NEWS.findall(text):
        for symbol in charts:
            if re.search(rf"\b{re.escape(symbol)}\b", headline):
                scores_by_symbol.setdefault(symbol, []).append(float(sentiment))
    return {symbol: sum(scores) / len(scores) for symbol, scores in scores_by_symbol.items()}


def _positions(text: str) -> dict[str, PromptPosition]:
    return {
        symbol: PromptPosition(
            1 if side == "long" else -1,
            _number_after("entry", details),
            _number_after("mark", details),
            _number_after("unrealised", details),
        )
        for symbol, side, details in _POSITION.findall(_FENCED.sub("", text))
    }


def _room(symbol: str, text: str) -> Room:
    name = re.escape(symbol)
    fits = re.search(rf"^- {name}: (.*)$", text, re.MULTILINE)
    sizes = re.findall(rf"(?:to|up to) ({_NUMBER}) at leverage", fits[1]) if fits and "size_usd" in fits[1] else []
    cap = re.search(rf"R3_POSITION_CAP\b[^\n]*= *({_NUMBER})", text)
    leverage = re.search(rf"R5_LEVERAGE_CAP\b[^\n]*?\b{name} 1 to (\d+)", text)
    return Room(
        # The first size fits at leverage 1 and therefore at any other.
        largest_usd=float(sizes[0]) if sizes else 0.0,
        cap_usd=float(cap[1]) if cap else 0.0,
        top_leverage=int(leverage[1]) if leverage else 1,
    )


def _working(text: str, charts: Mapping[str, PromptChart]) -> frozenset[str]:
    return frozenset(symbol for symbol in charts if re.search(rf"^- .*\b{re.escape(symbol)}\b", text, re.MULTILINE))


def _last(text: str) -> tuple[str, str]:
    code = re.search(r"^engine: refused(?: (\w+))?", text, re.MULTILINE)
    symbol = re.search(r'symbol\W{1,5}([^\s",]+)', text)
    return (code[1] or "unknown", symbol[1] if symbol else "") if code else ("", "")


def _number_after(label: str, text: str) -> float:
    match = re.search(rf"\b{label} ({_NUMBER})", text)
    return float(match[1]) if match else 0.0
