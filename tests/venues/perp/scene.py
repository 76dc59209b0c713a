"""Small markets, accounts and observations for tests of policies, tools and the stand-in."""

from collections.abc import Awaitable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar, cast

import numpy as np

from pitboss.core.asof import Market
from pitboss.core.instant import INTERVALS
from pitboss.core.market import Bars, NewsItem
from pitboss.core.state import LastDecision, State
from pitboss.core.verdict import Verdict
from pitboss.venues.perp.assets import SHIPPED
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.skill_caps import caps_of
from pitboss.venues.perp.state import PerpWorld, Position, TradingTerms, WorkingOrder
from pitboss.venues.perp.testing import judge as guard
from pitboss.venues.perp.trade_memory import NO_MEMORY

START = 1_748_736_000_000
"""2025-06-01T00:00:00Z."""

STEP = INTERVALS["5m"]
TERMS = TradingTerms(assets=SHIPPED)

T = TypeVar("T")


def run_sync(answer: Awaitable[T]) -> T:
    """The result of a coroutine that never waits for anything."""
    try:
        cast("Any", answer).send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waited")


def make_skill(symbols: Sequence[str] = ("BTC",), interval: str = "5m", **parts: Any) -> PerpSkill:
    return PerpSkill.model_validate(
        {
            "name": "test",
            "model": "standin/analyst",
            "schedule": {"every": "5m"},
            "strategy": {"thesis": "trends go on", "avoid": "chasing"},
            "context": {"symbols": tuple(symbols), "bars_interval": interval, "bars_lookback": 60},
            **parts,
        }
    )


def make_bars(symbol: str, closes: Sequence[float], interval: str = "5m", start: int = START) -> Bars:
    """Bars one after the other, each opening at the close before it."""
    step = INTERVALS[interval]
    close = np.array(closes, np.float64)
    first = np.concatenate((close[:1], close[:-1]))
    return Bars(
        symbol,
        interval,
        step,
        start + step * np.arange(len(close), dtype=np.int64),
        first,
        np.maximum(first, close) * 1.001,
        np.minimum(first, close) * 0.999,
        close,
        np.full(len(close), 12.5),
    )


def make_market(closes: Mapping[str, Sequence[float]], interval: str = "5m", news: Sequence[NewsItem] = ()) -> Market:
    return Market(
        {(symbol, interval): make_bars(symbol, prices, interval) for symbol, prices in closes.items()}, news=news
    )


def make_world(
    sides: Mapping[str, int] | None = None,
    working: Mapping[str, str] | None = None,
    equity: str = "10000",
    mark: str = "100",
) -> PerpWorld:
    """An account with one-coin positions at mark (so equity is cash), and working orders by symbol and kind."""
    sizes, price = sides or {}, Decimal(mark)
    cash = Decimal(equity)
    orders = tuple(
        WorkingOrder(f"o{number}", cast("Any", kind), symbol, 1, Decimal(1), START, START)
        for number, (symbol, kind) in enumerate(sorted((working or {}).items()), 1)
    )
    return PerpWorld(
        cash=cash,
        initial=cash,
        peak=cash,
        day=START // 86_400_000,
        day_reference=cash,
        last_equity=cash,
        positions={
            s: Position(s, Decimal(side), Decimal(side) * price, START) for s, side in sorted(sizes.items()) if side
        },
        orders=orders,
        marks=dict.fromkeys(SHIPPED, price),
        marked_at=dict.fromkeys(SHIPPED, START),
    )


def observe(
    market: Market,
    at: int,
    world: PerpWorld | None = None,
    skill: PerpSkill | None = None,
    last: LastDecision | None = None,
    started_at: int = START,
) -> Observation:
    skill = skill or make_skill()
    return Observation(
        at, started_at, skill, market.view(at), world or make_world(), TERMS, caps_of(skill), (), last, NO_MEMORY
    )


def judge_of(observation: Observation) -> Any:
    """The verdict of the real engine on an intent at this observation."""
    state = State(observation.world, memory=NO_MEMORY)

    def judge(intent: Any) -> Verdict:
        return guard(observation.limits, observation.terms, state, intent, observation.at).verdict

    return judge


def fail_if_judged(intent: Any) -> Verdict:
    """A judge for deciders that must not call it."""
    raise AssertionError("the engine was asked")
