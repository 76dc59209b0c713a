"""Binance USD-M futures: klines and funding, from the public API or from the public monthly and daily zip files.

Symbols are filed without their quote (`BTC` for `BTCUSDT`), as elsewhere. A month that is not published yet is taken
from its days; funding has no daily files. No account, no key.
"""

import csv
import hashlib
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import HOUR_MS, Instant, interval_ms
from pitboss.data.fetch import Fetcher, MalformedReply, Query, Reply, RequestRefused, address, host_of
from pitboss.data.file_reader import BadZip, zipped_csv
from pitboss.data.reply_rows import checked_bars, checked_points, listed_rows, named_rows, on_the_hour
from pitboss.data.source import DataSource, DownloadRequest, Ranged, Task
from pitboss.data.staging import first_line

URL = "https://fapi.binance.com"
FILES_URL = "https://data.binance.vision"
WEIGHT_PER_MINUTE, KLINES_WEIGHT = 2_400, 10
FUNDING_PER_MINUTE = 100
MOST_KLINES, MOST_FUNDING = 1_500, 1_000
CACHED_FILES = 2
_KLINE = ("t", "o", "h", "l", "c", "v")
_MONTH_MS = 31 * 24 * HOUR_MS
_TIME = re.compile(r"[0-9]{1,16}")


def pair_of(symbol: str) -> str:
    """The name of a symbol at the venue."""
    return symbol if symbol.endswith(("USDT", "USDC")) else f"{symbol}USDT"


async def plan(request: DownloadRequest, fetcher: Fetcher) -> list[Task]:
    """Bars and funding of each symbol."""
    kinds = SOURCE.kinds_of(request)
    base = address(request.base_url or (FILES_URL if request.files else URL))
    client = _Files(base, fetcher) if request.files else _Api(base, fetcher)
    tasks: list[Task] = []
    for symbol in request.symbols:
        name = symbol.removesuffix("USDT") or symbol
        tasks += [client.klines(name, interval) for interval in request.intervals if "bars" in kinds]
        tasks += [client.funding(name)] if "funding" in kinds else []
    return tasks


class _Api:
    def __init__(self, base: str, fetcher: Fetcher) -> None:
        self._base, self._fetcher = base, fetcher
        self._budget = fetcher.budget(WEIGHT_PER_MINUTE)
        self._funding_budget = fetcher.budget(FUNDING_PER_MINUTE)

    def klines(self, symbol: str, interval: str) -> Ranged:
        step = interval_ms(interval)

        async def page(from_at: Instant, to_at: Instant) -> pl.DataFrame:
            def parse(reply: Reply) -> pl.DataFrame:
                rows = listed_rows(reply.json(), _KLINE)
                fit = [row for row in rows if from_at <= row["t"] < to_at and row["t"] + step <= reply.settled_at]
                return checked_bars(fit, interval, f"klines of {symbol}")

            params = _range(symbol, from_at, to_at, MOST_KLINES) | {"interval": interval}
            query = Query(f"{self._base}/fapi/v1/klines", params, weight=KLINES_WEIGHT)
            return await self._fetcher.ask(query, parse, self._budget)

        return Ranged("bars", symbol, interval, step, MOST_KLINES * step, page)

    def funding(self, symbol: str) -> Ranged:
        async def page(from_at: Instant, to_at: Instant) -> pl.DataFrame:
            def parse(reply: Reply) -> pl.DataFrame:
                rows = named_rows(reply.json(), ("fundingTime", "fundingRate"))
                if any(row.get("symbol", pair_of(symbol)) != pair_of(symbol) for row in rows):
                    raise MalformedReply(f"asked for funding of {pair_of(symbol)}, got another symbol")
                return _funding(((row["fundingTime"], row["fundingRate"]) for row in rows), symbol, from_at, to_at)

            query = Query(f"{self._base}/fapi/v1/fundingRate", _range(symbol, from_at, to_at, MOST_FUNDING))
            return await self._fetcher.ask(query, parse, self._funding_budget)

        # mostly 8-hourly, for some symbols hourly: then a page is cut short and the rest requested
        return Ranged("funding", symbol, None, HOUR_MS, MOST_FUNDING * 4 * HOUR_MS, page)


