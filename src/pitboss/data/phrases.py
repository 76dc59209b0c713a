"""Rules that read a coming event out of a headline: a word that names its kind, and near it a date that lies ahead.

Rules only, so that the same headline always gives the same answer. They miss much and are wrong at times: what they find
is marked as unconfirmed wherever it shows. A headline is a stranger's text: nothing of its wording leaves this module
but a kind from the list below, an instant, and tickers.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from pitboss.core.instant import DAY_MS, Instant

MOST_CHARS = 1_000
"""Longer texts are read up to here: a headline is shorter."""
MOST_DAYS = 400
MOST_DAYS_UNDATED = 200
"""For a date without a year: one that would lie further ahead is taken for one that has been."""
NEAR = 90
"""Characters that may lie between the word and the date."""
MOST_CONFIDENCE = 0.3
_NOON = time(12)
_EASTERN = ZoneInfo("America/New_York")


@dataclass(frozen=True, slots=True)
class EventKind:
    """A kind of event: how it is called in a list of events, what names it, and how much it matters at most."""

    name: str
    title: str
    words: re.Pattern[str]
    importance: float
    about_symbols: bool = False


@dataclass(frozen=True, slots=True)
class AnnouncedEvent:
    """An event that a headline seems to announce."""

    kind: EventKind
    scheduled_at: Instant
    symbols: tuple[str, ...]
    confidence: float


def _kind(name: str, title: str, words: str, importance: float, about_symbols: bool = False) -> EventKind:
    return EventKind(name, title, re.compile(words, re.IGNORECASE), importance, about_symbols)


KINDS = (
    _kind("fomc", "FOMC", r"\bFOMC\b|\bfederal open market committee\b|\bfed(?:eral reserve)?(?:'s|’s)? (?:interest )?rate decision\b", 0.45),
    _kind("cpi", "CPI", r"\bCPI\b|\bconsumer price index\b", 0.45),
    _kind("ppi", "PPI", r"\bPPI\b|\bproducer price index\b", 0.3),
    _kind("nfp", "nonfarm payrolls", r"\bNFP\b|\bnon-?farm payrolls?\b", 0.4),
    _kind("jobless_claims", "jobless claims", r"\bjobless claims\b", 0.2),
    _kind("gdp", "GDP", r"\bGDP\b|\bgross domestic product\b", 0.3),
    _kind("pce", "PCE", r"\bPCE\b|\bpersonal consumption expenditures?\b", 0.4),
    _kind("ecb_rate", "ECB rate decision", r"\b(?:ECB|european central bank)\b", 0.3),
    _kind("boe_rate", "Bank of England rate decision", r"\b(?:BoE|bank of england)\b", 0.2),
    _kind("boj_rate", "Bank of Japan rate decision", r"\b(?:BoJ|bank of japan)\b", 0.3),
    _kind("crypto_unlock", "token unlock", r"\btoken unlocks?\b|\bunlocks? [\d.,]+ ?(?:m|million|billion)?\b|\bcliff unlock\b", 0.4, True),
    _kind("exchange_listing", "exchange listing", r"\b(?:will|to) list\b|\blisting of\b|\bwill be listed\b", 0.3, True),
    _kind("halving", "halving", r"\bhalving\b", 0.4, True),
    _kind("mainnet_launch", "mainnet launch", r"\bmainnet\b", 0.3, True),
    _kind("regulatory", "regulatory date", r"\b(?:SEC|ETF) (?:decision|deadline|ruling)\b|\bdeadline (?:for|on) .{0,30}\bETF\b", 0.4),
    _kind("earnings", "earnings", r"\bearnings (?:report|call)\b|\bto report (?:quarterly )?earnings\b", 0.2),
)  # fmt: skip
"""In the order in which they are looked for; of one headline the first kind that has a date near it counts."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH = r"(?P<month>Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
_NOT_AN_AMOUNT = r"(?![\d%]|[.,]\d| ?(?:%|bps|basis|million|billion|[kmbx]\b))"
_DATES = (
    re.compile(r"\b(?P<year>20\d\d)-(?P<number>\d\d)-(?P<day>\d\d)(?!\d)"),
    re.compile(rf"\b{_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?{_NOT_AN_AMOUNT}(?:,? (?P<year>\d{{4}}))?\b"),
    re.compile(rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?{_MONTH}(?:,? (?P<year>\d{{4}}))?\b"),
)
_NEAR_DATES = re.compile(
    rf"\b(?:(?P<tomorrow>tomorrow)|(?P<today>today|tonight)|(?:on|this|next) (?P<weekday>{'|'.join(_DAYS)}))\b",
    re.IGNORECASE,
)
_AHEAD = re.compile(
    r"\b(?:ahead of|before|will|to be|upcoming|scheduled|set (?:for|to)|due(?! to\b)|expected|later|awaits?|awaiting|waiting|next|"
    r"looms?|tomorrow|launching)\b",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    r"\b(?:yesterday|came out|released|showed|after|following|last (?:week|month|night)|was|were|had|made|rose|fell|"
    r"gained|lost|surged|dropped|climbed|jumped|slid)\b",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"\bat (?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?(?P<half>[ap])?\.?(?:m\b\.?)? ?(?P<zone>UTC|GMT|ET|EST|EDT)\b",
    re.IGNORECASE,
)
_TICKER = re.compile(r"(?:\$|\()([A-Z][A-Z0-9]{1,9})\b")
_SENTENCE = re.compile(r"(?<=[.!?])(?<![apAP]\.[mM]\.)\s+(?=[A-Z\"“'])")
_HALVES = {
    "BTC": re.compile(r"\bbitcoin\b|\bBTC\b", re.IGNORECASE),
    "LTC": re.compile(r"\blitecoin\b|\bLTC\b", re.IGNORECASE),
}


def find(text: str, published_at: Instant, symbols: tuple[str, ...] = ()) -> AnnouncedEvent | None:
    """The event that a headline announces, if it seems to. `symbols` are those that the source itself names."""
    short = text[:MOST_CHARS]
    if not any(kind.words.search(short) for kind in KINDS):  # nearly all headlines end here
        return None
    today = datetime.fromtimestamp(published_at // 1000, UTC).date()
    for kind in KINDS:
        for sentence in _SENTENCE.split(short):
            for word in kind.words.finditer(sentence):
                best = _nearest(sentence, word, today, published_at)
                if best is not None:
                    scheduled_at, confidence = best
                    return AnnouncedEvent(kind, scheduled_at, _about(kind, short, symbols), confidence)
    return None


def _nearest(sentence: str, word: re.Match[str], today: date, published_at: Instant) -> tuple[Instant, float] | None:
    """The instant of the date nearest to the word that lies ahead."""
    found: list[tuple[int, Instant, float]] = []
    for match, day, confidence in _days(sentence, today):
        away = max(word.start() - match.end(), match.start() - word.end(), 0)
        at, exact = _instant(sentence, match, day)
        ahead = published_at < at <= published_at + MOST_DAYS * DAY_MS
        if away <= NEAR and ahead:
            found.append((away, at, min(MOST_CONFIDENCE, confidence + (0.05 if exact else 0.0))))
    return min(found)[1:] if found else None


def _days(sentence: str, today: date) -> Iterator[tuple[re.Match[str], date, float]]:
    """Every date in a sentence with how far it can be trusted; days that no calendar has are left out."""
    exact = False
    for form in _DATES:
        for match in form.finditer(sentence):
            named = match.groupdict()
            number = int(named.get("number") or 0) or _MONTHS.index(named["month"][:3].lower()) + 1
            year = int(named["year"]) if named.get("year") else None
            day = _day(year or today.year, number, int(match["day"]))
            if day is not None and year is None and day < today:  # without a year: the next one there is
                day = _day(today.year + 1, number, int(match["day"]))
                if day is None or (day - today).days > MOST_DAYS_UNDATED:  # no: it speaks of a day that has been
                    continue
            if day is not None:
                exact = True
                yield match, day, 0.25 if year else 0.2
    if exact or not _AHEAD.search(sentence) or _BEHIND.search(sentence):
        return
    for match in _NEAR_DATES.finditer(sentence):
        if match["tomorrow"]:
            yield match, today + timedelta(days=1), 0.2
        elif match["today"]:
            yield match, today, 0.15
        else:
            days = (_DAYS.index(match["weekday"].lower()) - today.weekday()) % 7
            next_one = match[0].lower().startswith("next") and days == 0
            yield match, today + timedelta(days=days + 7 * next_one), 0.1


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _instant(sentence: str, match: re.Match[str], day: date) -> tuple[Instant, bool]:
    """A day at the time that is given right after it, else at noon UTC; and whether a time was given."""
    clock = _CLOCK.search(sentence, match.end(), match.end() + 40)
    if clock:
        hour, minute = int(clock["hour"]), int(clock["minute"] or 0)
        if clock["half"]:
            hour = hour % 12 + (12 if clock["half"].lower() == "p" else 0)
        if hour < 24 and minute < 60:
            zone = UTC if clock["zone"].upper() in ("UTC", "GMT") else _EASTERN
            return _ms(datetime.combine(day, time(hour, minute), zone)), True
    return _ms(datetime.combine(day, _NOON, UTC)), False


def _ms(moment: datetime) -> Instant:
    return round(moment.timestamp() * 1000)


def _about(kind: EventKind, text: str, symbols: tuple[str, ...]) -> tuple[str, ...]:
    if not kind.about_symbols:
        return ()
    if kind.name == "halving":
        return tuple(symbol for symbol, words in _HALVES.items() if words.search(text))
    tickers = symbols or tuple(_TICKER.findall(text))
    return tuple(sorted({word for word in tickers if re.fullmatch(r"k?[A-Z0-9]{2,12}", word)}))[:5]
