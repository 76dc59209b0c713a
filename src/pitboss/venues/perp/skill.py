"""The skill document of the perp venue: strategy, context, tools and hard caps of an agent that trades perpetuals."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import AfterValidator, Discriminator, Field, Tag, field_validator
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import ValidationInfo

from pitboss.core.instant import INTERVALS, interval_ms
from pitboss.skill.schema import (
    Dollars,
    Flag,
    Line,
    McpServer,
    Name,
    Number,
    Part,
    Percent,
    Prose,
    SkillDocument,
    Whole,
    once,
    servers_once,
)
from pitboss.venues.perp.caps import VENUE_MINIMUM_USD
from pitboss.venues.perp.intents import TERMINAL
from pitboss.venues.perp.system_prompt import REQUIRED

BAR_INTERVALS = ("5m", "15m", "1h", "4h", "1d")
"""The bar intervals, finest first."""

BarInterval = Literal["5m", "15m", "1h", "4h", "1d"]
StrategyMode = Literal["thesis", "rules", "hybrid"]
Leash = Literal["strict", "balanced", "adaptive"]
Style = Literal["momentum", "mean_reversion", "breakout", "carry", "event", "market_making", "discretionary"]


class MoveAtr(Part):
    """Wake on a price move."""

    move_atr: Annotated[Number, Field(gt=0, le=1_000)] = Field(
        description="Wake when the close has moved by this many ATR(14) of bars_interval since the model was last asked."
    )


def _wake_kind(value: object) -> str | None:
    if isinstance(value, str):
        return "@word"
    return "@move" if isinstance(value, Mapping | MoveAtr) else None


Wake = Annotated[
    Annotated[Literal["position_open", "new_news"], Tag("@word")] | Annotated[MoveAtr, Tag("@move")],
    Discriminator(
        _wake_kind,
        custom_error_type="wake_type",
        custom_error_message="must be position_open, new_news or {{move_atr: number}}",
    ),
]


class Schedule(Part):
    """When the agent is asked."""

    every: BarInterval = Field(description="Time between ticks, aligned to the UTC day.")
    wake_when: Annotated[tuple[Wake, ...], AfterValidator(once)] = Field(
        default=(),
        description="Ask the model only at ticks where any of these holds: position_open, new_news, {move_atr: x}. "
        "Empty: at every tick.",
    )


class Strategy(Part):
    """What the agent is to do, in the author's words."""

    mode: StrategyMode = Field(
        default="thesis",
        description="thesis: an edge to capture, judged freely. rules: entry and exit rules. hybrid: both.",
    )
    leash: Leash = Field(
        default="balanced", description="How far the agent may depart from the text: strict, balanced or adaptive."
    )
    thesis: Prose | None = Field(
        default=None,
        validate_default=True,
        description="The edge to capture and why it exists. Modes thesis and hybrid.",
    )
    style: Style | None = Field(default=None, description="The kind of strategy, named in the prompt.")
    horizon: Line | None = Field(
        default=None, description="How long positions are meant to be held, for example hours to days."
    )
    look_for: Prose | None = Field(default=None, description="Signals to weigh; guidance, not hard rules.")
    avoid: Prose | None = Field(
        default=None,
        validate_default=True,
        description="When to stand down: hard constraints. Modes thesis and hybrid.",
    )
    sizing: Prose | None = Field(
        default=None, description="How to size and manage positions; guidance within the risk caps."
    )
    entry: Prose | None = Field(
        default=None, validate_default=True, description="When to open a position. Modes rules and hybrid."
    )
    exit: Prose | None = Field(
        default=None, validate_default=True, description="When to close or reduce a position. Modes rules and hybrid."
    )
    risk_management: Prose | None = Field(
        default=None,
        validate_default=True,
        description="Stops, scaling, standing down after losses. Modes rules and hybrid.",
    )

    @field_validator("thesis", "avoid", "entry", "exit", "risk_management")
    @classmethod
    def _require_text_of_mode(cls, value: str | None, info: ValidationInfo) -> str | None:
        mode = cast("str | None", info.data.get("mode"))
        if value is None and mode is not None and info.field_name in REQUIRED[mode]:
            raise PydanticCustomError("missing_for_mode", "is missing: mode {mode} needs it", {"mode": mode})
        return value

    def texts(self) -> dict[str, str | None]:
        """Return the fields in the form that `system_prompt.compose_system` takes."""
        return cast("dict[str, str | None]", self.model_dump())


