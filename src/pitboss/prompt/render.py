"""Formatting of numbers, times, bars and untrusted text for prompts: the only module that rounds for display.

Deterministic: no locale, no exponent, no clock. Rounded text is never read back as an amount; exact text for storage is
`core.money.text`.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import lru_cache
from math import isfinite
from typing import Any, cast

Number = float | int | Decimal

NOT_A_NUMBER = "n/a"
DATA_OPEN, DATA_CLOSE = "<data>", "</data>"
_MINUTES = tuple(f"{minute // 60:02d}:{minute % 60:02d}" for minute in range(24 * 60))
_MINUTE_MS, _DAY_MS = 60_000, 86_400_000
_WHOLE_FROM = 100_000.0


def price(x: Number) -> str:
    """Up to six significant digits, no decimals from 100000 on. Equal numbers give equal text, whatever their type."""
    if type(x) is float and 1e-4 <= x < _WHOLE_FROM:
        return f"{x:.6g}"  # the common case, in a third of the time
    return _significant(x, 6, _WHOLE_FROM)


def volume(x: Number) -> str:
    """A traded volume: four significant digits, no decimals from 1000 on."""
    return _significant(x, 4, 1_000.0)


def amount(x: Number) -> str:
    """US dollars with cents; below half a cent, two significant digits, so that small costs are not shown as zero."""
    return _fixed(x, 2, keep_zeros=True)


def size(x: Number) -> str:
    """An order or position size: up to eight decimals, no trailing zeros."""
    return _fixed(x, 8, keep_zeros=False)


def percent(x: Number) -> str:
    """A number that is already in percent: `12.5%`, at most two decimals."""
    text = _fixed(x, 2, keep_zeros=False)
    return text if text == NOT_A_NUMBER else text + "%"


def time(at_ms: int) -> str:
    """The instant as `2025-06-01 12:30`, UTC, rounded down to the minute."""
    day, time_of_day_ms = divmod(at_ms, _DAY_MS)
    return f"{_date(day)} {_MINUTES[time_of_day_ms // _MINUTE_MS]}"


def age(ms: int) -> str:
    """A duration in its two largest units: `45s`, `12m`, `3h 20m`, `2d 4h`."""
    seconds = max(0, ms) // 1000
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if days:
        return f"{days}d {hours % 24}h" if hours % 24 else f"{days}d"
    if hours:
        return f"{hours}h {minutes % 60}m" if minutes % 60 else f"{hours}h"
    return f"{minutes}m" if minutes else f"{seconds}s"


def bar_header() -> str:
    """The header line of `bar_rows`."""
    return "time(UTC) open high low close volume"


def bar_rows(
    open_at: Sequence[int],
    open: Sequence[Number],
    high: Sequence[Number],
    low: Sequence[Number],
    close: Sequence[Number],
    volume: Sequence[Number],
) -> list[str]:
    """One compact line per bar, `MM-DD HH:MM open high low close volume`. Columns may be lists or arrays."""
    rows: list[str] = []
    for at, first, top, bottom, last, traded in zip(
        _column(open_at),
        _column(open),
        _column(high),
        _column(low),
        _column(close),
        _column(volume),
        strict=True,
    ):
        if 1e-4 <= bottom <= first <= top < _WHOLE_FROM and bottom <= last <= top:
            # The common case of `price`, four at a time: a run formats a year of rows, so the speed matters.
            prices = f"{first:.6g} {top:.6g} {bottom:.6g} {last:.6g}"
        else:
            prices = f"{price(first)} {price(top)} {price(bottom)} {price(last)}"
        day, time_of_day_ms = divmod(at, _DAY_MS)
        rows.append(
            f"{_date(day)[5:]} {_MINUTES[time_of_day_ms // _MINUTE_MS]} {prices} {_significant(traded, 4, 1_000.0)}"
        )
    return rows


def _column(values: Iterable[Any]) -> Iterable[Any]:
    # Iterating an array boxes each scalar; `tolist` converts all to plain numbers at once.
    tolist = getattr(values, "tolist", None)
    return cast("Iterable[Any]", tolist()) if tolist else values


@lru_cache(maxsize=4096)
def _date(day: int) -> str:
    return datetime.fromtimestamp(day * 86_400, UTC).strftime("%Y-%m-%d")


def _significant(x: Number, digits: int, whole_from: float) -> str:
    try:
        value = float(x)
    except OverflowError:
        return format(Decimal(x), "f")  # an integer beyond the range of a float
    if -whole_from < value < whole_from:
        text = f"{value:.{digits}g}"
        if "e" in text:
            return format(Decimal(text), "f")
        return "0" if text == "-0" else text
    if isfinite(value):
        return f"{value:.0f}"
    return f"{x:.0f}" if isinstance(x, Decimal) and x.is_finite() else NOT_A_NUMBER


def _fixed(x: Number, decimals: int, keep_zeros: bool) -> str:
    value = Decimal(repr(float(x))) if isinstance(x, float) else Decimal(x)
    if not value.is_finite():
        return NOT_A_NUMBER
    # Explicit contexts: the caller's precision and rounding must not affect the prompt.
    wide = Context(prec=max(1, value.adjusted() + decimals + 2), rounding=ROUND_HALF_EVEN)
    text = format(value.quantize(Decimal(1).scaleb(-decimals), context=wide), "f")
    if not text.strip("-0."):
        if value:
            return format(Context(prec=2, rounding=ROUND_HALF_EVEN).plus(value), "f")
        text = text.lstrip("-")
    return text.rstrip("0").rstrip(".") if not keep_zeros and "." in text else text


# Untrusted text ---------------------------------------------------------------------------------------------------

_LOOKALIKES = str.maketrans(
    {
        "<": "‹", "＜": "‹", "﹤": "‹", "〈": "‹", "⟨": "‹", "《": "‹",
        ">": "›", "＞": "›", "﹥": "›", "〉": "›", "⟩": "›", "》": "›",
        "`": "'", "｀": "'", "＃": "#", "﹟": "#", "\\": "/",
    }
)  # fmt: skip
"""Characters that could close the fence, open a code block or look like either, with harmless replacements."""

_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\ue000-\uf8ff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff"
)
"""Invisible characters, as ranges of a regular expression. A fixed list, because the categories of `unicodedata` change
between Python versions and the prompt's bytes must not."""
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_HEADINGS = re.compile(r"#{2,}|#(?=\s|$)")
_RULES = re.compile(r"([~=_*-])\1{2,}")
_SPACES = re.compile(r"\s+")


def fence(text: str, limit: int = 280) -> str:
    """Untrusted text as one inert line of data, at most `limit` characters between the marks."""
    inert = _inert(text[: 20 * limit])  # cut first: the length is untrusted too
    if len(inert) > limit:
        inert = inert[: limit - 1].rstrip() + "…"
    return f"{DATA_OPEN}{inert}{DATA_CLOSE}"


def _inert(text: str) -> str:
    visible = _INVISIBLE.sub("", _BREAKS.sub(" ", text)).translate(_LOOKALIKES)
    return _SPACES.sub(" ", _RULES.sub(r"\1", _HEADINGS.sub("", visible))).strip()


# Many amounts at once ---------------------------------------------------------------------------------------------

_CENT = Decimal("0.01")
_ORDINARY = Context(prec=40, rounding=ROUND_HALF_EVEN)


def cents(x: Decimal) -> str:
    """The same text as `amount`, faster for exact decimals of ordinary size: a user message holds dozens of them."""
    if x.is_finite() and x.adjusted() < 30:
        rounded = x.quantize(_CENT, context=_ORDINARY)
        if rounded:
            return str(rounded)
    return amount(x)
