"""The user message, one file a section. A section has a `PLACE` in the message and `render(observation, memo)`.

`render` gives the section's text, title included, or None to leave it out. A new section is a new file here and
nothing else. A section reads the observation only: it asks no clock, writes no number itself (that is
`prompt.render`) and lets no stranger's text through unfenced.
"""

import importlib
import pkgutil
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from pitboss.prompt import render
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.portfolio import PerpPortfolio
from pitboss.venues.perp.skill import PerpSkill

HIGHER_BARS = 50
"""Most bars shown of a higher timeframe."""

fenced = lru_cache(maxsize=512)(render.fence)
"""`render.fence`, once for each text: a thesis stays the same as long as its position."""


class Memo:
    """What sections keep from tick to tick: the skill's settings as plain values, and text that does not change.

    Everything in `kept` must be checked against what it was made from before it is used again, so that one memo can
    meet several markets; a section keeps its things there under its own name.
    """

    __slots__ = (
        "_account",
        "_observation",
        "events_enabled",
        "events_hours",
        "higher",
        "interval",
        "kept",
        "lookback",
        "memory_enabled",
        "memory_trades",
        "news_hours",
        "news_top_k",
        "symbols",
    )

    def __init__(self, skill: PerpSkill) -> None:
        shown = skill.context
        self.symbols = shown.sorted_symbols
        self.interval, self.lookback = shown.bars_interval, shown.bars_lookback
        self.higher = shown.timeframes()
        self.news_hours, self.news_top_k = shown.news_lookback_hours, shown.news_top_k
        self.events_enabled, self.events_hours = shown.events.enabled, shown.events.lookahead_hours
        self.memory_enabled, self.memory_trades = shown.memory.enabled, shown.memory.trades
        self.kept: dict[str, Any] = {}
        self._observation: Observation | None = None
        self._account: PerpPortfolio | None = None

    def account(self, observation: Observation) -> PerpPortfolio:
        """The account, worked out once a tick for all sections."""
        if self._account is None or self._observation is not observation:
            self._observation, self._account = observation, observation.portfolio()
        return self._account


Section = Callable[[Observation, Memo], str | None]


def signed(x: Decimal) -> str:
    """A result or a score, with its sign when it is above zero too."""
    return f"+{render.cents(x)}" if x.is_finite() and x > 0 else render.cents(x)


def price_or(x: Decimal | None, absent: str) -> str:
    """A price, or the word for its absence."""
    return absent if x is None else render.price(x)


@lru_cache(maxsize=1)
def sections() -> tuple[Section, ...]:
    """Every section's `render`, in the order of the message."""
    names = sorted(found.name for found in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return tuple(module.render for module in sorted(modules, key=lambda module: module.PLACE))