class Tools(Part):
    """What the agent may look at. propose_order is always offered and need not be listed."""

    built_in: Annotated[tuple[Name, ...], Field(max_length=100), AfterValidator(once)] = Field(
        default=(), description="Built-in tools that the agent may call."
    )
    mcp_servers: Annotated[tuple[McpServer, ...], Field(max_length=20), AfterValidator(servers_once)] = Field(
        default=(), description="MCP servers whose tools the agent may call; ids of the catalogue only."
    )


class MemoryConfig(Part):
    """What the agent is shown of its own past."""

    enabled: Flag = Field(default=True, description="Show risk state, closed trades and lessons.")
    trades: Annotated[Whole, Field(ge=0, le=100)] = Field(default=10, description="How many closed trades are shown.")
    reflection_every: Annotated[Whole, Field(ge=1, le=1_000)] = Field(
        default=10, description="Write lessons after every so many closed trades."
    )


class EventsConfig(Part):
    """The calendar of coming market events."""

    enabled: Flag = Field(default=True, description="Show coming market events.")
    lookahead_hours: Annotated[Whole, Field(ge=1, le=720)] = Field(default=48, description="How far ahead, in hours.")


class Context(Part):
    """What the agent is shown at every tick."""

    symbols: Annotated[tuple[Name, ...], Field(min_length=1, max_length=100), AfterValidator(once)] = Field(
        description="The symbols that the agent sees and may trade; at least one."
    )
    bars_interval: BarInterval = Field(default="15m", description="Interval of the bars that the agent works on.")
    bars_lookback: Annotated[Whole, Field(ge=1, le=500)] = Field(
        default=100, description="How many closed bars of bars_interval are shown for each symbol."
    )
    higher_timeframes: Annotated[tuple[BarInterval, ...], AfterValidator(once)] | None = Field(
        default=None,
        description="Coarser intervals to show as well. Left out: the next two intervals above bars_interval of "
        "5m, 15m, 1h, 4h, 1d, as far as they exist. Empty: none.",
    )
    news_lookback_hours: Annotated[Whole, Field(ge=0, le=720)] = Field(
        default=6, description="How far back news is shown, in hours. 0: no news."
    )
    news_top_k: Annotated[Whole, Field(ge=0, le=100)] = Field(
        default=10, description="How many news items are shown, the most relevant first. 0: no news."
    )
    memory: MemoryConfig = Field(default=MemoryConfig(), description="What the agent is shown of its own past.")
    events: EventsConfig = Field(default=EventsConfig(), description="The calendar of coming market events.")

    @field_validator("higher_timeframes")
    @classmethod
    def _above_bars_interval(cls, value: tuple[str, ...] | None, info: ValidationInfo) -> tuple[str, ...] | None:
        base = cast("str | None", info.data.get("bars_interval"))
        for index, name in enumerate(value or ()):
            if base is not None and BAR_INTERVALS.index(name) <= BAR_INTERVALS.index(base):
                facts = {"index": index, "name": name, "base": base}
                raise PydanticCustomError("not_above", "{name} is not above bars_interval {base}", facts)
        return value

    def timeframes(self) -> tuple[str, ...]:
        """Return the higher timeframes, finest first: those of the skill, or by default the next two intervals."""
        if self.higher_timeframes is None:
            above = BAR_INTERVALS.index(self.bars_interval) + 1
            return BAR_INTERVALS[above : above + 2]
        return tuple(sorted(self.higher_timeframes, key=BAR_INTERVALS.index))

    @property
    def sorted_symbols(self) -> tuple[str, ...]:
        """The symbols in code-point order, the order used everywhere."""
        return tuple(sorted(self.symbols))


