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


class _Headline:
    """A tokenised headline: the query terms in it, and the headlines of which it is a near copy."""

    __slots__ = ("counts", "distinguishing", "in_order", "length", "near", "words")

    def __init__(self, words: tuple[str, ...], counts: tuple[tuple[int, int], ...]) -> None:
        self.in_order = list(dict.fromkeys(word for word in words if word not in _ARTICLES)) or list(words[:1])
        self.words = frozenset(self.in_order)
        self.distinguishing = frozenset(word for word in self.words if word in _TURNS or not word.isalpha())
        self.counts = counts
        self.length = len(words)
        self.near: list[_Headline] = []


class _HeadlineCache:
    """Tokenises headlines for one query and caches them.

    A new headline is compared only with candidates for near copies. Two texts that share four words in five have one of
    their few longest words in common, so looking those up finds every near copy without comparing all pairs.
    """

    __slots__ = ("_by_word", "_headlines", "_names", "_terms", "weights")

    def __init__(self, symbols: Iterable[str] = (), words: Iterable[str] = ()) -> None:
        names = sorted(set(symbols))
        self._names = [(index, symbol, name_pattern(symbol)) for index, symbol in enumerate(names)]
        other_names = {fold(part) for symbol in names for name in other_names_of(symbol) for part in name.split()}
        plain = sorted(set(words) - other_names - {fold(symbol.casefold()) for symbol in names})
        self._terms = {word: len(names) + index for index, word in enumerate(plain)}
        self.weights = [NAME_WEIGHT] * len(names) + [1.0] * len(plain)
        self._headlines: dict[tuple[str, tuple[str, ...]], _Headline] = {}
        self._by_word: dict[tuple[frozenset[str], str], list[_Headline]] = {}

    def stories(self, items: Iterable[NewsItem]) -> list[tuple[NewsItem, int, _Headline]]:
        """Items in order of arrival, with copies merged into the first item that they repeat."""
        if len(self._headlines) > 2 * MOST_ITEMS:
            self._headlines.clear()
            self._by_word.clear()
        stories: list[tuple[NewsItem, int, _Headline]] = []
        indexes: dict[_Headline, int] = {}
        for item in sorted(items, key=_arrival):
            headline = self._headlines.get((item.text, item.symbols)) or self._add(item)
            index = indexes.get(headline)
            if index is None and headline.near:
                index = min((indexes[other] for other in headline.near if other in indexes), default=None)
            if index is None:
                indexes[headline] = len(stories)
                stories.append((item, 1, headline))
            else:
                first, copies, first_headline = stories[index]
                stories[index] = first, copies + 1, first_headline
        return stories

    def _add(self, item: NewsItem) -> _Headline:
        counts = Counter[int]()
        for term, symbol, pattern in self._names:
            times = sum(1 for _ in pattern.finditer(item.text)) + (symbol in item.symbols)
            if times:
                counts[term] = times
        words = tokens(item.text)
        for word in words:
            if (term := self._terms.get(word)) is not None:
                counts[term] += 1
        headline = self._headlines[item.text, item.symbols] = _Headline(words, tuple(sorted(counts.items())))
        compared: set[_Headline] = set()
        for word in _longest(headline.words):
            alike = self._by_word.setdefault((headline.distinguishing, word), [])
            for other in alike:
                if other not in compared:
                    compared.add(other)
                    if _near(headline, other):
                        headline.near.append(other)
                        other.near.append(headline)
            alike.append(headline)
        return headline


