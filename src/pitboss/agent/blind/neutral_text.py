"""Neutral wording for blind runs: replaces coins, people, dates and amounts in texts.

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
_AROUND = ((PEOPLE, "[person]"), (VENUES, "[venue]"), (FIRMS, "[firm]"), (PRODUCTS, "[product]"))

_ANY_CASE, _CAPITAL, _SIGNED = "any", "Capital", "$"
_WORD = re.compile(r"[^\W_]+")
_GAP = 3
"""Most characters between two words of one name: `Mt. Gox`, `near-protocol`."""

_KEPT = 8_192
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
    seen = unicodedata.normalize("NFKC", text)
    return render.fence(seen, max(len(seen), 1)).removeprefix(render.DATA_OPEN).removesuffix(render.DATA_CLOSE)


class Neutral:
    """Neutralises texts for one set of traded symbols, each with its alias."""

    __slots__ = ("_named", "_own", "_texts")

    def __init__(self, named: Mapping[str, str]) -> None:
        traded = {base_of(symbol) for symbol in named}
        self._named, self._own = Lexicon(), Lexicon()
        for symbol, name in named.items():
            base = base_of(symbol)
            for ticker in dict.fromkeys((symbol, base)):
                self._named.ticker(ticker, name, small=ticker.casefold() not in COMMON)
            self._named.called(COINS.get(base, ()), name)
            self._own.ticker(symbol, ANY)
            self._own.ticker(base, ANY)
        for ticker, names in COINS.items():
            if ticker not in traded:
                self._named.ticker(ticker, OTHER)
                self._named.called(names, OTHER)
            self._own.ticker(ticker, ANY)
            self._own.called([name for name in names if name not in VAGUE], ANY)
        for table, kind in _AROUND:
            self._named.around(table, kind)
        self._texts: dict[str, str] = {}

    def skill(self, text: str) -> str:
        """Neutralise an author's text: names and dates are removed, numbers stay."""
        return _RECENT.sub(DATE, _DATES.sub(_date, self._named.replace(text)))

    def news(self, text: str) -> str:
        """Neutralise untrusted text: names, dates and amounts are removed."""
        known = self._texts.get(text)
        if known is None:
            if len(self._texts) >= _KEPT:
                self._texts.clear()
            known = self._texts[text] = self._news(text)
        return known

    def _news(self, text: str) -> str:
        dated = _YEARS.sub(DATE, _DATES.sub(_date, self._named.replace(clean(text))))
        return _NUMBERS.sub(_number, _SCALED.sub(NUMBER, _AMOUNTS.sub(AMOUNT, dated)))

    def own(self, text: str) -> str:
        """Neutralise the model's own text before it is sent back: no coin keeps its name."""
        return self._own.replace(text) if text else text


def base_of(symbol: str) -> str:
    """The coin of a symbol: `1000PEPE`, `kPEPE` and `PEPE-USDT` are all PEPE."""
    bare = symbol.rpartition(":")[2]
    bare = _MARKET.sub("", bare) or bare or symbol
    return (_LOTS.sub("", bare) or bare).upper()


def _date(found: re.Match[str]) -> str:
    return (found["lead"] or "") + DATE


def _number(found: re.Match[str]) -> str:
    """Keep small whole numbers and small percentages, which reveal no price or day; replace all others."""
    digits = sum(char.isdigit() for char in found[0])
    share = found[1] or ""
    whole = not any(char in found[0].removesuffix(share) for char in ".,")
    return found[0] if digits <= _FEW_DIGITS and (whole or share) else NUMBER + share


