"""Neutralises texts for blind runs: replaces coins, people, dates and amounts.

There are three levels. `skill` removes names and dates from a skill author's text and keeps its numbers, which are
settings. `news` also removes amounts, because a price in a headline identifies a coin and a day. `own` is for the
model's own text when it is sent back: all coin names are treated alike there, traded or not, so that the result does
not reveal whether a guess was right. Scale factors and shifted dates are not handled here but in
`agent.blind.mapping`.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping

from pitboss.agent.blind.names import COINS, COMMON, FIRMS, PEOPLE, PLAIN, PRODUCTS, VAGUE, VENUES, WORDS
from pitboss.prompt import render

OTHER, ANY = "[other coin]", "[coin]"
DATE, NUMBER, AMOUNT = "[date]", "[number]", "[amount]"
_RELATED = ((PEOPLE, "[person]"), (VENUES, "[venue]"), (FIRMS, "[firm]"), (PRODUCTS, "[product]"))

_ANY_CASE, _CAPITAL, _SIGNED = "any", "Capital", "$"
_WORD = re.compile(r"[^\W_]+")
_GAP = 3
"""Most characters between two words of one name: `Mt. Gox`, `near-protocol`."""

_CACHE_SIZE = 8_192
_LOTS = re.compile(r"^(?:1000+|k(?=[A-Z]))")
_MARKET = re.compile(r"(?:[-_/:.]?(?:USDT|USDC|BUSD|FDUSD|TUSD|USD|PERP|SWAP))+$")
_PAIR = re.compile(r"(.+?)(?:usdt|usdc|busd|fdusd|tusd|usd|eur|gbp|krw|jpy|perp|swap|btc|eth)+")
_VOWEL = re.compile("[aeiouy]")
_SHORT = 2
_WRAPS = frozenset("WMSRCXGTBE")
"""Prefix letters that make a derived token out of a coin: WETH, MSOL."""

_GLUED = re.compile(r"(\d+)([^\W\d]+)")
_WITHIN_FROM = 6
"""Names of at least this many letters are also matched inside words: `bitcoiners`."""

# Dates ------------------------------------------------------------------------------------------------------------------

_LONG = "January|February|April|June|July|August|September|October|November|December|Jan|Feb|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec"
_ANY_MONTH = rf"(?:{_LONG}|March|Mar|May)"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_YEAR = r"(?:19|20)\d\d"
_DATES = re.compile(
    "|".join(
        (
            r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)?",
            r"(?<![\d.])\d{1,2}([/.])\d{1,2}\1(?:\d{4}|\d{2})(?!\d)",
            rf"(?i:\b{_ANY_MONTH})\.?\s+{_DAY}\b(?:(?:\s*[-–]\s*|\s+(?:and|to)\s+){_DAY})?(?:,?\s+{_YEAR})?",
            rf"\b{_DAY}(?:\s+of)?\s+(?i:{_ANY_MONTH}\b)\.?(?:,?\s+{_YEAR})?",
            rf"(?i:\b{_ANY_MONTH})\.?,?\s+(?:of\s+)?{_YEAR}\b",
            r"(?P<lead>(?i:\b(?:in|by|of|since|until|till|from|last|next|this|early|mid|late|during|before|after|through|for)[\s-]+))(?:March|Mar|May)\b(?!\s+[a-z\d])",
            rf"\b(?:{_LONG})\b\.?",
            r"\b[QH][1-4](?:[\s'’-]*(?:20)?\d\d)?\b",
            r"['’]\d\d\b",
            r"(?i:\b(?:christmas|thanksgiving|halloween|easter|new year(?:['’]s)?(?: eve| day)?|lunar new year|chinese new year|valentine['’]s day|independence day|black friday|labor day|memorial day)\b)",
        )
    )
)  # fmt: skip
_YEARS = re.compile(rf"(?<![\d.,$€£#_-])\b{_YEAR}s?\b(?![\d]|[.,]\d)")
_RECENT = re.compile(
    r"(?<![\d.,$€£#_-])\b20(?:0[89]|[123]\d)s?\b(?!\d|[.,]\d|\s*(?:usd|dollars?|bars?|candles?|ticks?|periods?|%|x\b))",
    re.IGNORECASE,
)
"""Years in a skill author's text; a size or a period of 2000 is not a year."""

# Amounts ----------------------------------------------------------------------------------------------------------------

_SPELT = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred"
_SCALE = r"(?:thousand|million|billion|trillion|mln|bln|bn|mn|tn|[kmbt])"
_AMOUNTS = re.compile(
    "|".join(
        (
            rf"(?:US|us)?[$€£¥₿₩]\s?\d(?:[\d,.]*\d)?(?:\s?{_SCALE}\b)?",
            rf"\b(?:usdt?|usdc|eur|gbp)\s?\d(?:[\d,.]*\d)?(?:\s?{_SCALE}\b)?",
            rf"\d(?:[\d,.]*\d)?\s?(?:{_SCALE}\s)?\s?(?:usdt?|usdc|dollars?|euros?|pounds?|yen)\b",
        )
    ),
    re.IGNORECASE,
)
_SCALED = re.compile(rf"\d(?:[\d,.]*\d)?[\s-]?{_SCALE}\b|\b(?:{_SPELT})(?:[\s-](?:{_SPELT}))*[\s-](?:thousand|million|billion|trillion)\b", re.IGNORECASE)  # fmt: skip
_NUMBERS = re.compile(r"\d(?:[\d,.]*\d)?(\s?(?:%|percent\b|per cent\b))?", re.IGNORECASE)
_FEW_DIGITS = 2


