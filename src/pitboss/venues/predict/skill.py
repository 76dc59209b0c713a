"""The skill document of the predict venue: mandate, markets, tools and hard caps of an agent on binary markets.

`skill.load` replaces a mandate stored in a file by its text, so a `PredictSkill` never refers to a file.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal, cast, get_args

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, field_validator
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import ValidationInfo

from pitboss.core import money
from pitboss.core.errors import UserError
from pitboss.core.instant import HOUR_MS, SECOND_MS, parse_duration
from pitboss.core.suggestion import did_you_mean, nearest_spelling
from pitboss.skill.explain import show
from pitboss.skill.schema import FileInclusion, ModelName, Name, Number, Part, Prose, SkillDocument, Whole, once

Mandate = Literal["momentum", "contrarian", "calibrated"]
Tier = Literal["15m", "1h", "1d", "1w"]
Tool = Literal["list_btc_markets", "list_strikes", "recent_fills", "btc_candles", "get_my_positions", "quote"]

MANDATES: tuple[Mandate, ...] = get_args(Mandate)
"""Names of the shipped mandates; their texts are in `venues/predict/mandates`."""
TIERS: tuple[Tier, ...] = get_args(Tier)
"""The tiers, finest first."""
TOOLS: tuple[Tool, ...] = get_args(Tool)
MANDATE_FILE = ".md"
UNDERLYING = "BTC"
"""The only underlying of the operator's schedule."""

SHORTEST_MS = 10 * SECOND_MS
LONGEST_MS = HOUR_MS


def _period(value: object) -> object:
    if not isinstance(value, str) or len(value) > 20:
        raise PydanticCustomError("duration_type", "must be a length of time")
    try:
        length = parse_duration(value)
    except UserError:
        raise PydanticCustomError("duration_type", "must be a length of time") from None
    if not SHORTEST_MS <= length <= LONGEST_MS:
        raise PydanticCustomError("duration_range", "must be from 10s to 1h")
    return value.strip()


def _mandate(value: object) -> object:
    if value in MANDATES:
        return value
    message = f"must be {', '.join(MANDATES)} or the path of a {MANDATE_FILE} file, not {show(value)}"
    closest = nearest_spelling(value, MANDATES) if isinstance(value, str) else None
    hint = did_you_mean(closest, "a mandate in your own words goes into text")
    raise PydanticCustomError("mandate_name", "{message}", {"message": message, "hint": hint})


Period = Annotated[
    str, BeforeValidator(_period), Field(json_schema_extra={"pattern": r"^\s*\d+(\.\d+)?(ms|s|m|h)\s*$"})
]
MandateName = Annotated[
    Mandate,
    BeforeValidator(_mandate),
    WithJsonSchema({"anyOf": [{"enum": list(MANDATES)}, {"type": "string", "pattern": r"\.[mM][dD]$"}]}),
]
Amount = Annotated[Number, Field(ge=0, le=1_000_000_000)]


class PredictSchedule(Part):
    """When the agent is asked."""

    every: Period = Field(default="60s", description="Time between ticks, for example 60s or 5m: from 10s to 1h.")

    @property
    def every_ms(self) -> int:
        """Return the time between ticks in milliseconds."""
        return parse_duration(self.every)


class PredictStrategy(Part):
    """What the agent is to do: a mandate by name, or in the author's own words."""

    mandate: MandateName | None = Field(
        default=None,
        description="A shipped mandate (momentum, contrarian or calibrated), or the path of a .md file beside the "
        "document, at most 20,000 characters long. The file's text counts, not its name: it is as if it stood in text.",
    )
    text: Prose | None = Field(
        default=None,
        validate_default=True,
        description="The mandate in the author's own words. Either mandate or text is given, not both.",
    )

    @field_validator("text")
    @classmethod
    def _one_of_the_two(cls, value: str | None, info: ValidationInfo) -> str | None:
        if "mandate" not in info.data:
            return value  # invalid in itself: validation reports it
        mandate = cast("str | None", info.data["mandate"])
        if value is None and mandate is None:
            raise PydanticCustomError("no_mandate", "is missing: there is no mandate either")
        if value is not None and mandate is not None:
            raise PydanticCustomError("two_mandates", "is given together with mandate")
        return value


class PredictTools(Part):
    """What the agent may look at. submit_decision is always offered."""

    built_in: Annotated[tuple[Tool, ...], AfterValidator(once)] = Field(
        default=TOOLS, description="Built-in tools that the agent may call; submit_decision is always offered."
    )


class PredictContext(Part):
    """What the agent is shown at every tick."""

    underlying: Name = Field(default="BTC", description="The asset whose markets the agent sees and may mint.")
    tiers: Annotated[tuple[Tier, ...], Field(min_length=1), AfterValidator(once)] = Field(
        default=TIERS, description="The markets that are shown, by the rhythm of their expiries; at least one."
    )
    candles_minutes: Annotated[Whole, Field(ge=1, le=1_440)] = Field(
        default=60, description="How many minutes of one-minute candles are shown."
    )

    def sorted_tiers(self) -> tuple[Tier, ...]:
        """Return the tiers finest first, the order in which they are always used."""
        return tuple(sorted(self.tiers, key=TIERS.index))


