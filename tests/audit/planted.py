"""Models with a known memory, played by the fake provider: one that has read the data, one that guesses.

They get nothing but what any model gets, the words of the request. Whoever remembers, remembers a lake that it was given
before: a window of bars by the shape of its returns, and a day by its name and date.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pitboss.core.instant import DAY_MS, HOUR_MS, parse_instant
from pitboss.data.feed import load_market
from pitboss.data.lake import Lake
from pitboss.testing.provider import HOLD, Play, call, say

END = parse_instant("2025-04-01")
SHAPE = 12
"""Returns by which a window is recognised."""


def words_of(question: Mapping[str, Any]) -> str:
    return next(one["content"] for one in question["messages"] if one["role"] == "user")


def dice(words: str, salt: str = "") -> int:
    return int.from_bytes(hashlib.sha256((salt + words).encode()).digest()[:6], "big")


def options(question: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    fields = question["tools"][0]["function"]["parameters"]["properties"]
    return fields["asset"]["enum"], fields["period"]["enum"]


def asks_for_a_name(question: Mapping[str, Any]) -> bool:
    return question["tools"][-1]["function"]["name"] == "name_window"


def guess(question: Mapping[str, Any], salt: str = "") -> Play:
    """Any name, any period."""
    words = words_of(question)
    assets, periods = options(question)
    said = {"asset": assets[dice(words, salt) % len(assets)], "period": periods[dice(words, "p" + salt) % len(periods)]}
    return call("name_window", said)


class Reader:
    """Has read the bars of every symbol by the hour."""

    def __init__(self, home: Path, symbols: tuple[str, ...] = ("BTC", "ETH", "SOL")) -> None:
        market = load_market(Lake(home / "lake"), "demo", symbols, ["1h", "1d"], END, with_news=False)
        self.hours = {symbol: market.bars[symbol, "1h"] for symbol in symbols}
        self.days = {symbol: market.bars[symbol, "1d"] for symbol in symbols}

    def recall(self, words: str) -> tuple[str, int]:
        """Whose hours these are and when the last of them closed: the best fit of all there are."""
        table = words.partition("### 1h bars")[2].partition("###")[0]
        rows = [line.split() for line in table.splitlines() if re.match(r"\d\d-\d\d \d\d:\d\d ", line)]
        shape = np.diff(np.log([float(row[5]) for row in rows]))[-SHAPE:]
        best = ("", 0, np.inf)
        for symbol, bars in self.hours.items():
            steps = np.diff(np.log(bars.close))
            apart = np.abs(np.lib.stride_tricks.sliding_window_view(steps, SHAPE) - shape).max(axis=1)
            place = int(apart.argmin())
            if apart[place] < best[2]:
                best = (symbol, int(bars.open_at[place + SHAPE]) + HOUR_MS, float(apart[place]))
        return best[0], best[1]

    def name(self, question: Mapping[str, Any]) -> Play:
        """The truth about a window."""
        symbol, end_at = self.recall(words_of(question))
        _, periods = options(question)
        day = np.datetime64(end_at - 1, "ms").astype("datetime64[D]")
        result = [name for name in periods if str(day).startswith(name) or _holds(name, day, periods)]
        return call("name_window", {"asset": symbol, "period": result[-1] if result else periods[0]})

    def tomorrow(self, words: str) -> float:
        """What the first symbol does on the day that begins now, if the words say which and when."""
        when = re.search(r"^(\d{4}-\d\d-\d\d) 00:00 UTC$", words, re.MULTILINE)
        if when is None or "### BTC" not in words:
            return 0.0
        bars, place = self.days["BTC"], parse_instant(when[1])
        found = int(np.searchsorted(bars.open_at, place))
        known = found < len(bars) and int(bars.open_at[found]) == place
        return float(bars.close[found] / bars.open[found] - 1) if known else 0.0


def _holds(name: str, day: np.datetime64, periods: list[str]) -> bool:
    """Whether a period that is named by its first day holds another day; the list is in order."""
    if len(name) != 10:
        return False
    later = [other for other in periods if other > name]
    return bool(np.datetime64(name) <= day and (not later or day < np.datetime64(min(later))))


def trades(words: str, rises: bool, symbol: str) -> Play:
    """Long before a rise, flat before a fall."""
    held = "no open positions" not in words
    if rises and not held:
        return call("propose_order", {"action": "open_long", "symbol": symbol, "size_usd": 2_000, "reason": "Up."})
    if held and not rises:
        return call("propose_order", {"action": "close", "symbol": symbol, "reason": "Down."})
    return call("propose_order", HOLD)


def first_symbol(words: str) -> str:
    found = re.search(r"^### (\S+)$", words, re.MULTILINE)
    assert found is not None
    return found[1]


def held_symbol(words: str) -> str:
    """What is held, or the first that is shown."""
    found = re.search(r"^- (\S+) long", words, re.MULTILINE)
    return found[1] if found else first_symbol(words)


def memoriser(reader: Reader) -> Any:
    """Knows every window, and every day that has a name and a date."""

    def script(question: Mapping[str, Any]) -> Play:
        if asks_for_a_name(question):
            return reader.name(question)
        words = words_of(question)
        known = reader.tomorrow(words)
        if known:
            return trades(words, known > 0, "BTC")
        return trades(words, dice(words) % 2 == 0, held_symbol(words))

    return script


def honest(question: Mapping[str, Any]) -> Play:
    """Knows nothing: guesses, and trades by a throw of dice on the words."""
    if asks_for_a_name(question):
        return guess(question)
    words = words_of(question)
    return trades(words, dice(words) % 2 == 0, held_symbol(words))


def refusing(question: Mapping[str, Any]) -> Play:
    """Never names anything."""
    if asks_for_a_name(question):
        return say("I would rather not say.")
    return call("propose_order", HOLD)


__all__ = ["DAY_MS", "Reader", "guess", "honest", "memoriser", "refusing"]