def clean(text: str) -> str:
    """Normalise a text to its visible form: one form per letter, no invisible characters. Fencing then adds nothing."""
    normal = unicodedata.normalize("NFKC", text)
    return render.fence(normal, max(len(normal), 1)).removeprefix(render.DATA_OPEN).removesuffix(render.DATA_CLOSE)


class TextNeutraliser:
    """Neutralises texts for one set of traded symbols, each with its alias."""

    __slots__ = ("_foreign", "_news_cache", "_own")

    def __init__(self, aliases: Mapping[str, str]) -> None:
        traded = {base_of(symbol) for symbol in aliases}
        self._foreign, self._own = Lexicon(), Lexicon()
        for symbol, alias in aliases.items():
            base = base_of(symbol)
            for ticker in dict.fromkeys((symbol, base)):
                self._foreign.add_ticker(ticker, alias, any_case=ticker.casefold() not in COMMON)
            self._foreign.add_coin_names(COINS.get(base, ()), alias)
            self._own.add_ticker(symbol, ANY)
            self._own.add_ticker(base, ANY)
        for ticker, names in COINS.items():
            if ticker not in traded:
                self._foreign.add_ticker(ticker, OTHER)
                self._foreign.add_coin_names(names, OTHER)
            self._own.add_ticker(ticker, ANY)
            self._own.add_coin_names([name for name in names if name not in VAGUE], ANY)
        for names, replacement in _RELATED:
            self._foreign.add_related_names(names, replacement)
        self._news_cache: dict[str, str] = {}

    def skill(self, text: str) -> str:
        """Neutralise an author's text: names and dates are removed, numbers stay."""
        return _RECENT.sub(DATE, _DATES.sub(_date, self._foreign.replace(text)))

    def news(self, text: str) -> str:
        """Neutralise untrusted text: names, dates and amounts are removed."""
        neutral = self._news_cache.get(text)
        if neutral is None:
            if len(self._news_cache) >= _CACHE_SIZE:
                self._news_cache.clear()
            dated = _YEARS.sub(DATE, _DATES.sub(_date, self._foreign.replace(clean(text))))
            neutral = _NUMBERS.sub(_number, _SCALED.sub(NUMBER, _AMOUNTS.sub(AMOUNT, dated)))
            self._news_cache[text] = neutral
        return neutral

    def own(self, text: str) -> str:
        """Neutralise the model's own text before it is sent back: no coin keeps its name."""
        return self._own.replace(text) if text else text


def base_of(symbol: str) -> str:
    """The coin of a symbol: `1000PEPE`, `kPEPE` and `PEPE-USDT` are all PEPE."""
    bare = symbol.rpartition(":")[2]
    bare = _MARKET.sub("", bare) or bare or symbol
    return (_LOTS.sub("", bare) or bare).upper()


def _date(match: re.Match[str]) -> str:
    return (match["lead"] or "") + DATE


def _number(match: re.Match[str]) -> str:
    """Keep small whole numbers and small percentages, which reveal no price or day; replace all others."""
    digits = sum(char.isdigit() for char in match[0])
    percent_sign = match[1] or ""
    is_whole = not any(char in match[0].removesuffix(percent_sign) for char in ".,")
    return match[0] if digits <= _FEW_DIGITS and (is_whole or percent_sign) else NUMBER + percent_sign


