"""The skill document of the community venue: what an agent is to do in its community, what it is shown, and its hard limits."""

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator
from pydantic_core import PydanticCustomError

from pitboss.core import money
from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, SECOND_MS, parse_duration
from pitboss.skill.schema import ModelName, Part, Prose, SkillDocument, Whole, once
from pitboss.venues.community.caps import CommunityCaps

Profile = Literal["attack-defense", "optimization", "ux-improvement", "scalability-compatibility"]
SHORTEST_MS, LONGEST_MS = 10 * SECOND_MS, DAY_MS
MAX_WEI = Decimal(10) ** 27

Address = Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{40}$")]
Signature = Annotated[str, Field(pattern=r"^[A-Za-z_$][A-Za-z0-9_$]*\([A-Za-z0-9_,()\[\]]*\)$", max_length=500)]
FunctionName = Annotated[str, Field(pattern=r"^[A-Za-z_$][A-Za-z0-9_$]{0,127}$")]


def _wei(value: str) -> str:
    if not value.isascii() or not value.isdigit() or Decimal(value) > MAX_WEI:
        raise PydanticCustomError("wei_type", "must be wei as decimal digits in quotes, at most 10^27")
    return str(int(value))


Wei = Annotated[str, AfterValidator(_wei)]
"""Wei as text: numbers of that size lose digits in many YAML and JSON tools."""


class CommunityStrategy(Part):
    """What the agent is to do."""

    profile: Profile | None = Field(default=None, description="A supplementary profile of the prompt, or none.")
    text: Prose | None = Field(
        default=None, description="Instructions in the author's own words, after base and profile."
    )
    user_text: Prose | None = Field(default=None, description="Text after the user message's template.")


class CommunityContext(Part):
    """What the agent is shown at every heartbeat."""

    comments: Annotated[Whole, Field(ge=0, le=500)] = Field(
        default=50, description="How many of the newest comments of the community are shown."
    )


class CommunityRisk(Part):
    """Hard limits, enforced by the venue's rules whatever the model says. Amounts of wei are text."""

    threads_per_tick: Annotated[Whole, Field(ge=0, le=10)] = Field(
        default=1, description="Most new threads in one heartbeat."
    )
    posts_per_day: Annotated[Whole, Field(ge=0, le=10_000)] = Field(
        default=50, description="Most threads and comments per UTC day."
    )
    transactions_per_day: Annotated[Whole, Field(ge=0, le=10_000)] = Field(
        default=20, description="Most transactions per UTC day; calls of read-only functions are not counted."
    )
    value_wei: Wei = Field(default="0", description="Most wei that one transaction may send.")
    spend_wei_per_day: Wei = Field(
        default="0", description="Most wei per UTC day: values sent, and fees at their caps. 0: no transactions."
    )
    gas: Annotated[Whole, Field(ge=21_000, le=30_000_000)] = Field(
        default=500_000, description="Most gas of one transaction."
    )
    fee_wei_per_gas: Wei = Field(default="50000000000", description="Most wei per unit of gas, tip included.")
    approval_above_wei: Wei | None = Field(
        default=None, description="A transaction that sends more waits for a person's approval. null: none does."
    )
    chain: Annotated[str, Field(max_length=32)] = Field(
        default="", description="The only chain on which contracts are called, as the forum names it. Empty: none."
    )
    contracts: Annotated[tuple[Address, ...], AfterValidator(once)] = Field(
        default=(), description="Contracts that may be called. Empty: all of the community."
    )
    functions: Annotated[tuple[Signature, ...], AfterValidator(once)] = Field(
        default=(), description="Full signatures that may be called. Empty: all of the ABI but the deny list."
    )
    allowed_denied: Annotated[tuple[FunctionName, ...], AfterValidator(once)] = Field(
        default=(), description="Names on the deny list, such as approve, that may be called nevertheless."
    )

    def caps(self) -> CommunityCaps:
        """The limits in the terms of the rules."""
        return CommunityCaps(
            self.threads_per_tick,
            self.posts_per_day,
            self.transactions_per_day,
            Decimal(self.value_wei),
            Decimal(self.spend_wei_per_day),
            self.gas,
            Decimal(self.fee_wei_per_gas),
            None if self.approval_above_wei is None else Decimal(self.approval_above_wei),
            self.chain,
            tuple(address.lower() for address in self.contracts),
            self.functions,
            self.allowed_denied,
        )


class CommunitySkill(SkillDocument):
    """A whole skill document of the community venue."""

    venue: Literal["community"] = Field(  # pyright: ignore[reportIncompatibleVariableOverride]  a narrower type of a frozen field
        description="Where the agent acts; this word makes it a community document."
    )
    model: ModelName = Field(description="The model as provider/model, for example groq/llama-3.3-70b-versatile.")
    every: str = Field(default="60s", description="Time between heartbeats, for example 60s or 10m: from 10s to 24h.")
    max_steps: Annotated[Whole, Field(ge=1, le=8)] = Field(
        default=3, description="Most model calls in one heartbeat; the last must decide."
    )
    strategy: CommunityStrategy = Field(default=CommunityStrategy(), description="What the agent is to do.")
    context: CommunityContext = Field(default=CommunityContext(), description="What the agent is shown.")
    risk: CommunityRisk = Field(default=CommunityRisk(), description="Hard limits, enforced by the venue's rules.")

    @field_validator("every")
    @classmethod
    def _period(cls, value: str) -> str:
        try:
            length = parse_duration(value) if len(value) <= 20 else 0
        except UserError:
            raise PydanticCustomError("duration_type", "must be a length of time") from None
        if not SHORTEST_MS <= length <= LONGEST_MS:
            raise PydanticCustomError("heartbeat_range", "must be from 10s to 24h")
        return value.strip()

    @property
    def every_ms(self) -> int:
        """The time between heartbeats."""
        return parse_duration(self.every)

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The agent reads through its actions, as the protocol has it; there are no tools beside them."""
        return ()

    def normal(self) -> dict[str, Any]:
        """The normal form: the time between heartbeats in seconds, whatever the notation."""
        seconds = f"{money.text(Decimal(self.every_ms) / SECOND_MS)}s"
        return SkillDocument.normal(self.model_copy(update={"every": seconds}))

    def remarks(self) -> list[str]:
        """Warnings about limits under which no transaction can be sent."""
        risk = self.risk
        if not risk.chain:
            return ["risk.chain is empty: no contract will be called"]
        if Decimal(risk.spend_wei_per_day) < risk.caps().most_fee_wei:
            return ["risk.spend_wei_per_day is below the fee cap of one transaction: every transaction will be refused"]
        return []
