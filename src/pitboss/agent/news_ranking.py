"""Ranks headlines for a skill: BM25 over the skill's words and symbols, times freshness.

Pure and as-of: a ranking depends only on the items it is given, so items that have not arrived cannot affect it.
Copies and near copies of a headline count as one story, represented by the first. A headline is tokenised once and
cached from tick to tick; a cache entry depends on no other headlines than its copies.

BM25 is implemented here: a window holds tens of short texts and the query never changes, so counting its few terms is
faster than a library that indexes every word (bm25s takes 4 to 12 times as long, and 0.1 s to import).
Not here: how an item is shown (a section of the venue) and when it arrives (`data.news_latency`).
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import log
from typing import NamedTuple

from pitboss.core.instant import HOUR_MS
from pitboss.core.market import NewsItem

MOST_ITEMS = 1_000
"""Only the newest items of a window are ranked, which bounds the cost of a flood of headlines."""

K1, B = 1.2, 0.75
NAME_WEIGHT = 3.0
"""Weight of a headline that names a traded symbol, relative to one that shares a word with the strategy."""

COINS = {
    "BTC": ("bitcoin", "xbt"), "ETH": ("ethereum", "ether"), "SOL": ("solana",), "XRP": ("ripple",),
    "DOGE": ("dogecoin",), "BNB": ("binance coin",), "AVAX": ("avalanche",), "HYPE": ("hyperliquid",),
    "LINK": ("chainlink",), "LTC": ("litecoin",), "ARB": ("arbitrum",), "ADA": ("cardano",), "DOT": ("polkadot",),
    "BCH": ("bitcoin cash",), "TRX": ("tron",), "XMR": ("monero",), "SHIB": ("shiba inu",), "UNI": ("uniswap",),
    "ATOM": ("cosmos",), "XLM": ("stellar",), "ETC": ("ethereum classic",), "FIL": ("filecoin",),
}  # fmt: skip
"""Names of coins that headlines use instead of the ticker."""

_TOKEN = re.compile(r"\d+(?:[.,]\d+)+|[^\W_]+")
_LOTS = re.compile(r"^(?:1000+|k(?=[A-Z]))")
"""Prefixes of cheap coins that venues list by the thousand: headlines write PEPE for 1000PEPE and kPEPE."""

_COMMON = frozenset(
    _TOKEN.findall(
        "about above after again against also always been before below between both could does down each every from "
        "have into just less like long more most much must near never once only other over price same short should "
        "some such take than that their them then there these they this those through time trade under until upon "
        "very wait want well were what when where which while will with within without would your"
    )
)
_ARTICLES = frozenset(("a", "an", "s", "the"))
_TURNS = frozenset(
    _TOKEN.findall(
        "no not never none nor without deny denies denied false fake hoax up down rise rises rising rose fall falls "
        "falling fell gain gains lose loses loss losses drop drops jump jumps surge surges plunge plunges crash crashes "
        "rally rallies soar soars slump slumps high highs low lows higher lower above below over under buy buys buying "
        "sell sells selling long short bull bulls bullish bear bears bearish approve approves approved approval reject "
        "rejects rejected rejection inflow inflows outflow outflows win wins won lost halt halts resume resumes list "
        "lists listed delist delists delisted hike hikes cut cuts increase increases decrease decreases positive negative"
    )
)
"""Words that reverse the meaning of a headline.

