"""`data extract-events`: scheduled events that headlines in the lake seem to announce, kept apart from real calendars.

A rule needs a term that names the kind of event and, near it, a date in the future. Rules only, so that the same headline
always gives the same result; they miss much and are wrong at times, so a run reads the events only on request, marked as
unconfirmed. A headline is untrusted text: nothing of its wording enters an event but a kind of the table below, an instant
and tickers. An event is dated to the hour and known from when its headline could be known. Several headlines about the
same event (same kind, hour and symbols) count as one, from the earliest of them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import polars as pl

from pitboss.core.instant import DAY_MS, HOUR_MS, Instant
from pitboss.data.lake import Lake, news_items
from pitboss.data.merge import RowChanges
from pitboss.data.series import series

MOST_CHARS = 1_000
"""Longer texts are read up to here: a headline is shorter."""
MOST_DAYS = 400
MOST_DAYS_UNDATED = 200
"""A date without a year that would lie further ahead is taken for a past one."""
MOST_DISTANCE = 90
"""Characters between the term and the date."""
MOST_CONFIDENCE = 0.3
TITLE = "{title}, unconfirmed: read out of a headline"
IMPORTANCE_SHARE = 0.5
"""Share of the importance of a kind that an event from a headline has."""


@dataclass(frozen=True, slots=True)
class EventKind:
    """A kind of event: its title in a list of events, a pattern of the terms that name it, and its importance."""

    name: str
    title: str
    pattern: str
    importance: float
    has_symbols: bool = False


KINDS = (
    EventKind("fomc", "FOMC", r"\bFOMC\b|\bfederal open market committee\b|\bfed(?:eral reserve)?(?:'s|’s)? (?:interest )?rate decision\b", 0.45),
    EventKind("cpi", "CPI", r"\bCPI\b|\bconsumer price index\b", 0.45),
    EventKind("ppi", "PPI", r"\bPPI\b|\bproducer price index\b", 0.3),
    EventKind("nfp", "nonfarm payrolls", r"\bNFP\b|\bnon-?farm payrolls?\b", 0.4),
    EventKind("jobless_claims", "jobless claims", r"\bjobless claims\b", 0.2),
    EventKind("gdp", "GDP", r"\bGDP\b|\bgross domestic product\b", 0.3),
    EventKind("pce", "PCE", r"\bPCE\b|\bpersonal consumption expenditures?\b", 0.4),
    EventKind("ecb_rate", "ECB rate decision", r"\b(?:ECB|european central bank)\b", 0.3),
    EventKind("boe_rate", "Bank of England rate decision", r"\b(?:BoE|bank of england)\b", 0.2),
    EventKind("boj_rate", "Bank of Japan rate decision", r"\b(?:BoJ|bank of japan)\b", 0.3),
    EventKind("crypto_unlock", "token unlock", r"\btoken unlocks?\b|\bunlocks? [\d.,]+ ?(?:m|million|billion)?\b|\bcliff unlock\b", 0.4, True),
    EventKind("exchange_listing", "exchange listing", r"\b(?:will|to) list\b|\blisting of\b|\bwill be listed\b", 0.3, True),
    EventKind("halving", "halving", r"\bhalving\b", 0.4, True),
    EventKind("mainnet_launch", "mainnet launch", r"\bmainnet\b", 0.3, True),
    EventKind("regulatory", "regulatory date", r"\b(?:SEC|ETF) (?:decision|deadline|ruling)\b|\bdeadline (?:for|on) .{0,30}\bETF\b", 0.4),
    EventKind("earnings", "earnings", r"\bearnings (?:report|call)\b|\bto report (?:quarterly )?earnings\b", 0.2),
)  # fmt: skip
"""In the order in which they are tried; the first kind with a date near its term is the kind of the headline."""

_ANY_KIND = "(?i)" + "|".join(kind.pattern for kind in KINDS)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH = r"(?P<month>Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
_NOT_AN_AMOUNT = r"(?![\d%]|[.,]\d| ?(?:%|bps|basis|million|billion|[kmbx]\b))"
_DATES = (
    re.compile(r"\b(?P<year>20\d\d)-(?P<number>\d\d)-(?P<day>\d\d)(?!\d)"),
    re.compile(rf"\b{_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?{_NOT_AN_AMOUNT}(?:,? (?P<year>\d{{4}}))?\b"),
    re.compile(rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?{_MONTH}(?:,? (?P<year>\d{{4}}))?\b"),
)
_RELATIVE_DATES = re.compile(
    rf"\b(?:(?P<tomorrow>tomorrow)|(?P<today>today|tonight)|(?:on|this|next) (?P<weekday>{'|'.join(_DAYS)}))\b", re.I
)
_FUTURE = re.compile(
    r"\b(?:ahead of|before|will|to be|upcoming|scheduled|set (?:for|to)|due(?! to\b)|expected|later|awaits?|awaiting|waiting|next|"
    r"looms?|tomorrow|launching)\b",
    re.I,
)
_PAST = re.compile(
    r"\b(?:yesterday|came out|released|showed|after|following|last (?:week|month|night)|was|were|had|made|rose|fell|"
    r"gained|lost|surged|dropped|climbed|jumped|slid)\b",
    re.I,
)
_CLOCK = re.compile(
    r"\bat (?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?(?P<half>[ap])?\.?(?:m\b\.?)? ?(?P<zone>UTC|GMT|ET|EST|EDT)\b", re.I
)
_EASTERN = ZoneInfo("America/New_York")
_TICKER = re.compile(r"(?:\$|\()([A-Z][A-Z0-9]{1,9})\b")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<![apAP]\.[mM]\.)\s+(?=[A-Z\"“'])")
_HALVING_COINS = {"BTC": re.compile(r"\bbitcoin\b|\bBTC\b", re.I), "LTC": re.compile(r"\blitecoin\b|\bLTC\b", re.I)}


@dataclass(frozen=True, slots=True)
class AnnouncedEvent:
    """An event that a headline seems to announce."""

    kind: EventKind
    scheduled_at: Instant
    symbols: tuple[str, ...]
    confidence: float


@dataclass(frozen=True, slots=True)
class ExtractResult:
    """The result for one venue: headlines read, events in them (each counted once), rows added and replaced."""

    venue: str
    read: int
    found: int
    added: int
    replaced: int


def extract(lake: Lake, at: Instant | None = None) -> list[ExtractResult]:
    """Store the events that the news of each venue announces, as the kind `extracted`, each with its headline."""
    results: list[ExtractResult] = []
    for venue in lake.venues("news"):
        news = lake.stored_rows("news", venue)
        if news is None:
            continue
        rows = _event_rows(news, lake.stored_rows("extracted", venue))
        changes = RowChanges(0, 0, 0)
        if rows:
            shape = series("extracted")
            schema = {name: pl.Int64() if kind.is_temporal() else kind for name, kind in shape.columns.items()}
            with lake.writing(at) as batch:
                frame = pl.DataFrame(rows, schema=schema)
                changes = batch.put(shape, lake.folder("extracted", venue, None, None), frame, replace=True)
        results.append(ExtractResult(venue, news.height, len(rows), changes.added, changes.replaced))
    return results


def _event_rows(news: pl.DataFrame, stored: pl.DataFrame | None) -> list[dict[str, object]]:
    """One row for each event, from the headline that could be known first.

    An event that was over before its headline could be known is left out, unless it is stored already: then its headline
    has turned out to have been seen later, and so has the event.
    """
    key_columns = pl.col("scheduled_at").dt.epoch("ms"), "kind", "symbols"
    stored_keys = set() if stored is None else set(stored.select(*key_columns).iter_rows())
    rows: dict[tuple[Instant, str, str], dict[str, object]] = {}
    # nearly all headlines name no kind; polars filters them out: 11,000 headlines take 0.9 s instead of 4.3
    items = news_items(news.filter(pl.col("text").str.contains(_ANY_KIND)))
    for item in sorted(items, key=lambda item: (item.available_at, item.published_at, item.source, item.text)):
        event = find(item.text, item.published_at, item.symbols)
        if event is None:
            continue
        hour = event.scheduled_at // HOUR_MS * HOUR_MS
        key = (hour, event.kind.name, ",".join(event.symbols))
        if hour <= item.available_at and key not in stored_keys:
            continue
        row: dict[str, object] = {
            "scheduled_at": hour,
            "kind": event.kind.name,
            "symbols": key[2],
            "title": TITLE.format(title=event.kind.title),
            "known_at": item.available_at,
            "importance": round(event.kind.importance * IMPORTANCE_SHARE, 3),
            "confidence": round(event.confidence, 3),
            "published_at": item.published_at,
            "source": item.source,
            "text": item.text,
        }
        rows.setdefault(key, row)
    return list(rows.values())


def find(text: str, published_at: Instant, symbols: tuple[str, ...] = ()) -> AnnouncedEvent | None:
    """The event that a headline seems to announce, if any. `symbols` are those that the source names for it."""
    text = text[:MOST_CHARS]
    today = datetime.fromtimestamp(published_at // 1000, UTC).date()
    for kind in KINDS:
        for sentence in _SENTENCE_END.split(text):
            for term in re.finditer(kind.pattern, sentence, re.I):
                nearest = _nearest(sentence, term, today, published_at)
                if nearest is not None:
                    return AnnouncedEvent(kind, nearest[0], _symbols_of(kind, text, symbols), nearest[1])
    return None


def _nearest(sentence: str, term: re.Match[str], today: date, published_at: Instant) -> tuple[Instant, float] | None:
    """The instant of the future date nearest to a term, and its confidence."""
    candidates: list[tuple[int, Instant, float]] = []
    for match, day, confidence in _days(sentence, today):
        distance = max(term.start() - match.end(), match.start() - term.end(), 0)
        at, has_time = _instant(sentence, match, day)
        if distance <= MOST_DISTANCE and published_at < at <= published_at + MOST_DAYS * DAY_MS:
            candidates.append((distance, at, min(MOST_CONFIDENCE, confidence + (0.05 if has_time else 0.0))))
    return min(candidates)[1:] if candidates else None


def _days(sentence: str, today: date) -> Iterator[tuple[re.Match[str], date, float]]:
    """Every date in a sentence with its confidence; days that no calendar has are left out."""
    has_date = False
    for form in _DATES:
        for match in form.finditer(sentence):
            parts = match.groupdict()
            month = int(parts.get("number") or 0) or _MONTHS.index(parts["month"][:3].lower()) + 1
            year = int(parts["year"]) if parts.get("year") else None
            day = _day(year or today.year, month, int(match["day"]))
            if day is not None and year is None and day < today:
                day = _day(today.year + 1, month, int(match["day"]))
                if day is None or (day - today).days > MOST_DAYS_UNDATED:
                    continue
            if day is not None:
                has_date = True
                yield match, day, 0.25 if year else 0.2
    if has_date or not _FUTURE.search(sentence) or _PAST.search(sentence):
        return
    for match in _RELATIVE_DATES.finditer(sentence):
        if match["tomorrow"]:
            yield match, today + timedelta(days=1), 0.2
        elif match["today"]:
            yield match, today, 0.15
        else:
            days = (_DAYS.index(match["weekday"].lower()) - today.weekday()) % 7
            in_a_week = days == 0 and match[0].lower().startswith("next")
            yield match, today + timedelta(days=7 if in_a_week else days), 0.1


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _instant(sentence: str, match: re.Match[str], day: date) -> tuple[Instant, bool]:
    """A day at the time that follows it in the sentence, else at noon UTC; and whether there is such a time."""
    moment, has_time = datetime.combine(day, time(12), UTC), False
    clock = _CLOCK.search(sentence, match.end(), match.end() + 40)
    if clock:
        hour, minute = int(clock["hour"]), int(clock["minute"] or 0)
        if clock["half"]:
            hour = hour % 12 + (12 if clock["half"].lower() == "p" else 0)
        if hour < 24 and minute < 60:
            zone = UTC if clock["zone"].upper() in ("UTC", "GMT") else _EASTERN
            moment, has_time = datetime.combine(day, time(hour, minute), zone), True
    return round(moment.timestamp() * 1000), has_time


def _symbols_of(kind: EventKind, text: str, symbols: tuple[str, ...]) -> tuple[str, ...]:
    if not kind.has_symbols:
        return ()
    if kind.name == "halving":
        return tuple(symbol for symbol, name in _HALVING_COINS.items() if name.search(text))
    tickers = symbols or tuple(_TICKER.findall(text))
    return tuple(sorted({ticker for ticker in tickers if re.fullmatch(r"k?[A-Z0-9]{2,12}", ticker)}))[:5]