class PredictRisk(Part):
    """Hard caps, enforced by the venue's rules whatever the model says. Amounts are in quote units (DUSDC)."""

    max_spend_per_tick: Amount = Field(
        default=Decimal(2), description="Most that one tick may spend, in DUSDC; a larger mint is reduced to it."
    )
    max_spend_per_day: Amount = Field(
        default=Decimal(50), description="Most that one UTC day may spend on mints, in DUSDC."
    )
    max_total_spend: Amount = Field(default=Decimal(200), description="Most that the agent may ever spend, in DUSDC.")
    max_exposure_per_expiry: Amount = Field(
        default=Decimal(50), description="Most that open contracts of one expiry may have cost, in DUSDC."
    )
    max_slippage_bps: Annotated[Whole, Field(ge=0, le=10_000)] = Field(
        default=200,
        description="How far the executed ask may lie above the ask shown at the tick, in basis points.",
    )
    min_edge: Annotated[Number, Field(ge=0, le=1)] | None = Field(
        default=None, description="Least confidence less ask at which a mint is accepted, 0 to 1. null: not tested."
    )
    min_seconds_to_expiry: Annotated[Number, Field(ge=0, le=604_800)] = Field(
        default=Decimal(60), description="A market that expires sooner than this, in seconds, is not minted."
    )
    max_price_age_s: Annotated[Number, Field(gt=0, le=86_400)] = Field(
        default=Decimal(30), description="Oldest price, in seconds, on which a mint is accepted."
    )


class PredictSkill(SkillDocument):
    """A whole skill document of the predict venue."""

    venue: Literal["predict"] = Field(  # pyright: ignore[reportIncompatibleVariableOverride]  a narrower type of a frozen field
        description="Where the agent acts; this word makes it a predict document."
    )
    model: ModelName = Field(description="The model as provider/model, for example groq/llama-3.3-70b-versatile.")
    max_steps: Annotated[Whole, Field(ge=1, le=8)] = Field(
        default=8, description="Most model calls in one tick; the last must decide."
    )
    schedule: PredictSchedule = Field(default=PredictSchedule(), description="When the agent is asked.")
    strategy: PredictStrategy = Field(
        description="What the agent is to do: a mandate by name, or in the author's own words."
    )
    tools: PredictTools = Field(default=PredictTools(), description="What the agent may look at.")
    context: PredictContext = Field(default=PredictContext(), description="What the agent is shown at every tick.")
    risk: PredictRisk = Field(
        default=PredictRisk(), description="Hard caps, enforced by the venue's rules. Amounts are in DUSDC."
    )

    nullable: ClassVar[frozenset[str]] = frozenset({"risk.min_edge"})

    @property
    def every_ms(self) -> int:
        """Return the time between ticks in milliseconds."""
        return self.schedule.every_ms

    @property
    def tool_names(self) -> tuple[str, ...]:
        """Return the names of the listed tools."""
        return self.tools.built_in

    def normal(self) -> dict[str, Any]:
        """Return the normal form: tiers in order and the time between ticks in seconds, whatever the notation."""
        context = self.context.model_copy(update={"tiers": self.context.sorted_tiers()})
        seconds = f"{money.text(Decimal(self.every_ms) / SECOND_MS)}s"
        same = self.model_copy(update={"context": context, "schedule": PredictSchedule(every=seconds)})
        return SkillDocument.normal(same)

    def remarks(self) -> list[str]:
        """Return warnings about caps under which no mint can be accepted."""
        risk = self.risk
        caps = ("max_spend_per_tick", "max_spend_per_day", "max_total_spend", "max_exposure_per_expiry")
        remarks = [f"risk.{name} is 0: every mint will be refused" for name in caps if not getattr(risk, name)]
        if risk.max_spend_per_tick > min(risk.max_spend_per_day, risk.max_total_spend, risk.max_exposure_per_expiry):
            remarks.append("risk.max_spend_per_tick is above another cap: a mint of that size will be refused")
        if self.context.underlying != UNDERLYING:
            remarks.append(
                f"context.underlying is {self.context.underlying}: the protocol's markets are of {UNDERLYING}, with strikes "
                "from 50,000 to 150,000; where nothing can be quoted, a run does not start or its model is not asked"
            )
        return remarks

    @classmethod
    def include_files(cls, document: dict[str, Any], read: Callable[[str], str]) -> FileInclusion | None:
        """Replace a mandate stored in a file by its text."""
        return include_mandate(document, read)

    @classmethod
    def complete_schema(cls, schema: dict[str, Any]) -> None:
        """Require exactly one of the two ways to give a mandate."""
        schema["$defs"]["PredictStrategy"]["oneOf"] = [{"required": ["mandate"]}, {"required": ["text"]}]


_NAMED_AT, _TEXT_AT = ("strategy", "mandate"), ("strategy", "text")


def include_mandate(document: dict[str, Any], read_file: Callable[[str], str]) -> FileInclusion | None:
    """Replace the file name of a mandate by its text.

    If the document also has a mandate text, the file is not read: two mandates are an error whatever the file contains.
    """
    strategy = document.get("strategy")
    if not isinstance(strategy, dict):
        return None
    plain = cast("dict[str, Any]", strategy)
    name = plain.get("mandate")
    if not isinstance(name, str) or not name.lower().endswith(MANDATE_FILE):
        return None
    others = {key: value for key, value in plain.items() if key != "mandate"}
    if "text" in plain:
        document["strategy"] = others
        return FileInclusion(
            "", _NAMED_AT, _TEXT_AT, ((_TEXT_AT, "is given together with mandate", "keep one of them"),)
        )
    try:
        text = read_file(name)
    except UserError as error:
        return FileInclusion("", _NAMED_AT, _TEXT_AT, ((_NAMED_AT, error.message, error.hint),))
    document["strategy"] = {**others, "text": text}
    return FileInclusion(name, _NAMED_AT, _TEXT_AT)