Headlines that differ in one of these, or in a number, are never copies.
"""


class Story(NamedTuple):
    """A headline at its first appearance, and how many times it appeared."""

    item: NewsItem
    copies: int


class _Reading:
    """A tokenised headline: the query terms in it, and the headlines of which it is a near copy."""

    __slots__ = ("counts", "in_order", "length", "near", "telling", "words")

    def __init__(self, words: tuple[str, ...], counts: tuple[tuple[int, int], ...]) -> None:
        self.in_order = list(dict.fromkeys(word for word in words if word not in _ARTICLES)) or list(words[:1])
        self.words = frozenset(self.in_order)
        self.telling = frozenset(word for word in self.words if word in _TURNS or not word.isalpha())
        self.counts = counts
        self.length = len(words)
        self.near: list[_Reading] = []


class Reader:
    """Tokenises headlines for one query and caches them.

    A new headline is compared only with candidates for near copies. Two texts that share four words in five have one of
    their few longest words in common, so looking those up finds every near copy without comparing all pairs.
    """

    __slots__ = ("_by_word", "_names", "_readings", "_terms", "weights")

    def __init__(self, symbols: Iterable[str] = (), words: Iterable[str] = ()) -> None:
        names = sorted(set(symbols))
        self._names = [(place, symbol, naming(symbol)) for place, symbol in enumerate(names)]
        called = {fold(part) for symbol in names for name in called_too(symbol) for part in name.split()}
        plain = sorted(set(words) - called - {fold(symbol.casefold()) for symbol in names})
        self._terms = {word: len(names) + place for place, word in enumerate(plain)}
        self.weights = [NAME_WEIGHT] * len(names) + [1.0] * len(plain)
        self._readings: dict[tuple[str, tuple[str, ...]], _Reading] = {}
        self._by_word: dict[tuple[frozenset[str], str], list[_Reading]] = {}

    def stories(self, items: Iterable[NewsItem]) -> list[tuple[NewsItem, int, _Reading]]:
        """Items in order of arrival, with copies merged into the first item that they repeat."""
        if len(self._readings) > 2 * MOST_ITEMS:
            self._readings.clear()
            self._by_word.clear()
        found: list[tuple[NewsItem, int, _Reading]] = []
        places: dict[_Reading, int] = {}
        for item in sorted(items, key=_arrival):
            reading = self._readings.get((item.text, item.symbols)) or self._read(item)
            place = places.get(reading)
            if place is None and reading.near:
                place = min((places[each] for each in reading.near if each in places), default=None)
            if place is None:
                places[reading] = len(found)
                found.append((item, 1, reading))
            else:
                first, copies, told = found[place]
                found[place] = first, copies + 1, told
        return found

    def _read(self, item: NewsItem) -> _Reading:
        counts = Counter[int]()
        for place, symbol, named in self._names:
            times = sum(1 for _ in named.finditer(item.text)) + (symbol in item.symbols)
            if times:
                counts[place] = times
        words = tokens(item.text)
        for word in words:
            if (place := self._terms.get(word)) is not None:
                counts[place] += 1
        reading = self._readings[item.text, item.symbols] = _Reading(words, tuple(sorted(counts.items())))
        compared: set[_Reading] = set()
        for word in _longest(reading.words):
            alike = self._by_word.setdefault((reading.telling, word), [])
            for other in alike:
                if other not in compared:
                    compared.add(other)
                    if _near(reading, other):
                        reading.near.append(other)
                        other.near.append(reading)
            alike.append(reading)
        return reading


class Ranking:
    """The ranking of one skill's headlines. The same window always gives the same list."""

    __slots__ = ("_asked", "_chosen", "_half_life_ms", "_reader", "_window")

    def __init__(self, symbols: Iterable[str], words: Iterable[str], hours: float) -> None:
        self._reader = Reader(symbols, words)
        self._half_life_ms = max(1.0, hours * HOUR_MS / 2)
        self._window: Sequence[NewsItem] = ()
        self._asked = 0
        self._chosen: list[Story] = []

    def choose(self, newest_first: list[NewsItem], top_k: int) -> list[Story]:
        """The best `top_k` stories of a window.

        Exponential decay keeps the order of two headlines over time, so the ranking changes only with the window.
        """
        if top_k != self._asked or newest_first != self._window:
            self._window, self._asked = newest_first, top_k
            self._chosen = self._rank(newest_first[:MOST_ITEMS])[:top_k]
        return self._chosen

    def _rank(self, items: list[NewsItem]) -> list[Story]:
        stories = self._reader.stories(items)
        if not stories:
            return []
        count, words, newest_at = len(stories), 0, stories[-1][0].available_at
        having: dict[int, int] = {}
        for _, _, reading in stories:
            words += reading.length
            for term, _ in reading.counts:
                having[term] = having.get(term, 0) + 1
        weights = self._reader.weights
        weight = {term: weights[term] * log(1 + (count - n + 0.5) / (n + 0.5)) for term, n in having.items()}
        ranked: list[tuple[float, int, Story]] = []
        for place, (item, copies, reading) in enumerate(stories):
            score = 0.0
            if reading.counts:
                room = K1 * (1 - B + B * reading.length * count / words)
                for term, times in reading.counts:
                    score -= weight[term] * times * (K1 + 1) / (times + room)
                # Rounded, so that a difference in the last bit of a logarithm between machines cannot change the order.
                score = round(score * 2.0 ** ((item.available_at - newest_at) / self._half_life_ms), 9)
            ranked.append((score, -place, Story(item, copies)))
        ranked.sort()  # positions are unique, so stories themselves are never compared
        return [story for _, _, story in ranked]


