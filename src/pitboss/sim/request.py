"""What every backtest is asked for, whatever its venue, and what comes of putting one together.

A request is everything needed to start the same run again from nothing; it is stored with the run, so that resume and
verify need no other input than the lake. Each venue adds its own fields: `venues/perp/assembly.py` those of perps,
`venues/predict/assembly.py` those of the predict venue.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pitboss.core.instant import Instant


@dataclass(frozen=True, slots=True)
class BacktestRequest:
    """What was asked for. `decisions` is the text of a decisions file, when one replaces the model."""

    skill: Mapping[str, Any]
    from_at: Instant
    to_at: Instant
    model: str = ""
    decisions: str | None = None
    data_venue: str = ""
    equity_usd: Decimal = Decimal(10_000)
    seed: int = 0
    prompts: bool | None = None
    max_gap: int = 12
    max_cost_usd: Decimal | None = None
    price_in: Decimal | None = None
    price_out: Decimal | None = None
    any_price: bool = False
    speculate: str = "auto"
    max_waste_pct: Decimal = Decimal(35)
    repeat: int = 0
    """Which repeat of the same question this run asks: a cached answer serves the same repeat only."""
    blind: bool = False
    """Whether the model sees names, dates and prices in disguise only."""

    @property
    def source(self) -> str:
        """Who decides, as it is shown: a model's name, or that a file did."""
        return "decisions" if self.decisions is not None else self.model or str(self.skill.get("model", ""))


@dataclass(frozen=True, slots=True, eq=False)
class PreparedRun:
    """A backtest ready to run. `skill` and `script` are the venue's own; the script is a `sim.course.Course`."""

    request: BacktestRequest
    skill: Any
    script: Any
    venue: str
    """Whose data it runs on."""
    data_digest: str
    synthetic: bool