class _Files:
    def __init__(self, base: str, fetcher: Fetcher) -> None:
        self._base, self._fetcher = f"{base}/data/futures/um", fetcher
        self._cached: dict[str, tuple[list[list[str]], Instant] | None] = {}

    def klines(self, symbol: str, interval: str) -> Ranged:
        step, pair = interval_ms(interval), pair_of(symbol)

        async def page(from_at: Instant, to_at: Instant) -> pl.DataFrame:
            tables = await self._tables("klines", f"{pair}/{interval}/{pair}-{interval}", from_at, to_at)
            rows: list[dict[str, Any]] = []
            with self._bad_rows_refused():
                for table, settled_at in tables:
                    for line in listed_rows([[_ms(line[0]), *line[1:]] for line in table], _KLINE):
                        if from_at <= line["t"] < to_at and line["t"] + step <= settled_at:
                            rows.append(line)
                return checked_bars(rows, interval, f"klines of {symbol}")

        return Ranged("bars", symbol, interval, step, _MONTH_MS, page)

    def funding(self, symbol: str) -> Ranged:
        pair = pair_of(symbol)

        async def page(from_at: Instant, to_at: Instant) -> pl.DataFrame:
            tables = await self._tables("fundingRate", f"{pair}/{pair}-fundingRate", from_at, to_at)
            rows = ((_ms(line[0]), line[-1]) for table, _ in tables for line in table)
            with self._bad_rows_refused():
                return _funding(rows, symbol, from_at, to_at)

        return Ranged("funding", symbol, None, HOUR_MS, _MONTH_MS, page)

    @contextmanager
    def _bad_rows_refused(self) -> Iterator[None]:
        """Bad rows of a published file are refused at once: another request brings the same file."""
        try:
            yield
        except MalformedReply as error:
            raise UserError(
                f"{host_of(self._base)} has a file with bad rows: {error}", "leave its time out, or omit --files"
            ) from None

    async def _tables(
        self, dataset: str, stem: str, from_at: Instant, to_at: Instant
    ) -> list[tuple[list[list[str]], Instant]]:
        tables: list[tuple[list[list[str]], Instant]] = []
        day, end = _day(from_at), _day(to_at - 1)
        while day <= end:
            after = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
            month = await self._table(f"{self._base}/monthly/{dataset}/{stem}-{day:%Y-%m}.zip")
            if month is not None:
                tables.append(month)
            elif dataset == "klines":
                while day < after and day <= end:
                    table = await self._table(f"{self._base}/daily/{dataset}/{stem}-{day:%Y-%m-%d}.zip")
                    tables += [table] if table is not None else []
                    day += timedelta(days=1)
            day = after
        return tables

    async def _table(self, url: str) -> tuple[list[list[str]], Instant] | None:
        if url not in self._cached:
            while len(self._cached) >= CACHED_FILES + 31:
                del self._cached[next(iter(self._cached))]
            self._cached[url] = await self._fetch(url)
        return self._cached[url]

    async def _fetch(self, url: str) -> tuple[list[list[str]], Instant] | None:
        checksum = await self._or_none(f"{url}.CHECKSUM", lambda reply: reply.content[:64].decode("ascii", "replace"))

        def parse(reply: Reply) -> tuple[list[list[str]], Instant]:
            if checksum and hashlib.sha256(reply.content).hexdigest() != checksum.lower():
                raise MalformedReply("a file does not match its checksum")
            return read_zip(reply.content), reply.settled_at

        return await self._or_none(url, parse)

    async def _or_none(self, url: str, parse: Callable[[Reply], Any]) -> Any:
        try:
            return await self._fetcher.ask(Query(url), parse)
        except RequestRefused as error:
            if error.status != 404:
                raise
            return None  # not published


def read_zip(content: bytes) -> list[list[str]]:
    """The rows of the CSV inside, without a heading."""
    try:
        text = zipped_csv(content).decode("utf-8")
        rows = [row for row in csv.reader(io.StringIO(text)) if row]
    except (BadZip, csv.Error, UnicodeDecodeError) as error:
        raise MalformedReply(f"a file is not a zip with a CSV ({first_line(error)})") from None
    rows = rows[1:] if rows and not rows[0][0].isdigit() else rows
    if any(not _TIME.fullmatch(row[0]) or len(row) < 3 for row in rows):
        raise MalformedReply("a file has rows without a time")
    return rows


def _funding(rows: Any, symbol: str, from_at: Instant, to_at: Instant) -> pl.DataFrame:
    timed = [{"at": on_the_hour(at), "value": rate} for at, rate in rows]
    fit = [row for row in timed if from_at <= row["at"] < to_at]
    return checked_points(fit, "funding", f"funding of {symbol}")


def _range(symbol: str, from_at: Instant, to_at: Instant, most: int) -> dict[str, str]:
    return {"symbol": pair_of(symbol), "startTime": str(from_at), "endTime": str(to_at - 1), "limit": str(most)}


def _ms(text: str) -> Instant:
    at = int(text)
    return at // 1_000 if at > 100_000_000_000_000 else at  # newer files count microseconds


def _day(at: Instant) -> datetime:
    return datetime.fromtimestamp(at // 1000, UTC).replace(hour=0, minute=0, second=0)


SOURCE = DataSource(
    "binance",
    "binance",
    "USD-M futures: klines and funding, from the API or the published monthly and daily files",
    ("bars", "funding"),
    ("bars", "funding"),
    ("symbols", "interval", "from"),
    plan,
    {"base-url": URL, "files": FILES_URL},
)
