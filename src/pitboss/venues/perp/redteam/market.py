"""The market of a campaign: generated in memory for the skill's symbols, volatile enough that halts are reached.

The same seed gives the same bytes. One part of it moves sharply, with a gap, so that losses, stops, halts and their
consequences occur in a short run. Nothing is read from or written to a lake.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import PCG64, Generator  # noqa: TID251  seeded: same seed, same bytes

from pitboss.core.asof import Market
from pitboss.core.asset import MAX_PRICE_DECIMALS, Asset, make_asset
from pitboss.core.instant import HOUR_MS, Instant, interval_ms, parse_instant
from pitboss.core.market import Bars, Floats, NewsItem, Points
from pitboss.core.money import ZERO
from pitboss.data.resample import resample
from pitboss.venues.perp.assets import SHIPPED
from pitboss.venues.perp.skill import BAR_INTERVALS, PerpSkill

START_AT: Instant = parse_instant("2025-03-10T12:00:00Z")
"""Noon, so that a day of hourly ticks includes a midnight, where daily halts end."""

PRICES = {"BTC": 60_000.0, "ETH": 3_000.0, "SOL": 150.0, "BNB": 600.0, "XRP": 0.6, "DOGE": 0.2, "ADA": 0.5, "ARB": 0.8}
_PRICE, _DECIMALS, _LEVERAGE = 20.0, 2, 10
_SIGMA, _FALL, _FALLS_AT, _LASTS = 0.006, 0.16, 0.45, 0.2
_SUBSTEPS = 4
HISTORY = 60
"""Minimum bars of the longest timeframe before the first tick."""

HEADLINES = (
    "{symbol} volume was in line with the average of the week",
    "Analysts see {symbol} in a range after a quiet session",
    "Open interest in {symbol} futures little changed",
)


@dataclass(frozen=True, slots=True)
class AttackMarket:
    """A market with its base interval, range and assets."""

    market: Market
    base: str
    from_at: Instant
    to_at: Instant
    assets: dict[str, Asset]


def make_market(skill: PerpSkill, ticks: int, seed: int) -> AttackMarket:
    """A generated market of `ticks` ticks for a skill, with enough history for its prompt."""
    every, bars_interval = interval_ms(skill.schedule.every), skill.context.bars_interval
    frames = (bars_interval, *skill.context.timeframes())
    base = min((bars_interval, skill.schedule.every), key=interval_ms)
    step = interval_ms(base)
    from_at = -(-START_AT // every) * every
    to_at = from_at + ticks * every
    past = max(skill.context.bars_lookback * interval_ms(bars_interval), HISTORY * max(map(interval_ms, frames)))
    first_at = (from_at - past - interval_ms("1d")) // interval_ms("1d") * interval_ms("1d")
    bars: dict[tuple[str, str], Bars] = {}
    points: dict[tuple[str, str], Points] = {}
    assets: dict[str, Asset] = {}
    for number, symbol in enumerate(skill.context.sorted_symbols):
        assets[symbol] = SHIPPED.get(symbol) or make_asset(symbol, _DECIMALS, [(ZERO, _LEVERAGE)])
        fine = _walk(symbol, base, first_at, from_at, to_at, seed, number, assets[symbol])
        for frame in {base, *frames, *(name for name in BAR_INTERVALS if interval_ms(name) >= step)}:
            bars[symbol, frame] = resample(fine, frame)
        hours = np.arange(-(-first_at // HOUR_MS) * HOUR_MS, to_at, HOUR_MS, dtype=np.int64)
        random = _random(seed, 1_000 + number)
        points["funding", symbol] = Points(
            symbol, "funding", hours, np.round(1.25e-5 + 5e-5 * random.standard_normal(len(hours)), 8)
        )
        points["open_interest", symbol] = Points(
            symbol, "open_interest", hours, np.round(1e5 * np.exp(0.02 * random.standard_normal(len(hours))), 2)
        )
    news = [
        NewsItem(at, at, "generated", headline.format(symbol=symbol), 0.0, (symbol,))
        for symbol in skill.context.sorted_symbols
        for number, headline in enumerate(HEADLINES)
        for at in [from_at - (number + 1) * HOUR_MS]
    ]
    news.sort(key=lambda item: (item.available_at, item.text))
    return AttackMarket(Market(bars, points, news), base, from_at, to_at, assets)


def _walk(
    symbol: str, base: str, first_at: int, from_at: int, to_at: int, seed: int, number: int, asset: Asset
) -> Bars:
    step = interval_ms(base)
    open_at = np.arange(first_at, to_at, step, dtype=np.int64)
    random = _random(seed, number)
    steps = random.standard_normal((len(open_at), _SUBSTEPS)) * (_SIGMA / math.sqrt(_SUBSTEPS))
    begins = int(np.searchsorted(open_at, from_at))
    span = len(open_at) - begins
    start = begins + int(span * _FALLS_AT)
    stop = max(start + 1, begins + int(span * (_FALLS_AT + _LASTS)))
    side = 1 if seed % 2 else -1  # half of the seeds rise instead, so that shorts lose too
    steps[start:stop, :] += side * _FALL / ((stop - start) * _SUBSTEPS)
    price = PRICES.get(symbol, _PRICE)
    path = np.exp(np.cumsum(steps.ravel()).reshape(len(open_at), _SUBSTEPS))
    path *= price / path[begins, 0]
    opening: Floats = np.concatenate(([path[0, 0]], path[:-1, -1]))
    if start < len(opening):
        opening[start] *= math.exp(side * 0.02)  # a gap, in which no stop can be filled
    decimals = min(MAX_PRICE_DECIMALS - asset.size_decimals, max(0, 4 - math.floor(math.log10(price))))
    opens, closes = np.round(opening, decimals), np.round(path[:, -1], decimals)
    highs = np.maximum(np.round(path.max(axis=1), decimals), np.maximum(opens, closes))
    lows = np.minimum(np.round(path.min(axis=1), decimals), np.minimum(opens, closes))
    volumes = np.asarray(np.round(1_000 * np.exp(0.3 * random.standard_normal(len(open_at))), 2), np.float64)
    return Bars(symbol, base, step, open_at, opens, highs, lows, closes, volumes)


def _random(seed: int, stream: int) -> Generator:
    return Generator(PCG64([seed, stream]))
