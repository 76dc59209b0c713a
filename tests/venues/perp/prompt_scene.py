"""A small market, account and skill, built by hand, for the tests of what an agent is shown."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

from pitboss.core.asof import Market
from pitboss.core.instant import INTERVALS, MINUTE_MS, parse_instant
from pitboss.core.market import Bars, CalendarEvent, NewsItem
from pitboss.core.state import LastDecision
from pitboss.venues.perp.assets import SHIPPED
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.skill_caps import caps_of
from pitboss.venues.perp.state import PerpWorld, Position, TradingTerms, WorkingOrder, open_world
from pitboss.venues.perp.trade_memory import NO_MEMORY, PerpMemory

START = parse_instant("2025-06-01")
NOW = parse_instant("2025-06-03T12:00:00Z")
TERMS = TradingTerms(SHIPPED)
DAY = NOW // 86_400_000


def bars_of(symbol: str, interval: str, closes: Sequence[float], start: int = START) -> Bars:
    """Bars with these closes; each opens at the close before, highs and lows one beyond."""
    length, close = INTERVALS[interval], np.array(closes, dtype=np.float64)
    first = np.concatenate((close[:1], close[:-1]))
    return Bars(
        symbol,
        interval,
        length,
        start + length * np.arange(len(close), dtype=np.int64),
        first,
        np.maximum(first, close) + 1.0,
        np.minimum(first, close) - 1.0,
        close,
        np.arange(len(close)) % 7 + 0.5,
    )


def wave(count: int, level: float, seed: int) -> list[float]:
    """A seeded walk around a level."""
    steps = np.random.default_rng(seed).normal(0, 0.002, count)
    return [round(float(price), 2) for price in level * np.exp(np.cumsum(steps))]


def market_of(
    symbols: Sequence[str] = ("BTC", "ETH"),
    news: Sequence[NewsItem] = (),
    events: Sequence[CalendarEvent] = (),
    seed: int = 1,
) -> Market:
    """Four days of 15m, 1h and 4h bars from START: past and future of NOW."""
    bars = {
        (symbol, interval): bars_of(symbol, interval, wave(count, level, seed + number))
        for symbol, level in (("BTC", 100_000.0), ("ETH", 3_000.0), ("SOL", 150.0))
        if symbol in symbols
        for number, (interval, count) in enumerate((("15m", 384), ("1h", 96), ("4h", 24)))
    }
    return Market(
        bars,
        news=sorted(news, key=lambda item: item.available_at),
        events=sorted(events, key=lambda event: event.known_at),
    )


def skill_of(**changes: Any) -> PerpSkill:
    """A valid skill; `context`, `schedule` and `risk` are merged into the defaults here."""
    document: dict[str, Any] = {
        "name": "breakout",
        "model": "standin/analyst",
        "schedule": {"every": "15m"} | changes.pop("schedule", {}),
        "strategy": {"thesis": "Funding resets precede breakouts.", "avoid": "Do not trade before the halving."},
        "context": {"symbols": ["BTC"], "bars_interval": "15m", "bars_lookback": 3} | changes.pop("context", {}),
    }
    return PerpSkill.model_validate(document | changes)


@dataclass
class Scene:
    """Everything an observation is made from, with defaults; `observe` makes one."""

    skill: PerpSkill = field(default_factory=skill_of)
    market: Market = field(default_factory=market_of)
    at: int = NOW
    cash: str = "10000"
    positions: Sequence[Position] = ()
    orders: Sequence[WorkingOrder] = ()
    marks: dict[str, str] = field(default_factory=lambda: {"BTC": "100000", "ETH": "3000", "SOL": "150"})
    mark_age_ms: int = 0
    leverage: dict[str, int] = field(default_factory=dict)
    halts: tuple[Any, ...] = ()
    accepted_opens: Sequence[int] = ()
    last: LastDecision | None = None
    memory: PerpMemory = NO_MEMORY
    peak: str = "10000"
    day_start: str = "10000"

    def world(self) -> PerpWorld:
        fresh = open_world(Decimal(self.cash), DAY)
        return PerpWorld(
            fresh.cash,
            fresh.initial,
            Decimal(self.peak),
            DAY,
            Decimal(self.day_start),
            fresh.cash,
            positions={position.symbol: position for position in self.positions},
            orders=tuple(self.orders),
            leverage=self.leverage,
            marks={symbol: Decimal(mark) for symbol, mark in self.marks.items()},
            marked_at=dict.fromkeys(self.marks, self.at - self.mark_age_ms),
            halts=self.halts,
        )

    def observe(self) -> Observation:
        return Observation(
            self.at,
            START,
            self.skill,
            self.market.view(self.at),
            self.world(),
            TERMS,
            caps_of(self.skill),
            self.accepted_opens,
            self.last,
            self.memory,
        )


def make_position(symbol: str, size: str, entry: str, **more: Any) -> Position:
    """A position opened three hours before NOW."""
    amount = Decimal(size)
    return Position(symbol, amount, amount * Decimal(entry), NOW - 180 * MINUTE_MS, **more)


def headline(text: str, minutes_ago: int = 10, source: str = "wire", **more: Any) -> NewsItem:
    """News published and available this many minutes before NOW."""
    at = NOW - minutes_ago * MINUTE_MS
    return NewsItem(at, at, source, text, **more)