class Lexicon:
    """Words and phrases with their replacements. The first entry for a word wins."""

    __slots__ = ("_cache", "_in_any_word", "_in_any_word_pattern", "_in_capitals", "_phrases", "_words")

    def __init__(self) -> None:
        self._words: dict[str, tuple[str, str]] = {}
        """Replacement and required spelling of a word."""
        self._phrases: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        """Phrases of several words by their first word, the longest first."""
        self._in_any_word: dict[str, str] = {}
        self._in_any_word_pattern: re.Pattern[str] | None = None
        self._in_capitals: dict[str, str] = {}
        """Tickers that also match inside a word, but only in capitals."""
        self._cache: dict[str, str | None] = {}

    def add_ticker(self, symbol: str, replacement: str, any_case: bool | None = None) -> None:
        """Add a ticker: matched in any case, or as written if it is a word too; single letters only after a sign."""
        parts = _parts(symbol)
        if len(parts) > 1:
            self._add_phrase(parts, replacement)
        elif parts:
            if any_case is None:
                any_case = symbol.upper() not in WORDS
            spelling = _SIGNED if len(symbol) < 2 else _ANY_CASE if any_case else symbol
            self._words.setdefault(parts[0], (replacement, spelling))
            if len(parts[0]) > _SHORT:
                # No English word contains `btc`; other tickers match inside a word only in capitals, as in mETH.
                if _VOWEL.search(parts[0]):
                    self._in_capitals.setdefault(symbol, replacement)
                else:
                    self._in_any_word.setdefault(parts[0], replacement)

    def add_coin_names(self, names: Iterable[str], replacement: str) -> None:
        """Add the names of a coin, matched in any case; long names also inside other words."""
        for name in names:
            parts = _parts(name)
            joined = "".join(parts)
            if len(parts) > 1:
                self._add_phrase(parts, replacement)
            self._words.setdefault(joined, (replacement, _ANY_CASE))
            if len(joined) >= _WITHIN_FROM and name not in VAGUE:
                self._in_any_word.setdefault(joined, replacement)

    def add_related_names(self, names: Iterable[str], replacement: str) -> None:
        """Add people, firms and products.

        A name listed in capitals matches only capitalised, so that `circle` stays a word.
        """
        for name in names:
            parts = _parts(name)
            if len(parts) > 1:
                self._add_phrase(parts, replacement)
                continue
            lower = name.casefold()
            self._words.setdefault(lower, (replacement, _ANY_CASE if name == lower else _CAPITAL))
            if len(name) > _WITHIN_FROM and name != lower and lower not in PLAIN:
                self._in_any_word.setdefault(lower, replacement)

    def _add_phrase(self, parts: tuple[str, ...], replacement: str) -> None:
        self._phrases.setdefault(parts[0], []).append((parts, replacement))
        self._phrases[parts[0]].sort(key=lambda phrase: -len(phrase[0]))

    def replace(self, text: str) -> str:
        """Replace every listed word and phrase in a text."""
        tokens = list(_WORD.finditer(text))
        pieces: list[str] = []
        copied_to = index = 0
        while index < len(tokens):
            length, replacement = self._match(text, tokens, index)
            if length:
                start = tokens[index].start()
                has_sign = start > copied_to and text[start - 1] in "$#"
                pieces += (text[copied_to : start - has_sign], replacement)
                copied_to = tokens[index + length - 1].end()
            index += length or 1
        return "".join((*pieces, text[copied_to:])) if copied_to else text

    def _match(self, text: str, tokens: list[re.Match[str]], index: int) -> tuple[int, str]:
        """Return how many words from `index` on form one name, 0 if none do, and their replacement."""
        token = tokens[index]
        for parts, replacement in self._phrases.get(token[0].casefold(), ()):
            near = tokens[index : index + len(parts)]
            if len(near) == len(parts) and all(
                word[0].casefold() == part and word.start() - previous_end <= _GAP
                for word, part, previous_end in zip(
                    near, parts, [token.start(), *(previous.end() for previous in near)], strict=False
                )
            ):
                return len(parts), replacement
        has_sign = token.start() > 0 and text[token.start() - 1] in "$#"
        replacement = self._cached_replacement(token[0], has_sign)
        return (1, replacement) if replacement is not None else (0, "")

    def _cached_replacement(self, word: str, has_sign: bool) -> str | None:
        key = f"${word}" if has_sign else word
        if key not in self._cache:
            if len(self._cache) >= _CACHE_SIZE:
                self._cache.clear()
            self._cache[key] = self._replacement(word, has_sign)
        return self._cache[key]

    def _replacement(self, word: str, has_sign: bool) -> str | None:
        lower = word.casefold()
        entry = self._words.get(lower) or self._words.get(lower.removesuffix("s"))
        if entry is not None and _is_name(word, entry[1], has_sign):
            return entry[0]
        glued = _GLUED.fullmatch(word)
        if glued is not None:  # `100BTC`
            replacement = self._replacement(glued[2], has_sign)
            return None if replacement is None else f"{glued[1]} {replacement}"
        pair = _PAIR.fullmatch(lower)
        if pair is not None and pair[1] in self._words:  # `BTCUSDT`, in any case
            return self._words[pair[1]][0]
        if self._in_any_word_pattern is None:
            names = sorted(map(re.escape, self._in_any_word), key=len, reverse=True)
            self._in_any_word_pattern = re.compile("|".join(names) or "(?!)")
        within = self._in_any_word_pattern.search(lower)
        if within is not None:
            return self._in_any_word[within[0]]
        if word.isupper() and word.isalpha():
            return self._in_capitals.get(word[1:]) if word[0] in _WRAPS else None
        if lower == word:
            return None
        return next((replacement for ticker, replacement in self._in_capitals.items() if ticker in word), None)


def _is_name(word: str, spelling: str, has_sign: bool) -> bool:
    """Return whether a word that equals a name except for its case is used as that name."""
    if has_sign or spelling == _ANY_CASE:
        return True
    if spelling == _CAPITAL:
        return word[0].isupper() or word[0].isdigit()
    return word == spelling or word == spelling + "s"


def _parts(name: str) -> tuple[str, ...]:
    return tuple(match[0].casefold() for match in _WORD.finditer(name))
