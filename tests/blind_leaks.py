"""`Scanner`: finds what a blind run must not show to a model: true names, true dates, true prices.

It has the true market and reads text in the form the model gets. It shares no table and no code with the anonymisation
(`agent.blind` and what a venue makes of it), so that a gap there is not a gap here too.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from pitboss.core.asof import Market
from pitboss.core.instant import DAY_MS, Instant
from pitboss.prompt import render

CALLED: Mapping[str, tuple[str, ...]] = {
    "BTC": ("bitcoin", "xbt", "satoshi"), "ETH": ("ethereum", "vitalik"), "SOL": ("solana",), "XRP": ("xrpl",),
    "DOGE": ("dogecoin",), "HYPE": ("hyperliquid",), "LINK": ("chainlink",), "AVAX": ("avax",), "LTC": ("litecoin",),
    "ADA": ("cardano",), "ARB": ("arbitrum",), "BNB": ("binance",),
}  # fmt: skip
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w%]|\.\d)")
_AMOUNTS = re.compile(
    r"^obv .*$|open interest [\d.]+ coins(?: \(about [\d.]+ USD at the mark\))?|values, from [\d.]+ to [\d.]+, mean [\d.]+"
    r"|^\d\d-\d\d \d\d:\d\d [\d.]+$",
    re.MULTILINE,
)
"""Volumes and open interest, single, summed or in money: any whole number, but never a price."""

_ROW = re.compile(r"^(\d\d-\d\d \d\d:\d\d)((?: -?[\d.]+){4}) -?[\d.]+$")
"""A row of a table of bars; its last column, the volume, may be any whole number and is not a price."""
_CENTS = r"[-+]?\d+\.\d\d(?!\d)"
_MONEY = re.compile(
    "|".join(
        (
            rf"{_CENTS}(?= USD)",
            rf'(?<=_usd":"){_CENTS}',
            rf"(?:\bsize_usd|(?<=\d) to|of equity[^=\n]*=|=|left|[,;] ASSET-\w+|left ASSET-\w+|leaves|order is|free margin|equity|the cap is)"
            rf" {_CENTS}(?: to {_CENTS})?",
            r"limit [-\d.]+, (?:yours|used) [-\d.]+(?:, left [-\d.]+)? usd",
            r'\{[^{}]*"unit":"usd"[^{}]*\}',
            rf"(?<= min ){_CENTS}|{_CENTS}(?= is free)|(?<=d ){_CENTS}(?= [\d.]+% [\d.]+%)",
        )
    )
)
"""Amounts of money, which are not anonymised: among thousands of prices one may match an amount by chance."""

_TELLING_DIGITS = 4
"""A number with fewer significant digits is a size, a percentage or a count as often as a price."""


class BlindLeakScanner:
    """The true values of a market, searched for in texts where they must not appear."""

    def __init__(self, market: Market, symbols: Iterable[str], prices: Iterable[Decimal | float] = ()) -> None:
        self._prices: set[str] = set()
        first, last = 2**62, 0
        symbols = tuple(symbols)
        self._names = re.compile("|".join(_patterns(symbols)), re.IGNORECASE)
        names = set(symbols)
        columns: list[np.ndarray] = []
        for symbol, interval in list(market.bars):
            if symbol not in names:
                continue
            bars = market.bars[symbol, interval]
            if len(bars):
                first = min(first, int(bars.open_at[0]))
                last = max(last, int(bars.open_at[-1]) + bars.interval_ms)
            columns += [bars.open, bars.high, bars.low, bars.close]
        self.add(np.unique(np.concatenate(columns)).tolist() if columns else ())
        self.add(prices)
        self.first_at, self.last_at = first, last
        self._days = frozenset(_days(first, last))
        self._years = re.compile("|".join(rf"(?<![\d.]){year}(?![\d.]|\s*USD)" for year in _years(first, last)))

    def add(self, prices: Iterable[Decimal | float]) -> None:
        """Add more prices that must not appear: entries, marks, stops."""
        for price in prices:
            exact = format(Decimal(repr(price)) if isinstance(price, float) else price, "f")
            bare = exact.rstrip("0").rstrip(".") if "." in exact else exact
            self._prices.update(filter(_is_telling, (bare, render.price(price))))

    def find(self, text: str) -> list[str]:
        """Everything in a text that reveals the market; empty for a clean text."""
        leaks = [f"name {hit[0]!r} in {_surrounding_text(text, hit)!r}" for hit in self._names.finditer(text)]
        other_lines: list[str] = []
        for line in text.splitlines():
            row = _ROW.match(line.strip())
            if row is None:
                other_lines.append(line)
                continue
            leaks += [f"price {number} in {line!r}" for number in row[2].split() if number in self._prices]
        checked = _AMOUNTS.sub("", _MONEY.sub("0", "\n".join(other_lines)))
        leaks += [f"day {day} in the text" for day in self._days if day in text]
        leaks += [f"year {hit[0]} in {_surrounding_text(checked, hit)!r}" for hit in self._years.finditer(checked)]
        for hit in _NUMBER.finditer(checked):
            if hit[0].lstrip("-") in self._prices:
                leaks.append(f"price {hit[0]} in {_surrounding_text(checked, hit)!r}")
            elif hit[0].isdecimal() and self._is_instant(int(hit[0])):
                leaks.append(f"instant {hit[0]} in {_surrounding_text(checked, hit)!r}")
        return leaks

    def _is_instant(self, number: int) -> bool:
        return self.first_at <= number <= self.last_at or self.first_at <= number * 1000 <= self.last_at

    def request(self, request: Any) -> list[str]:
        """The same for a request of any shape: all texts in it, keys included."""
        return [leak for text in texts(request) for leak in self.find(text)]


def texts(value: Any) -> Iterator[str]:
    """Every text of a JSON value. Numbers are converted to text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _patterns(symbols: Iterable[str]) -> Iterator[str]:
    for symbol in symbols:
        # As a separate word or with its quote currency; `btc` occurs in no English word and is also matched inside words.
        if re.search("[aeiouy]", symbol, re.IGNORECASE):
            yield rf"(?<![a-z0-9]){re.escape(symbol)}(?:usd[tc]?|perp)?(?![a-z0-9])"
        else:
            yield re.escape(symbol)
        yield from map(re.escape, CALLED.get(symbol, ()))


def _is_telling(number: str) -> bool:
    return len(number.replace(".", "").strip("0-")) >= _TELLING_DIGITS


def _days(first: Instant, last: Instant) -> Iterator[str]:
    for day in range(first // DAY_MS, last // DAY_MS + 1):
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)
        yield moment.strftime("%Y-%m-%d")
        yield moment.strftime("%B %-d, %Y")


def _years(first: Instant, last: Instant) -> range:
    return range(_year(first), _year(last) + 1)


def _year(at: Instant) -> int:
    return datetime.fromtimestamp(at / 1000, UTC).year


def _surrounding_text(text: str, hit: re.Match[str]) -> str:
    return text[max(0, hit.start() - 40) : hit.end() + 40]
