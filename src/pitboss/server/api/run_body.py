"""The bodies of requests that run skills over the past, and how they become the requests of `runs/new_request.py`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, parse_instant, parse_range_end, resolved
from pitboss.jobs.estimate import Estimate, needs_consent
from pitboss.jobs.submit import Agree
from pitboss.models.decisions import DecisionFile
from pitboss.runs.data_end import end_of_data
from pitboss.runs.documents import read_given
from pitboss.runs.new_request import build_request, request_field
from pitboss.runs.venues import period_ms, venue_of
from pitboss.server.problem import Problem
from pitboss.sim.request import BacktestRequest

Usd = Annotated[Decimal, Field(ge=0, lt=10**12, max_digits=30)]
Moment = Annotated[str, Field(min_length=1, max_length=40, examples=["2025-02-10", "2025-02-10T12:00:00Z", "-30d"])]
Override = Annotated[str, Field(max_length=4_000, examples=["risk.max_leverage=2"])]
MOST_REPEATS = 100
YEARS = ("1970-01-01", "2200-01-01")


class SkillRange(BaseModel):
    """A skill and the range of the past that it runs over."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    skill: Annotated[str, Field(max_length=200_000)] | dict[str, Any] | None = Field(
        None,
        description="A saved name, `name@version`, or a whole document (an object, or YAML text of several lines).",
        examples=["trend-thesis"],
    )
    text: Annotated[str, Field(max_length=200_000)] | None = Field(
        None, description="The document itself as YAML or JSON, instead of `skill`."
    )
    from_: Moment = Field(
        alias="from", description="Start of the range (UTC); `-30d` is 30 days before the end of the data."
    )
    to: Moment = Field(description="End of the range, exclusive.", examples=["2025-03-10"])
    set: list[Override] = Field(
        default_factory=list, max_length=100, description="Fields of the skill to override, as `path=value`."
    )
    equity: Annotated[Decimal, Field(gt=0, lt=10**15, max_digits=30)] | None = Field(
        None, description="Initial equity in USD; that of the venue if not given."
    )
    seed: int = Field(0, ge=0, le=2**62)
    data_venue: str = Field("", max_length=100, description="Venue whose data is used; the usual one if empty.")
    max_gap: int | None = Field(None, ge=0, le=10**9, description="Longest accepted gap, in bars.")
    max_cost_usd: Usd | None = Field(None, description="Stop a run when its model has cost this much.")
    price_in: Usd | None = Field(None, description="Price of a million input tokens, in USD.")
    price_out: Usd | None = Field(None, description="Price of a million output tokens, in USD.")
    any_price: bool = Field(False, description="Accept a model without a known price.")
    speculate: Annotated[str, Field(pattern=r"^(auto|\d{1,3})$")] = Field(
        "auto", description="Number of ticks to request in advance, `auto`, or `0` for none."
    )
    blind: bool = Field(False, description="Anonymise names, dates and prices for the model.")
    options: dict[str, str | int | float | bool] = Field(
        default_factory=dict,
        max_length=50,
        description="Options that only the skill's venue has, by the names of its request.",
        examples=[{"taker_bps": 3.5}],
    )

    def span(self, workspace: Workspace, skill: Mapping[str, Any]) -> tuple[Instant, Instant]:
        """Both ends of the range."""

        @cache
        def end() -> Instant:
            return end_of_data(skill, workspace.lake, workspace.settings, self.data_venue)

        from_at, to_at = read_moment("from", self.from_, end), read_moment("to", self.to, end)
        if to_at <= from_at:
            raise UserError("the range is empty: to is not after from", "choose a later `to`")
        return from_at, to_at

    def fields(self, workspace: Workspace, skill: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a request (`sim/request.py`) that are given."""
        if (self.price_in is None) != (self.price_out is None):
            raise UserError("price_in and price_out go together", "give both, in USD for a million tokens")
        from_at, to_at = self.span(workspace, skill)
        return {
            "from_at": from_at,
            "to_at": to_at,
            **({} if self.equity is None else {"equity_usd": self.equity}),
            "seed": self.seed,
            "data_venue": self.data_venue,
            "max_gap": workspace.settings.max_gap if self.max_gap is None else self.max_gap,
            "max_cost_usd": self.max_cost_usd,
            "price_in": self.price_in,
            "price_out": self.price_out,
            "any_price": self.any_price,
            "speculate": self.speculate,
            "blind": self.blind,
        }

    def request(self, workspace: Workspace) -> BacktestRequest:
        """The request in the type of the skill's venue."""
        skill = read_given(workspace, self.skill, self.text, self.set)
        fields = self.fields(workspace, skill)
        built = build_request(skill, {**fields, **self.own_fields(skill, fields)}, workspace.settings)
        request = built.request
        changes = {name: own_option(request, name, _option_text(value)) for name, value in self.options.items()}
        return replace(request, **changes)

    def own_fields(self, skill: dict[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
        """Fields that only some bodies have. `fields` are those that all have."""
        del skill, fields
        return {}


class BacktestBody(SkillRange):
    """A backtest, as for `pitboss submit`."""

    model: str = Field("", max_length=300, description="Model to use instead of the skill's.")
    repeats: int = Field(1, ge=1, le=MOST_REPEATS, description="Number of runs, with the seeds seed, seed + 1, …")
    decisions: Annotated[str, Field(max_length=2_000_000)] | None = Field(
        None, description="JSON lines with decisions to use instead of a model."
    )
    max_waste_pct: Annotated[Decimal, Field(ge=0, le=1_000, max_digits=20)] = Field(
        Decimal(35), description="Limit on the cost of unused replies requested in advance, in percent."
    )
    prompts: bool | None = Field(None, description="Store the texts of prompts; by default if a model decides.")

    def own_fields(self, skill: dict[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
        """The model, decisions, and what is stored."""
        if self.decisions is not None:
            period = period_ms(skill)
            ticks = range(-(-fields["from_at"] // period) * period, fields["to_at"], period)
            DecisionFile.read(self.decisions.encode(), "decisions", ticks, venue_of(skill).decision())
        return {
            "model": self.model,
            "decisions": self.decisions,
            "max_waste_pct": self.max_waste_pct,
            "prompts": self.prompts,
        }


class Confirmed(BaseModel):
    """The consent to a cost."""

    confirm_usd: Usd | None = Field(
        None, description="What you agree to pay: at least `hi` of the estimate that a 409 response holds."
    )


class EstimateDocument(BaseModel):
    """What runs are expected to cost, before anything is spent. Amounts are null if a price is unknown."""

    usd: float | None = Field(examples=[1.84])
    lo: float | None = Field(examples=[0.92])
    hi: float | None = Field(examples=[3.7])
    basis: list[str] = Field(examples=[["1 run, 2,688 ticks, 1,420 tokens a prompt"]])
    runs: int = Field(examples=[1])
    calls: int = Field(examples=[2688], description="Expected number of calls of models.")
    ahead_usd: float = Field(
        0.0, examples=[0.96], description="The part of `hi` that is for asking ahead: what unused replies may cost."
    )


def read_moment(name: str, text: str, end: Callable[[], Instant]) -> Instant:
    """A time of a request, which may be counted back from an end, such as `-30d`. The error names its field."""
    try:
        at = resolved(parse_range_end(text), end)
    except UserError as error:
        raise UserError(f"{name}: {error.message}", error.hint) from None
    except (OverflowError, OSError, ValueError):
        at = -1
    first, last = (parse_instant(year) for year in YEARS)
    if not first <= at <= last:
        raise UserError(f"{name}: {text!r} is not between {YEARS[0]} and {YEARS[1]}", "for example 2025-06-01")
    return at


def own_option(request: BacktestRequest, name: str, text: str) -> Any:
    """The value of a field that only the request of its venue has. Files of the server cannot be named."""
    if name in BacktestRequest.__dataclass_fields__ or name in venue_of(request.skill).file_fields:
        raise UserError(f"options.{name[:100]}: not an option of the venue", "leave it out")
    try:
        return request_field(request, name, text)
    except UserError as error:
        raise UserError(error.message.replace("run.", "options.", 1), error.hint) from None


def confirmation(workspace: Workspace, confirm_usd: Decimal | None, any_price: bool) -> Agree:
    """How a caller of the API agrees to a cost: with `confirm_usd`; the refusal is a 409 that holds the estimate."""

    def agree(cost: Estimate) -> None:
        above_usd = workspace.settings.confirm_above_usd
        if cost.usd is None or cost.hi is None:
            if any_price:
                return
            detail = "the price of the model is unknown, so its cost cannot be estimated"
            hint = "give price_in and price_out, or any_price to accept any cost"
        elif needs_consent(cost, above_usd) and (confirm_usd is None or confirm_usd < round(cost.hi, 6)):
            detail = f"this may cost ${cost.usd:.2f} (from ${cost.lo:.2f} to ${cost.hi:.2f}), more than ${above_usd}"
            hint = f"send confirm_usd of at least {round(cost.hi, 6)}, or limit the cost with max_cost_usd"
        else:
            return
        raise Problem(409, "confirmation_required", detail, hint, estimate=cost.plain())

    return agree


def _option_text(value: str | float) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