class Lexicon:
    """Words and phrases with their replacements. The first entry for a word wins."""

    __slots__ = ("_bits", "_inside", "_known", "_phrases", "_within", "_words")

    def __init__(self) -> None:
        self._words: dict[str, tuple[str, str]] = {}
        self._phrases: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        self._bits: dict[str, str] = {}
        self._inside: dict[str, str] = {}
        self._within: re.Pattern[str] | None = None
        self._known: dict[str, str | None] = {}

    def ticker(self, symbol: str, stands: str, small: bool | None = None) -> None:
        """Add a ticker: matched in any case, or only in capitals if it is a word too; single letters only after a
        sign.
        """
        parts = _parts(symbol)
        if len(parts) > 1:
            self._phrase(parts, stands)
        elif parts:
            loose = symbol.upper() not in WORDS if small is None else small
            how = _SIGNED if len(symbol) < 2 else _ANY_CASE if loose else symbol
            self._words.setdefault(parts[0], (stands, how))
            if len(parts[0]) > _SHORT:
                # No English word contains `btc`; other tickers match inside a word only in capitals, as in mETH.
                kept = self._inside if _VOWEL.search(parts[0]) else self._bits
                kept.setdefault(symbol if kept is self._inside else parts[0], stands)

    def called(self, names: Iterable[str], stands: str) -> None:
        """Add the names of a coin, matched in any case; long names also inside other words."""
        for name in names:
            parts = _parts(name)
            whole = "".join(parts)
            if len(parts) > 1:
                self._phrase(parts, stands)
            self._words.setdefault(whole, (stands, _ANY_CASE))
            if len(whole) >= _WITHIN_FROM and name not in VAGUE:
                self._bits.setdefault(whole, stands)

    def around(self, names: Iterable[str], stands: str) -> None:
        """Add people, firms and products.

        A name listed in capitals matches only capitalised, so that `circle` stays a word.
        """
        for name in names:
            parts = _parts(name)
            if len(parts) > 1:
                self._phrase(parts, stands)
                continue
            small = name.casefold()
            self._words.setdefault(small, (stands, _ANY_CASE if name == small else _CAPITAL))
            if len(name) > _WITHIN_FROM and name != small and small not in PLAIN:
                self._bits.setdefault(small, stands)

    def _phrase(self, parts: tuple[str, ...], stands: str) -> None:
        self._phrases.setdefault(parts[0], []).append((parts, stands))
        self._phrases[parts[0]].sort(key=lambda phrase: -len(phrase[0]))

    def replace(self, text: str) -> str:
        """Replace every known word and phrase in a text."""
        found = list(_WORD.finditer(text))
        told: list[str] = []
        done = place = 0
        while place < len(found):
            length, stands = self._at(text, found, place)
            if length:
                start = found[place].start()
                signed = start > done and text[start - 1] in "$#"
                told += (text[done : start - signed], stands)
                done = found[place + length - 1].end()
            place += length or 1
        return "".join((*told, text[done:])) if done else text

    def _at(self, text: str, found: list[re.Match[str]], place: int) -> tuple[int, str]:
        """The number of words from here on that form one name, and their replacement."""
        word = found[place][0]
        for parts, stands in self._phrases.get(word.casefold(), ()):
            near = found[place : place + len(parts)]
            if len(near) == len(parts) and all(
                one[0].casefold() == part and one.start() - before <= _GAP
                for one, part, before in zip(
                    near, parts, [near[0].start(), *(each.end() for each in near)], strict=False
                )
            ):
                return len(parts), stands
        start = found[place].start()
        signed = start > 0 and text[start - 1] in "$#"
        stands = self._word(word, signed)
        return (1, stands) if stands is not None else (0, "")

    def _word(self, word: str, signed: bool) -> str | None:
        key = f"${word}" if signed else word
        if key not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[key] = self._read(word, signed)
        return self._known[key]

    def _read(self, word: str, signed: bool) -> str | None:
        small = word.casefold()
        known = self._words.get(small) or self._words.get(small.removesuffix("s"))
        if known is not None and _meant(word, known[1], signed):
            return known[0]
        glued = _GLUED.fullmatch(word)
        if glued is not None:  # `100BTC`
            stands = self._read(glued[2], signed)
            return None if stands is None else f"{glued[1]} {stands}"
        pair = _PAIR.fullmatch(small)
        if pair is not None and pair[1] in self._words:  # `BTCUSDT`, however it is written
            return self._words[pair[1]][0]
        if self._within is None:
            self._within = re.compile("|".join(sorted(map(re.escape, self._bits), key=len, reverse=True)) or "(?!)")
        within = self._within.search(small)
        if within is not None:
            return self._bits[within[0]]
        if word.isupper() and word.isalpha():
            return self._inside.get(word[1:]) if word[0] in _WRAPS else None
        if small == word:
            return None
        return next((stands for ticker, stands in self._inside.items() if ticker in word), None)


def _meant(word: str, how: str, signed: bool) -> bool:
    """Whether a word that is spelt like a name is used as one."""
    if signed or how == _ANY_CASE:
        return True
    if how == _CAPITAL:
        return word[0].isupper() or word[0].isdigit()
    return word == how or word == how + "s"


def _parts(name: str) -> tuple[str, ...]:
    return tuple(found[0].casefold() for found in _WORD.finditer(name))
