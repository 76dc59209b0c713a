"""Hyperliquid's public `/info`: candles, funding, the asset table with margin tiers, and open interest as it is now.

The venue serves about the latest 5,000 candles of an interval, all funding, and of open interest, mark and oracle price
only the present value, which is stored with the time of the request. No account, no key, no orders.
"""

from collections.abc import Callable
from typing import Any

import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import HOUR_MS, Instant, interval_ms
from pitboss.core.suggestion import suggestion
from pitboss.data.excerpt import excerpt
from pitboss.data.fetch import Fetcher, MalformedReply, Query, Reply, RequestRefused, WeightLimiter, address
from pitboss.data.meta_rows import meta_rows
from pitboss.data.reply_rows import checked_bars, checked_points, named_rows, on_the_hour
from pitboss.data.source import DataSource, DownloadRequest, Ranged, SeriesRows, Single, StoredState, Task

URL = "https://api.hyperliquid.xyz"
WEIGHT_PER_MINUTE = 1_200
WEIGHT = 20
MOST_CANDLES, MOST_FUNDING = 5_000, 500
CANDLES_PER_WEIGHT, ROWS_PER_WEIGHT = 60, 20
_NOW_KINDS = {"open_interest": "openInterest", "mark": "markPx", "oracle": "oraclePx"}


