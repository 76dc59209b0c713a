"""The request of a backtest, common to all venues.

A request is everything needed to start the same run again; it is stored with the run, so that resume and verify need
no other input than the lake. Each venue adds its own fields in `venues/<name>/request.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant


@dataclass(frozen=True, slots=True)
class BacktestRequest:
    """A backtest as it was requested. `decisions` is the text of a decisions file, when one replaces the model."""

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
    """Number of this repeat of the same request: a cached reply serves the same repeat only."""
    blind: bool = False
    """Whether names, dates and prices are anonymised for the model."""
    disguise: Mapping[str, Any] | None = None
    """The stored mapping of a blind run; None before the run begins."""

    @property
    def source(self) -> str:
        """The name of the model, or `decisions` for a file."""
        return "decisions" if self.decisions is not None else self.model or str(self.skill.get("model", ""))

    @property
    def is_program(self) -> bool:
        """Whether a policy or a file decides, which needs no prompt and can plan its holds."""
        return self.decisions is not None or self.source.startswith("policy/")

    @property
    def builds_prompts(self) -> bool:
        """Whether prompts are built: always for models, for programs only on request."""
        return bool(self.prompts) if self.is_program else True


def check_range(request: BacktestRequest) -> None:
    """Refuse an empty range and an account without money."""
    if request.to_at <= request.from_at:
        raise UserError("the range is empty: --to is not after --from", "swap them, or choose a later --to")
    if request.equity_usd <= 0:
        raise UserError("equity must be above zero", "for example --equity 10000")