class Ranking:
    """The ranking of one skill's headlines. The same window always gives the same list."""

    __slots__ = ("_half_life_ms", "_headlines", "_stories", "_top_k", "_window")

    def __init__(self, symbols: Iterable[str], words: Iterable[str], hours: float) -> None:
        self._headlines = _HeadlineCache(symbols, words)
        self._half_life_ms = max(1.0, hours * HOUR_MS / 2)
        self._window: Sequence[NewsItem] = ()
        self._top_k = 0
        self._stories: list[Story] = []

    def choose(self, newest_first: list[NewsItem], top_k: int) -> list[Story]:
        """The best `top_k` stories of a window.

        Exponential decay keeps the order of two headlines over time, so the ranking changes only with the window.
        """
        if top_k != self._top_k or newest_first != self._window:
            self._window, self._top_k = newest_first, top_k
            self._stories = self._rank(newest_first[:MOST_ITEMS])[:top_k]
        return self._stories

    def _rank(self, items: list[NewsItem]) -> list[Story]:
        stories = self._headlines.stories(items)
        if not stories:
            return []
        count, word_count, newest_at = len(stories), 0, stories[-1][0].available_at
        document_counts: dict[int, int] = {}
        for _, _, headline in stories:
            word_count += headline.length
            for term, _ in headline.counts:
                document_counts[term] = document_counts.get(term, 0) + 1
        weights = self._headlines.weights
        weight = {term: weights[term] * log(1 + (count - n + 0.5) / (n + 0.5)) for term, n in document_counts.items()}
        ranked: list[tuple[float, int, Story]] = []
        for index, (item, copies, headline) in enumerate(stories):
            score = 0.0
            if headline.counts:
                length_factor = K1 * (1 - B + B * headline.length * count / word_count)
                for term, times in headline.counts:
                    score -= weight[term] * times * (K1 + 1) / (times + length_factor)
                # Rounded, so that a difference in the last bit of a logarithm between machines cannot change the order.
                score = round(score * 2.0 ** ((item.available_at - newest_at) / self._half_life_ms), 9)
            ranked.append((score, -index, Story(item, copies)))
        ranked.sort()  # positions are unique, so stories themselves are never compared
        return [story for _, _, story in ranked]


def first_copies(items: Iterable[NewsItem]) -> list[Story]:
    """Every story at its first appearance with the number of its copies, oldest first."""
    return [Story(item, copies) for item, copies, _ in _HeadlineCache().stories(items)]


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


def _near(first: _Headline, second: _Headline) -> bool:
    """Whether two headlines are copies: all words of one are in the other, in order, and make up four fifths of it.

    Additional words may be a byline or "Update:", never a number or a reversing word. A replaced word makes no copy:
    the same sentence about another coin or firm is different news, and hiding it would cost more than showing it
    twice.
    """
    if first.distinguishing != second.distinguishing:
        return False
    shorter, longer = (first, second) if len(first.words) <= len(second.words) else (second, first)
    if 5 * len(shorter.words) < 4 * len(longer.words) or not shorter.words <= longer.words:
        return False
    return shorter.in_order == [word for word in longer.in_order if word in shorter.words]


def names(symbol: str, text: str) -> bool:
    """Whether a text contains the ticker (in capitals, as a separate word) or the name of a coin."""
    return name_pattern(symbol).search(text) is not None


def other_names_of(symbol: str) -> tuple[str, ...]:
    """Other names of a symbol's coin."""
    return COINS.get(_LOTS.sub("", symbol), ())


@lru_cache(maxsize=256)
def name_pattern(symbol: str) -> re.Pattern[str]:
    """A pattern that matches a symbol's ticker or names in a text."""
    tickers = dict.fromkeys((symbol, _LOTS.sub("", symbol) or symbol))
    pattern = "|".join((*map(re.escape, tickers), *(f"(?i:{re.escape(name)})" for name in other_names_of(symbol))))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{pattern})(?![A-Za-z0-9])")


def _longest(words: frozenset[str]) -> list[str]:
    # A near copy shares at least ⌈4m/5⌉ of m words, so one of any m − ⌈4m/5⌉ + 1: take the longest, which are rare.
    few = len(words) - (4 * len(words) + 4) // 5 + 1
    return sorted(words, key=lambda word: (-len(word), word))[:few]


def _arrival(item: NewsItem) -> tuple[int, int, str, str, tuple[str, ...]]:
    return item.available_at, item.published_at, item.source, item.text, item.symbols
