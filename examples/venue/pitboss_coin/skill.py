"""The skill document of the coin venue."""

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from pitboss.core.instant import interval_ms
from pitboss.skill.schema import Name, Number, Prose, SkillDocument


class CoinSkill(SkillDocument):
    """A whole skill document of the coin venue."""

    venue: Literal["coin"] = Field(description="Where the agent acts.")
    strategy: Prose = Field(description="What the agent is to do, in words.")
    every: Literal["5m", "15m", "1h", "4h", "1d"] = Field(default="1h", description="Time between ticks and bars.")
    symbol: Name = Field(default="BTC", description="The symbol whose bars are the coin.")
    max_stake: Annotated[Number, Field(gt=0, le=1_000_000)] = Field(
        default=Decimal(5), description="Largest stake of one bet, in USD."
    )

    @property
    def every_ms(self) -> int:
        """The time between ticks."""
        return interval_ms(self.every)

    @property
    def tool_names(self) -> tuple[str, ...]:
        """Every agent may look at past flips."""
        return ("past_flips",)
