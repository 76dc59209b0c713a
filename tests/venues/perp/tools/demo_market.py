"""The demo market for tests of market tools, and the same market cut off or spoiled at an instant."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from pitboss.core.asof import Market
from pitboss.core.instant import parse_instant
from pitboss.core.market import Bars, Points
from pitboss.core.past import NO_RECORDINGS, Recordings
from pitboss.data.demo import write_demo
from pitboss.data.feed import load_market
from pitboss.data.lake import Lake
from pitboss.tools.define import Mode, ToolContext
from pitboss.tools.registry import lookup
from pitboss.venues.perp.state import PerpWorld
from pitboss.venues.perp.venue import VENUE
from venues.perp.scene import make_skill, make_world, observe, run_sync

SYMBOLS = ("BTC", "ETH", "SOL")
SKILL = make_skill(SYMBOLS)
END = parse_instant("2025-04-01")
AT = parse_instant("2025-03-25T12:00:00Z")
"""Midway, with ten days of history."""

FLAT = make_world()


@cache
def load_demo_market() -> Market:
    with TemporaryDirectory() as folder:
        lake = Lake(Path(folder) / "lake")
        write_demo(lake, days=17)
        market = load_market(lake, "demo", SYMBOLS, ["5m"], END)
        bars = {(symbol, name): market.bars[symbol, name] for symbol in SYMBOLS for name in ("5m", "1h", "4h")}
        return Market(bars, dict(market.points), tuple(market.news), tuple(market.events))


def market_until(market: Market, at: int) -> Market:
    """The market without everything that is known only after an instant."""
    return replace(
        market,
        bars={key: one.slice(0, int((one.open_at + one.interval_ms <= at).sum())) for key, one in market.bars.items()},
        points={key: _points(points, points.at <= at) for key, points in market.points.items()},
        news=tuple(item for item in market.news if item.available_at <= at),
        events=tuple(event for event in market.events if event.known_at <= at),
    )


def market_with_other_future(market: Market, at: int, factor: float) -> Market:
    """The market with the same past and another future."""
    points = {
        key: Points(each.symbol, each.kind, each.at, np.where(each.at > at, each.value * factor, each.value))
        for key, each in market.points.items()
    }
    news = tuple(item if item.available_at <= at else replace(item, text="LEAK", symbols=()) for item in market.news)
    return Market({key: _later(bars, at, factor) for key, bars in market.bars.items()}, points, news)


def _points(points: Points, known: Any) -> Points:
    return Points(points.symbol, points.kind, points.at[known], points.value[known])


def _later(bars: Bars, at: int, factor: float) -> Bars:
    later = bars.open_at + bars.interval_ms > at
    columns = [
        np.where(later, column * factor, column) for column in (bars.open, bars.high, bars.low, bars.close, bars.volume)
    ]
    return Bars(bars.symbol, bars.interval, bars.interval_ms, bars.open_at, *columns)


def call(
    name: str,
    arguments: Mapping[str, Any],
    market: Market | None = None,
    at: int = AT,
    world: PerpWorld = FLAT,
    skill: Any = SKILL,
    recordings: Recordings = NO_RECORDINGS,
    mode: Mode = "write",
) -> str:
    observation = observe(market or load_demo_market(), at, world, skill)
    return run_sync(
        lookup(VENUE.tools(), name).build(ToolContext(observation, mode, recordings=recordings)).call(dict(arguments))
    )