class _Info:
    def __init__(self, base_url: str, fetcher: Fetcher) -> None:
        self.url = f"{address(base_url).removesuffix('/info')}/info"
        self.fetcher = fetcher
        self.budget: WeightLimiter = fetcher.budget(WEIGHT_PER_MINUTE)

    async def ask(
        self,
        body: dict[str, Any],
        parse: Callable[[Reply], Any],
        more: int = 0,
        weigh: Callable[[Any], int] | None = None,
    ) -> Any:
        return await self.fetcher.ask(Query(self.url, body=body, weight=WEIGHT + more), parse, self.budget, weigh)

    async def candles(self, symbol: str, interval: str, from_at: Instant, to_at: Instant) -> pl.DataFrame:
        step = interval_ms(interval)

        def parse(reply: Reply) -> tuple[pl.DataFrame, int]:
            rows = named_rows(reply.json(), ("t", "o", "h", "l", "c", "v"))
            for row in rows:
                if row.get("s", symbol) != symbol or row.get("i", interval) != interval:
                    raise MalformedReply(
                        f"asked for {interval} candles of {symbol}, got {excerpt(str(row.get('i')))} of {excerpt(str(row.get('s')))}"
                    )
            # the bar that contains the start opens before it; the newest one may still be open
            fit = [row for row in rows if from_at <= row["t"] < to_at and row["t"] + step <= reply.settled_at]
            return checked_bars(fit, interval, f"candles of {symbol}"), len(rows)

        # the venue includes both ends of the range, so the last bar requested is the one before `to_at`
        body = {"coin": symbol, "interval": interval, "startTime": from_at, "endTime": to_at - 1}
        most = MOST_CANDLES // CANDLES_PER_WEIGHT + 1
        page, _ = await self.ask(
            {"type": "candleSnapshot", "req": body},
            parse,
            most,
            lambda result: WEIGHT + result[1] // CANDLES_PER_WEIGHT + 1,
        )
        return page

    async def funding(self, symbol: str, from_at: Instant, to_at: Instant) -> pl.DataFrame:
        def parse(reply: Reply) -> tuple[pl.DataFrame, int]:
            rows = named_rows(reply.json(), ("time", "fundingRate"))
            for row in rows:
                if row.get("coin", symbol) != symbol:
                    raise MalformedReply(f"asked for funding of {symbol}, got {excerpt(str(row.get('coin')))}")
            timed = [{"at": on_the_hour(row["time"]), "value": row["fundingRate"]} for row in rows]
            fit = [row for row in timed if from_at <= row["at"] < to_at]
            return checked_points(fit, "funding", f"funding of {symbol}"), len(rows)

        body = {"type": "fundingHistory", "coin": symbol, "startTime": from_at, "endTime": to_at - 1}
        most = MOST_FUNDING // ROWS_PER_WEIGHT + 1
        return (await self.ask(body, parse, most, lambda result: WEIGHT + result[1] // ROWS_PER_WEIGHT + 1))[0]

    async def meta(self) -> tuple[pl.DataFrame, list[str], list[str]]:
        """The asset table, notes on what was assumed, and the symbols that can be traded now."""

        def parse(reply: Reply) -> tuple[pl.DataFrame, list[str], list[str]]:
            value = reply.json()
            try:
                frame, notes = meta_rows(value, "meta")
            except UserError as error:
                raise MalformedReply(error.message) from None
            if not isinstance(value, dict):
                raise MalformedReply("the reply is not one asset table")
            listed = [str(asset["name"]) for asset in value["universe"] if not asset.get("isDelisted")]
            return frame, notes, listed

        return await self.ask({"type": "meta"}, parse)

    async def present(self, symbols: tuple[str, ...], kinds: tuple[str, ...]) -> list[SeriesRows]:
        """Open interest, mark and oracle price at this moment."""

        def parse(reply: Reply) -> list[SeriesRows]:
            value = reply.json()
            try:
                states = dict(zip([asset["name"] for asset in value[0]["universe"]], value[1], strict=True))
            except (KeyError, IndexError, TypeError, ValueError):
                raise MalformedReply("the asset contexts have an unknown form") from None
            present: list[SeriesRows] = []
            for symbol in symbols:
                state = states.get(symbol)
                for kind in kinds:
                    amount = state.get(_NOW_KINDS[kind]) if isinstance(state, dict) else None
                    if amount is None:
                        continue
                    rows = [{"at": reply.asked_at, "value": amount}]
                    present.append(SeriesRows(kind, symbol, checked_points(rows, kind, f"{kind} of {symbol}")))
            return present

        return await self.ask({"type": "metaAndAssetCtxs"}, parse)


async def plan(request: DownloadRequest, fetcher: Fetcher) -> list[Task]:
    """The asset table first: it shows a mistyped symbol before any other request."""
    info = _Info(request.base_url or URL, fetcher)
    kinds = SOURCE.kinds_of(request)
    tasks: list[Task] = []
    symbols = request.symbols
    try:
        frame, notes, listed = await info.meta()
    except RequestRefused:
        if symbols == ("all",) or "meta" in request.kinds:
            raise  # the symbols are not known without the list
    else:
        symbols = tuple(listed) if symbols == ("all",) else symbols
        _must_be_listed(symbols, frame["symbol"].to_list())

        async def fetch(stored: StoredState) -> list[SeriesRows]:
            del stored
            return [SeriesRows("meta", None, frame, tuple(notes), replace=True)]

        tasks += [Single("asset table", "meta", fetch)] if "meta" in kinds else []
    for symbol in symbols:
        tasks += [_candles(info, symbol, interval) for interval in request.intervals if "bars" in kinds]
        tasks += [_funding(info, symbol)] if "funding" in kinds else []
    now = tuple(kind for kind in kinds if kind in _NOW_KINDS)
    if now:

        async def fetch_present(stored: StoredState) -> list[SeriesRows]:
            del stored
            return await info.present(symbols, now)

        tasks.append(Single("present state", now[0], fetch_present, optional=not request.kinds))
    return tasks


def _candles(info: _Info, symbol: str, interval: str) -> Ranged:
    step = interval_ms(interval)

    async def page(from_at: Instant, to_at: Instant) -> pl.DataFrame:
        return await info.candles(symbol, interval, from_at, to_at)

    # one less than the venue returns at once: it adds the bar that contains the start
    return Ranged("bars", symbol, interval, step, (MOST_CANDLES - 1) * step, page)


def _funding(info: _Info, symbol: str) -> Ranged:
    async def page(from_at: Instant, to_at: Instant) -> pl.DataFrame:
        return await info.funding(symbol, from_at, to_at)

    return Ranged("funding", symbol, None, HOUR_MS, MOST_FUNDING * HOUR_MS, page)


def _must_be_listed(symbols: tuple[str, ...], listed: list[str]) -> None:
    for symbol in symbols:
        if symbol not in listed and ":" not in symbol:  # `dex:COIN` is listed elsewhere
            raise UserError(f"Hyperliquid lists no {symbol!r}", suggestion(symbol, sorted(listed), "symbols:"))


SOURCE = DataSource(
    "hyperliquid",
    "hyperliquid",
    "candles, hourly funding, asset table with margin tiers, open interest as it is now",
    ("meta", "bars", "funding", "open_interest", "mark", "oracle"),
    ("meta", "bars", "funding", "open_interest"),
    ("symbols", "interval", "from"),
    plan,
    {"base-url": URL},
)
