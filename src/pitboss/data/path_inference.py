"""Infers kind, symbol and interval of a file from its path.

    candles/<interval>/<SYMBOL>.ext    <interval>/<SYMBOL>.ext    funding…/<SYMBOL>.ext    mark…/    oracle…/
    open_interest…/    news…    events…    meta…    listings…    <SYMBOL>-<interval>.ext    freqtrade's <BASE>_<QUOTE>-<interval>-futures
    Binance's <SYMBOL>USDT-<interval>-<month or day>    <SYMBOL>USDT-fundingRate-<month>    <SYMBOL>USDT-metrics-<day>

Only the file's name and the one or two folders above it count; names further up are unrelated.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from pitboss.core.errors import UserError
from pitboss.core.instant import INTERVALS
from pitboss.data.file_reader import stem_of


@dataclass(frozen=True, slots=True)
class FileHints:
    """Kind, symbol and interval of a file; None = not given."""

    kind: str | None = None
    symbol: str | None = None
    interval: str | None = None


_FOLDERS = (
    ("candle", "bars"),
    ("bars", "bars"),
    ("ohlcv", "bars"),
    ("kline", "bars"),
    ("funding", "funding"),
    ("mark", "mark"),
    ("oracle", "oracle"),
    ("open_interest", "open_interest"),
    ("openinterest", "open_interest"),
    ("l2", "l2"),
    ("book", "l2"),
    ("orderbook", "l2"),
    ("order_book", "l2"),
    ("news", "news"),
    ("event", "events"),
    ("meta", "meta"),
    ("listing", "listings"),
)
_SHARED = ("news", "events", "meta", "listings")
_FREQTRADE = re.compile(r"([A-Za-z0-9]+)_[A-Z0-9]+(?:_[A-Z0-9]+)?-(\d+[mhd])(?:-(futures|mark|funding_rate))?")
_FREQTRADE_KINDS = {"futures": "bars", "mark": "mark", "funding_rate": "funding"}
_PUBLISHED = re.compile(
    r"(?P<symbol>[A-Z0-9]+?)(?:USDT)?-(?P<content>\d+[smhdw]|\d+mo|fundingRate|metrics)-\d{4}-\d\d(?:-\d\d)?"
)
_PUBLISHED_KINDS = {"fundingRate": "funding", "metrics": "open_interest"}
_TICKER = re.compile(r"k?[A-Z0-9]*[A-Z][A-Z0-9]*")
_SYMBOL_INTERVAL = re.compile(r"(.+)[-_](\d+[mhd])")


def hints_of(path: Path) -> FileHints:
    """Kind, symbol and interval, as far as the path shows them."""
    stem, folders = stem_of(path), [folder.name for folder in path.parents][:2]
    parent = folders[0] if folders else ""
    published = _PUBLISHED.fullmatch(stem)
    if published:
        return _published(path, published)
    freqtrade = _FREQTRADE.fullmatch(stem)
    if freqtrade and freqtrade[2] in INTERVALS:
        kind = _FREQTRADE_KINDS[freqtrade[3] or "futures"]
        return FileHints(kind, freqtrade[1], freqtrade[2] if kind == "bars" else None)
    if parent in INTERVALS:
        above = _kind(folders[1]) if len(folders) > 1 else None
        kind = above if above and above not in _SHARED else "bars"
        return FileHints(kind, stem, parent if kind == "bars" else None)
    kind = _kind(parent)
    if kind in _SHARED:
        return FileHints(kind)
    symbol_interval = _SYMBOL_INTERVAL.fullmatch(stem)
    if kind in (None, "bars") and symbol_interval and symbol_interval[2] in INTERVALS:
        return FileHints("bars", symbol_interval[1], symbol_interval[2])
    if kind:
        return FileHints(kind, stem)
    shared = next((kind for kind in _SHARED if _starts(stem, kind.rstrip("s"))), None)
    return FileHints(shared, stem if shared is None and _TICKER.fullmatch(stem) else None)


def is_binance_name(path: Path) -> bool:
    """Whether a file is named like the files that Binance publishes."""
    return _PUBLISHED.fullmatch(stem_of(path)) is not None


def _published(path: Path, match: re.Match[str]) -> FileHints:
    # klines of marks, indices and premiums have the names of those of trades, in other folders
    above = {folder.name for folder in list(path.parents)[:4]}
    symbol, content = match["symbol"], match["content"]
    if "premiumIndexKlines" in above:
        raise UserError(f"{path}: premium index klines are not supported", "leave that folder out")
    if content in _PUBLISHED_KINDS:
        return FileHints(_PUBLISHED_KINDS[content], symbol)
    kind = "mark" if "markPriceKlines" in above else "oracle" if "indexPriceKlines" in above else "bars"
    return FileHints(kind, symbol, content if kind == "bars" and content in INTERVALS else None)


def _kind(folder: str) -> str | None:
    return next((kind for start, kind in _FOLDERS if _starts(folder, start)), None)


def _starts(name: str, prefix: str) -> bool:
    lower = name.lower()
    return lower.startswith(prefix) and not lower.startswith("market")
