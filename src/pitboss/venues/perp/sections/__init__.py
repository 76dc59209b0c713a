"""The sections of the user message, one module each, with a `PLACE` in the message and `render(observation, memo)`.

`render` returns the section's text including its title, or None to leave the section out. A new section is a new module
here and nothing else. A section reads only the observation: it reads no clock, formats no numbers itself
(`prompt.render` does) and puts all text from outside the run inside a data fence.
"""

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from pitboss.agent.prompt import sections_of
from pitboss.prompt import render
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.portfolio import PerpPortfolio
from pitboss.venues.perp.skill import PerpSkill

HIGHER_BARS = 50
"""Maximum number of bars shown of a higher timeframe."""

fenced = lru_cache(maxsize=512)(render.fence)
"""`render.fence` with a cache by text: a thesis stays the same for as long as its position."""


class Memo:
    """State that sections keep between ticks: the skill's settings as plain values, and cached text.

    A section caches under its own name in `cache` and must check an entry against the objects it was made from before
    reusing it, so that one memo can serve several markets.
    """

    __slots__ = (
        "_account",
        "_observation",
        "cache",
        "events_enabled",
        "events_hours",
        "higher",
        "interval",
        "lookback",
        "memory_enabled",
        "memory_trades",
        "news_hours",
        "news_top_k",
        "symbols",
    )

    def __init__(self, skill: PerpSkill) -> None:
        context = skill.context
        self.symbols = context.sorted_symbols
        self.interval, self.lookback = context.bars_interval, context.bars_lookback
        self.higher = context.timeframes()
        self.news_hours, self.news_top_k = context.news_lookback_hours, context.news_top_k
        self.events_enabled, self.events_hours = context.events.enabled, context.events.lookahead_hours
        self.memory_enabled, self.memory_trades = context.memory.enabled, context.memory.trades
        self.cache: dict[str, Any] = {}
        self._observation: Observation | None = None
        self._account: PerpPortfolio | None = None

    def account(self, observation: Observation) -> PerpPortfolio:
        """Return the portfolio, computed once per tick for all sections."""
        if self._account is None or self._observation is not observation:
            self._observation, self._account = observation, observation.portfolio()
        return self._account


Section = Callable[[Observation, Memo], str | None]


def signed(x: Decimal) -> str:
    """Format a result or a score, with a plus sign if it is above zero."""
    return f"+{render.cents(x)}" if x.is_finite() and x > 0 else render.cents(x)


def price_or(x: Decimal | None, absent: str) -> str:
    """Format a price, or return `absent` if there is none."""
    return absent if x is None else render.price(x)


@lru_cache(maxsize=1)
def sections() -> tuple[Section, ...]:
    """Return the `render` function of every section, in message order."""
    return sections_of(__name__)
