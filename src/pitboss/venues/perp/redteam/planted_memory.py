"""The memory of a perp agent as an attacker writes it: lessons, trade history, the thesis of a position."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from pitboss.core.asset import Asset
from pitboss.core.codec import printable
from pitboss.core.instant import HOUR_MS, Instant
from pitboss.core.money import ZERO, round_down
from pitboss.core.state import State
from pitboss.redteam.injection_points import with_last_decision
from pitboss.venues.perp.state import Position
from pitboss.venues.perp.trade_memory import ClosedTrade, LessonNotes, PerpMemory

CLOSED_TRADES = 10_000
"""A count of closed trades at which lessons are due for every skill."""


def with_memory(state: State, text: str, assets: Mapping[str, Asset], at: Instant, share: Decimal) -> State:
    """A state whose history was written by the attacker, including a small position."""
    planted = printable(text)
    symbol = min(assets)
    trade = ClosedTrade(symbol, "long", at - 2 * HOUR_MS, at - HOUR_MS, Decimal("12.5"), planted, thesis=planted)
    # Lessons are due at once, so the model that writes them reads the text too.
    memory = PerpMemory(trades=(trade,), notes=LessonNotes(planted, sizing=planted[-280:]), closed=CLOSED_TRADES)
    world = state.world
    mark = world.marks.get(symbol)
    size = ZERO if mark is None else round_down(share * world.cash / 100 / mark, assets[symbol].lot)
    if mark is not None and size > 0:
        position = Position(symbol, size, size * mark, at - 3 * HOUR_MS, thesis=planted)
        world = replace(world, positions={symbol: position})
    return with_last_decision(replace(state, world=world, memory=memory), text, at)
