"""Scripts of the fake provider for memory audits: a model that has memorised the market, and models that have not.

All of them see only the request. The memorising model recognises a window of bars by its returns, and a day by symbol and date.
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


def text_hash(words: str, salt: str = "") -> int:
    return int.from_bytes(hashlib.sha256((salt + words).encode()).digest()[:6], "big")


def options(question: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    fields = question["tools"][0]["function"]["parameters"]["properties"]
    return fields["asset"]["enum"], fields["period"]["enum"]


def asks_for_a_name(question: Mapping[str, Any]) -> bool:
    return question["tools"][-1]["function"]["name"] == "name_window"


def guess(question: Mapping[str, Any], salt: str = "") -> Play:
    """Name an asset and a period at random."""
    words = words_of(question)
    assets, periods = options(question)
    named = {
        "asset": assets[text_hash(words, salt) % len(assets)],
        "period": periods[text_hash(words, "p" + salt) % len(periods)],
    }
    return call("name_window", named)


class MarketMemory:
    """The hourly and daily bars of some symbols, as a model may have memorised them."""

    def __init__(self, home: Path, symbols: tuple[str, ...] = ("BTC", "ETH", "SOL")) -> None:
        market = load_market(Lake(home / "lake"), "demo", symbols, ["1h", "1d"], END, with_news=False)
        self.hours = {symbol: market.bars[symbol, "1h"] for symbol in symbols}
        self.days = {symbol: market.bars[symbol, "1d"] for symbol in symbols}

    def recall(self, words: str) -> tuple[str, int]:
        """The symbol and the last close of the window that fits the shown bars best."""
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
        """Name the asset and the period of a window correctly."""
        symbol, end_at = self.recall(words_of(question))
        _, periods = options(question)
        day = np.datetime64(end_at - 1, "ms").astype("datetime64[D]")
        result = [name for name in periods if str(day).startswith(name) or _holds(name, day, periods)]
        return call("name_window", {"asset": symbol, "period": result[-1] if result else periods[0]})

    def tomorrow(self, words: str) -> float:
        """The return of BTC on the day that begins now, if the prompt shows symbol and date; else 0."""
        when = re.search(r"^(\d{4}-\d\d-\d\d) 00:00 UTC$", words, re.MULTILINE)
        if when is None or "### BTC" not in words:
            return 0.0
        bars, place = self.days["BTC"], parse_instant(when[1])
        index = int(np.searchsorted(bars.open_at, place))
        is_stored = index < len(bars) and int(bars.open_at[index]) == place
        return float(bars.close[index] / bars.open[index] - 1) if is_stored else 0.0


def _holds(name: str, day: np.datetime64, periods: list[str]) -> bool:
    """Whether a period that is named by its first day contains another day; the list is in order."""
    if len(name) != 10:
        return False
    later = [other for other in periods if other > name]
    return bool(np.datetime64(name) <= day and (not later or day < np.datetime64(min(later))))


def trades(words: str, rises: bool, symbol: str) -> Play:
    """Be long before a rise and flat before a fall."""
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
    """The symbol of the open position, else the first that is shown."""
    found = re.search(r"^- (\S+) long", words, re.MULTILINE)
    return found[1] if found else first_symbol(words)


def memorising_model(reader: MarketMemory) -> Any:
    """Names every window correctly, and trades by the day's return where symbol and date are shown."""

    def script(question: Mapping[str, Any]) -> Play:
        if asks_for_a_name(question):
            return reader.name(question)
        words = words_of(question)
        day_return = reader.tomorrow(words)
        if day_return:
            return trades(words, day_return > 0, "BTC")
        return trades(words, text_hash(words) % 2 == 0, held_symbol(words))

    return script


def guessing_model(question: Mapping[str, Any]) -> Play:
    """Has no memory: names windows and trades at random, by a hash of the prompt."""
    if asks_for_a_name(question):
        return guess(question)
    words = words_of(question)
    return trades(words, text_hash(words) % 2 == 0, held_symbol(words))


def refusing_model(question: Mapping[str, Any]) -> Play:
    """Refuses to name windows."""
    if asks_for_a_name(question):
        return say("I would rather not say.")
    return call("propose_order", HOLD)


__all__ = ["DAY_MS", "MarketMemory", "guess", "guessing_model", "memorising_model", "refusing_model"]