class Risk(Part):
    """Hard caps, enforced by the engine whatever the model says. Percentages are of equity, by notional."""

    max_position_pct: Percent = Field(
        default=Decimal(25), description="Largest notional of one symbol, working orders included, in % of equity."
    )
    max_total_exposure_pct: Percent = Field(
        default=Decimal(100), description="Largest notional of all symbols together, in % of equity."
    )
    max_leverage: Annotated[Number, Field(ge=1, le=1_000)] = Field(
        default=Decimal(3), description="Highest leverage that a proposal may ask for."
    )
    min_order_usd: Annotated[Dollars, Field(ge=0)] = Field(
        default=Decimal(10), description="Smallest order in USD; the venue's own minimum of 10 holds in any case."
    )
    max_order_usd: Annotated[Dollars, Field(gt=0)] | None = Field(
        default=None, description="Largest order in USD. null: no cap."
    )
    max_orders_per_hour: Annotated[Whole, Field(ge=0, le=100_000)] = Field(
        default=12, description="Most accepted opening orders within any hour."
    )
    daily_loss_halt_pct: Percent = Field(
        default=Decimal(5), description="Stop opening for the day at this loss, in % of equity at 00:00 UTC."
    )
    drawdown_halt_pct: Percent = Field(
        default=Decimal(15),
        description="Stop opening until a person resumes at this fall, in % of the run's peak equity.",
    )
    price_band_pct: Percent = Field(
        default=Decimal(5), description="How far beyond the mark a marketable limit price may be, in %."
    )
    max_data_age_s: Annotated[Number, Field(gt=0, le=31_536_000)] | None = Field(
        default=None,
        description="Oldest market data, in seconds, on which an opening order is accepted. null: 2 × bars_interval.",
    )
    allowed_symbols: Annotated[tuple[Name, ...], Field(max_length=1_000), AfterValidator(once)] = Field(
        default=(), description="If not empty, only these symbols may be opened, on top of context.symbols."
    )


class PerpSkill(SkillDocument):
    """A whole skill document of the perp venue. The only one that may leave `venue` out."""

    venue: Literal["perp"] = Field(  # pyright: ignore[reportIncompatibleVariableOverride]  a narrower type of a frozen field
        default="perp", description="Where the agent acts."
    )
    retry_refused: Annotated[Whole, Field(ge=0, le=3)] = Field(
        default=0,
        description="How often a refused proposal goes back to the model in the same tick, with rule code and margins, "
        "while steps are left.",
    )
    schedule: Schedule = Field(description="When the agent is asked.")
    strategy: Strategy = Field(description="What the agent is to do, in the author's words.")
    tools: Tools = Field(default=Tools(), description="What the agent may look at.")
    context: Context = Field(description="What the agent is shown at every tick.")
    risk: Risk = Field(
        default=Risk(), description="Hard caps, enforced by the engine. Percentages are of equity, by notional."
    )

    nullable: ClassVar[frozenset[str]] = frozenset({"risk.max_order_usd", "risk.max_data_age_s"})

    @property
    def every_ms(self) -> int:
        """The time between ticks in milliseconds."""
        return interval_ms(self.schedule.every)

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The listed tools without the decision tool, which need not be listed."""
        return tuple(name for name in self.tools.built_in if name != TERMINAL)

    @property
    def mcp_servers(self) -> tuple[McpServer, ...]:
        """The listed MCP servers."""
        return self.tools.mcp_servers

    def normal(self) -> dict[str, Any]:
        """Return the normal form: symbols sorted, timeframes in order, defaults left out."""
        document = SkillDocument.normal(self)
        context: dict[str, Any] = document["context"]
        context["symbols"] = sorted(context["symbols"])
        context.pop("higher_timeframes", None)
        timeframes = self.context.timeframes()
        if timeframes != Context(symbols=self.context.symbols, bars_interval=self.context.bars_interval).timeframes():
            context["higher_timeframes"] = timeframes
        allowed = document.get("risk", {}).get("allowed_symbols")
        if allowed:
            document["risk"]["allowed_symbols"] = sorted(allowed)
        return document

    def remarks(self) -> list[str]:
        """Return a remark for each cap under which every opening order would be refused."""
        remarks: list[str] = []
        risk = self.risk
        if risk.allowed_symbols and not set(risk.allowed_symbols) & set(self.context.symbols):
            remarks.append("risk.allowed_symbols has none of context.symbols: every opening order will be refused")
        if risk.max_order_usd is not None and risk.max_order_usd < max(VENUE_MINIMUM_USD, risk.min_order_usd):
            remarks.append("risk.max_order_usd is below the smallest order: every opening order will be refused")
        return remarks

    @classmethod
    def complete_schema(cls, schema: dict[str, Any]) -> None:
        """Add the texts that each strategy mode requires."""
        by_mode: list[dict[str, Any]] = [
            {"if": {"properties": {"mode": {"const": mode}}, "required": ["mode"]}, "then": {"required": list(needed)}}
            for mode, needed in REQUIRED.items()
        ]
        without_mode = {"if": {"not": {"required": ["mode"]}}, "then": {"required": list(REQUIRED["thesis"])}}
        schema["$defs"]["Strategy"]["allOf"] = [*by_mode, without_mode]

    @property
    def max_data_age_ms(self) -> int:
        """The age limit of market data, with its default resolved."""
        if self.risk.max_data_age_s is None:
            return 2 * INTERVALS[self.context.bars_interval]
        return int(self.risk.max_data_age_s * 1000)