def first_copies(items: Iterable[NewsItem]) -> list[Story]:
    """Every story at its first appearance with the number of its copies, oldest first."""
    return [Story(item, copies) for item, copies, _ in Reader().stories(items)]


def words_of(texts: Iterable[str | None]) -> frozenset[str]:
    """The words of a strategy that are used as query terms."""
    return frozenset(
        fold(word)
        for text in texts
        for word in _TOKEN.findall((text or "").casefold())
        if len(word) > 3 and word not in _COMMON
    )


def tokens(text: str) -> tuple[str, ...]:
    """The words and numbers of a headline, case and plural folded; a text without any is one token."""
    return tuple(map(fold, _TOKEN.findall(text.casefold()))) or (" ".join(text.split()),)


def fold(word: str) -> str:
    """Fold a plural: `breakouts` to `breakout`. Words that reverse a headline are unchanged."""
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" and word not in _TURNS else word


def near(one: str, other: str) -> bool:
    """Whether two headlines are copies: all words of one are in the other, in order, and make up four fifths of it.

    Additional words may be a byline or "Update:", never a number or a reversing word. A replaced word makes no copy:
    the same sentence about another coin or firm is different news, and hiding it would cost more than showing it
    twice.
    """
    return _near(_Reading(tokens(one), ()), _Reading(tokens(other), ()))


def _near(one: _Reading, other: _Reading) -> bool:
    if one.telling != other.telling:
        return False
    less, more = (one, other) if len(one.words) <= len(other.words) else (other, one)
    if 5 * len(less.words) < 4 * len(more.words) or not less.words <= more.words:
        return False
    return less.in_order == [word for word in more.in_order if word in less.words]


def names(symbol: str, text: str) -> bool:
    """Whether a text contains the ticker (in capitals, as a separate word) or the name of a coin."""
    return naming(symbol).search(text) is not None


def called_too(symbol: str) -> tuple[str, ...]:
    """Other names of a symbol's coin."""
    return COINS.get(_LOTS.sub("", symbol), ())


@lru_cache(maxsize=256)
def naming(symbol: str) -> re.Pattern[str]:
    """A pattern that matches a symbol's ticker or names in a text."""
    tickers = dict.fromkeys((symbol, _LOTS.sub("", symbol) or symbol))
    called = "|".join((*map(re.escape, tickers), *(f"(?i:{re.escape(name)})" for name in called_too(symbol))))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{called})(?![A-Za-z0-9])")


def _longest(words: frozenset[str]) -> list[str]:
    # A near copy shares at least ⌈4m/5⌉ of m words, so one of any m − ⌈4m/5⌉ + 1: take the longest, which are rare.
    few = len(words) - (4 * len(words) + 4) // 5 + 1
    return sorted(words, key=lambda word: (-len(word), word))[:few]


def _arrival(item: NewsItem) -> tuple[int, int, str, str, tuple[str, ...]]:
    return item.available_at, item.published_at, item.source, item.text, item.symbols
