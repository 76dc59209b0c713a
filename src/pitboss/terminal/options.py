"""Options that several commands share, and exact parsing of numbers, times and durations.

Options for running a skill over the past are declared here once, with their limits: `RangeOptions` for all such
commands, `BacktestOptions` for those that make one run or its repeats. Options of a single venue are declared by that
venue.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter, Token

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, Instant, parse_duration, parse_instant

if TYPE_CHECKING:
    from pitboss.bootstrap.settings import Settings
    from pitboss.core.decision_format import DecisionFormat

MOST_DIGITS, MOST_PLACES = 40, 20
MOST_DURATION_MS = 3_650 * DAY_MS
MOST_REPEATS = 1_000
MOST_AHEAD = 256
MOST_WASTE_PCT = 1_000
MOST_SEED = 2**62
MOST_GAP = 1_000_000_000


def read_amount(text: str, name: str) -> Decimal:
    """Parse an exact number of at least zero."""
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        raise UserError(f"{name}: {text!r} is not a number", "write plain digits, such as 10000 or 4.5") from None
    if not value.is_finite():
        raise UserError(f"{name}: {text!r} is not a finite number", "write plain digits, such as 10000 or 4.5")
    if value < 0:
        raise UserError(f"{name}: {text} is below zero", "give a number of at least 0")
    if abs(value.adjusted()) > MOST_PLACES or len(value.as_tuple().digits) > MOST_DIGITS:
        raise UserError(f"{name}: {text} is too large, too small or too precise to be meant")
    return value


def _text(tokens: Sequence[Token]) -> tuple[str, str]:
    return tokens[0].value, tokens[0].keyword or "value"


def _amount(kind: Any, tokens: Sequence[Token]) -> Decimal:
    del kind
    return read_amount(*_text(tokens))


def _moment(kind: Any, tokens: Sequence[Token]) -> Instant:
    del kind
    text, name = _text(tokens)
    try:
        return parse_instant(text)
    except UserError as error:
        raise UserError(f"{name}: {error.message}", error.hint) from None
    except (OverflowError, OSError):
        raise UserError(
            f"{name}: {text!r} is outside of the calendar", "write 2025-06-01 or 2025-06-01T12:30:00Z"
        ) from None


def _duration(kind: Any, tokens: Sequence[Token]) -> int:
    del kind
    text, name = _text(tokens)
    try:
        found = parse_duration(text)
    except UserError as error:
        raise UserError(f"{name}: {error.message}", error.hint) from None
    except OverflowError:
        found = MOST_DURATION_MS + 1
    if found > MOST_DURATION_MS:
        raise UserError(f"{name}: {text[:40]} is longer than ten years", "for example 30s, 5m or 1h")
    return found


def _lateness(kind: Any, tokens: Sequence[Token]) -> tuple[int, str]:
    text, name = _text(tokens)
    if not any(mark in text for mark in ("..", "=", ",")):
        return _duration(kind, tokens), ""
    from pitboss.data.news_latency import parse_latency

    try:
        parse_latency(text)
    except UserError as error:
        raise UserError(f"{name}: {error.message}", error.hint) from None
    return 0, text


def _ahead(kind: Any, tokens: Sequence[Token]) -> str:
    del kind
    text, name = _text(tokens)
    if text != "auto" and not (text.isdecimal() and int(text) <= MOST_AHEAD):
        raise UserError(f"{name}: {text!r} is not auto or a number from 0 to {MOST_AHEAD}", "0 asks nothing ahead")
    return text


Json = Annotated[
    bool, Parameter(name="--json", help="Print one JSON document on standard output, and nothing else there.")
]
Amount = Annotated[Decimal, Parameter(metavar="NUMBER", converter=_amount, n_tokens=1, accepts_keys=False)]
Moment = Annotated[int, Parameter(metavar="TIME", converter=_moment, n_tokens=1, accepts_keys=False)]
Duration = Annotated[
    int, Parameter(metavar="DURATION", show_default=False, converter=_duration, n_tokens=1, accepts_keys=False)
]
Lateness = Annotated[
    tuple[int, str],
    Parameter(metavar="DURATION", show_default=False, converter=_lateness, n_tokens=1, accepts_keys=False),
]
"""Latency of news: milliseconds for all of it, or the text of a latency that differs by source or item."""
Override = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        negative=(),
        consume_multiple=False,
        help="Change a field of the skill for this once, as in risk.max_leverage=5. May be repeated.",
    ),
]
RunId = Annotated[str, Parameter(help="A run's id, or the start of it.")]


def given(name: str, text: str) -> Any:
    """Declare an option with its help text."""
    return Parameter(name=name, help=text)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class RangeOptions:
    """Options of every command that runs a skill over a past range: backtests, the queue, studies, arenas."""

    from_: Annotated[Moment, given("--from", "First instant of the range, as 2025-06-01 or ISO time (UTC).")]
    to: Annotated[Moment, given("--to", "End of the range; the last tick lies before it.")]
    set_: Override = ()
    equity: Annotated[
        Amount | None, given("--equity", "Money to start with. Default: what the venue's accounts begin with.")
    ] = None
    seed: Annotated[int, given("--seed", "Seed of whatever is random.")] = 0
    data_venue: Annotated[
        str, given("--data-venue", "Whose data to use. Default: hyperliquid, or the only one there is.")
    ] = ""
    max_gap: Annotated[int | None, given("--max-gap", "Missing bars in a row to tolerate. Default: the setting.")] = (
        None
    )
    max_cost_usd: Annotated[Amount | None, given("--max-cost-usd", "Stop a run when its model has cost this much.")] = (
        None
    )
    price_in: Annotated[Amount | None, given("--price-in", "USD for a million tokens the model reads.")] = None
    price_out: Annotated[Amount | None, given("--price-out", "USD for a million tokens the model writes.")] = None
    yes: Annotated[
        bool,
        given("--yes", "Go ahead with models whose price nobody knows, and queue what may cost more than $5."),
    ] = False
    speculate: Annotated[
        str,
        Parameter(
            name="--speculate",
            help="Ticks to ask ahead while an answer is awaited: a number, auto, or 0 for none.",
            converter=_ahead,
            n_tokens=1,
            accepts_keys=False,
        ),
    ] = "auto"

    def check(self) -> None:
        """Refuse invalid values before anything is read."""
        if (self.price_in is None) != (self.price_out is None):
            raise UserError("--price-in and --price-out go together", "for example --price-in 0.5 --price-out 1.5")
        if not 0 <= self.seed <= MOST_SEED:
            raise UserError(f"--seed: {self.seed} is not from 0 to {MOST_SEED}", "any whole number in between")
        if self.max_gap is not None and not 0 <= self.max_gap <= MOST_GAP:
            raise UserError(f"--max-gap: {self.max_gap} is not from 0 to {MOST_GAP}", "a number of bars, such as 12")
        if self.to <= self.from_:
            raise UserError("the range is empty: --to is not after --from", "swap them, or choose a later --to")

    def fields(self, settings: "Settings") -> dict[str, Any]:
        """The fields of a request (`sim/request.py`) that these options set.

        Without an amount the venue's default is used.
        """
        return {
            "from_at": self.from_,
            "to_at": self.to,
            **({} if self.equity is None else {"equity_usd": self.equity}),
            "seed": self.seed,
            "data_venue": self.data_venue,
            "max_gap": settings.max_gap if self.max_gap is None else self.max_gap,
            "max_cost_usd": self.max_cost_usd,
            "price_in": self.price_in,
            "price_out": self.price_out,
            "any_price": self.yes,
            "speculate": self.speculate,
        }


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestOptions(RangeOptions):
    """Options of a backtest of any venue, run here or queued."""

    model: Annotated[str, given("--model", "Who decides, instead of the skill's model. See `pitboss models list`.")] = (
        ""
    )
    decisions: Annotated[
        Path | None, given("--decisions", "Take the decisions from a JSON lines file instead of a model.")
    ] = None
    max_waste_pct: Annotated[
        Amount,
        given("--max-waste-pct", "Highest cost of unused speculative replies, in % of the cost of used replies."),
    ] = Decimal(35)
    repeats: Annotated[int, given("--repeats", "Run it N times with the seeds seed, seed+1, … and summarise.")] = 1
    prompts: Annotated[
        bool | None,
        Parameter(
            name="--prompts",
            negative="--no-prompts",
            help="Keep the prompt texts, also in runs that need none; or keep only their digests.",
        ),
    ] = None

    def check(self) -> None:
        """Refuse values that are invalid for a backtest."""
        RangeOptions.check(self)
        if self.max_waste_pct > MOST_WASTE_PCT:
            raise UserError(f"--max-waste-pct: not from 0 to {MOST_WASTE_PCT}", "for example --max-waste-pct 35")
        if not 1 <= self.repeats <= MOST_REPEATS:
            raise UserError(f"--repeats: {self.repeats} is not from 1 to {MOST_REPEATS}", "for example --repeats 5")

    def fields(self, settings: "Settings") -> dict[str, Any]:
        """The same fields, with the model and what is stored."""
        more = {"model": self.model, "max_waste_pct": self.max_waste_pct, "prompts": self.prompts}
        return {**RangeOptions.fields(self, settings), **more}

    def read_decisions(self, period: int, decision: "DecisionFormat") -> str | None:
        """Read and check the decisions file, if one is given. Errors name the file."""
        if self.decisions is None:
            return None
        from pitboss.models.decisions import DecisionFile

        first = -(-self.from_ // period) * period
        try:
            data = self.decisions.read_bytes()  # read once only, because it may be a pipe
        except OSError as error:
            raise UserError(
                f"cannot read {self.decisions}: {error.strerror}", "give --decisions a JSON lines file"
            ) from None
        DecisionFile.read(data, self.decisions.name, range(first, self.to, period), decision)
        return data.decode()


Queue = Annotated[bool, given("--queue", "Put it into the queue and return, instead of running it here.")]
Priority = Annotated[int | None, given("--priority", "In the queue, higher goes first. Default: 0.")]
