"""Options that several commands share, and exact parsing of numbers, times and durations.

Options for running a skill over the past are declared here once, with their limits: `RangeOptions` for all such
commands, `BacktestOptions` for those that make one run or its repeats. Options of a single venue are declared by that
venue.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from cyclopts import Parameter, Token

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, BeforeEnd, Instant, parse_duration, parse_instant, parse_range_end, resolved

if TYPE_CHECKING:
    from pitboss.bootstrap.settings import Settings
    from pitboss.core.decision_format import DecisionFormat

T = TypeVar("T")
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
        raise UserError(f"{name}: {text} is below zero", "use a number of at least 0")
    if abs(value.adjusted()) > MOST_PLACES or len(value.as_tuple().digits) > MOST_DIGITS:
        raise UserError(f"{name}: {text} is too large, too small or too precise")
    return value


def _text(tokens: Sequence[Token]) -> tuple[str, str]:
    return tokens[0].value, tokens[0].keyword or "value"


def _amount(kind: Any, tokens: Sequence[Token]) -> Decimal:
    del kind
    return read_amount(*_text(tokens))


def _whole_number(kind: Any, tokens: Sequence[Token]) -> int:
    del kind
    text, name = _text(tokens)
    try:
        return int(text)
    except ValueError:
        raise UserError(f"{name}: {text[:40]!r} is not a whole number", "write plain digits, such as 3") from None


def _name(kind: Any, tokens: Sequence[Token]) -> str:
    del kind
    text, name = _text(tokens)
    if not text.strip():
        raise UserError(f"{name}: the value is empty", "give a name, or leave the option out")
    return text


def _moment(kind: Any, tokens: Sequence[Token]) -> Instant:
    del kind
    return _read_time(parse_instant, *_text(tokens))


def _range_end(kind: Any, tokens: Sequence[Token]) -> Instant | BeforeEnd:
    del kind
    return _read_time(parse_range_end, *_text(tokens))


def _read_time(read: Callable[[str], T], text: str, name: str) -> T:
    try:
        return read(text)
    except UserError as error:
        raise UserError(f"{name}: {error.message}", error.hint) from None
    except (OverflowError, OSError):
        raise UserError(
            f"{name}: {text!r} is not a possible date", "write 2025-06-01 or 2025-06-01T12:30:00Z"
        ) from None


def _duration(kind: Any, tokens: Sequence[Token]) -> int:
    del kind
    text, name = _text(tokens)
    try:
        duration_ms = parse_duration(text)
    except UserError as error:
        raise UserError(f"{name}: {error.message}", error.hint) from None
    if duration_ms > MOST_DURATION_MS:
        raise UserError(f"{name}: {text[:40]} is longer than ten years", "for example 30s, 5m or 1h")
    return duration_ms


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
        raise UserError(f"{name}: {text!r} is not auto or a number from 0 to {MOST_AHEAD}", "0 turns it off")
    return text


Json = Annotated[bool, Parameter(name="--json", help="Print one JSON document, and nothing else, on standard output.")]
Amount = Annotated[Decimal, Parameter(metavar="NUMBER", converter=_amount, n_tokens=1, accepts_keys=False)]
WholeNumber = Annotated[int, Parameter(converter=_whole_number, n_tokens=1, accepts_keys=False)]
"""An integer. The parser's own conversion would round 1.5 to 2."""
Moment = Annotated[int, Parameter(metavar="TIME", converter=_moment, n_tokens=1, accepts_keys=False)]
RangeEnd = Annotated[
    Instant | BeforeEnd,
    Parameter(metavar="TIME", converter=_range_end, n_tokens=1, accepts_keys=False, allow_leading_hyphen=True),
]
"""An end of a range: a time, or one before the end of the data, such as -30d."""
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
        help="Override a field of the skill, such as risk.max_leverage=5. May be repeated.",
    ),
]
Name = Annotated[str, Parameter(converter=_name, n_tokens=1, accepts_keys=False)]
"""Text that is not empty: an empty one usually is a shell variable that is not set."""
OtherModel = Annotated[
    Name, Parameter(name="--model", help="Model to use instead of the skill's. See `pitboss models list`.")
]
RunId = Annotated[str, Parameter(help="Id of a run, its first characters, `last`, or `last~1` for the one before.")]


def option(name: str, text: str) -> Any:
    """Declare an option with its help text."""
    return Parameter(name=name, help=text)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class RangeOptions:
    """Options of every command that runs a skill over a past range: backtests, the queue, studies, arenas."""

    from_: Annotated[
        RangeEnd,
        option("--from", "Start of the range, as 2025-06-01, ISO time (UTC), or -30d before the end of the data."),
    ]
    to: Annotated[
        RangeEnd | None, option("--to", "End of the range, exclusive, in the same forms. Default: the end of the data.")
    ] = None
    set_: Override = ()
    equity: Annotated[Amount | None, option("--equity", "Initial equity in USD. Default: that of the venue.")] = None
    seed: Annotated[WholeNumber, option("--seed", "Seed of the random numbers.")] = 0
    data_venue: Annotated[
        str, option("--data-venue", "Venue whose data is used. Default: hyperliquid, or the only one in the lake.")
    ] = ""
    max_gap: Annotated[
        WholeNumber | None, option("--max-gap", "Longest accepted gap, in bars. Default: the setting max_gap.")
    ] = None
    max_cost_usd: Annotated[
        Amount | None, option("--max-cost-usd", "Stop a run when its model has cost this much.")
    ] = None
    price_in: Annotated[Amount | None, option("--price-in", "Price of a million input tokens, in USD.")] = None
    price_out: Annotated[Amount | None, option("--price-out", "Price of a million output tokens, in USD.")] = None
    yes: Annotated[
        bool,
        option(
            "--yes",
            "Accept models without a known price, and runs that may cost more than confirm_above_usd ($5 unless set).",
        ),
    ] = False
    speculate: Annotated[
        str,
        Parameter(
            name="--speculate",
            help="Number of ticks to request in advance while a reply is awaited, auto, or 0 for none.",
            converter=_ahead,
            n_tokens=1,
            accepts_keys=False,
        ),
    ] = "auto"

    blind: Annotated[
        bool, option("--blind", "Anonymise names, dates, prices and volumes of the market for the model.")
    ] = False

    def check(self) -> None:
        """Refuse invalid values before anything is read."""
        if (self.price_in is None) != (self.price_out is None):
            raise UserError("--price-in and --price-out go together", "for example --price-in 0.5 --price-out 1.5")
        if not 0 <= self.seed <= MOST_SEED:
            raise UserError(f"--seed: {self.seed} is not from 0 to {MOST_SEED}", "any whole number in between")
        if self.max_gap is not None and not 0 <= self.max_gap <= MOST_GAP:
            raise UserError(f"--max-gap: {self.max_gap} is not from 0 to {MOST_GAP}", "a number of bars, such as 12")

    def span(self, end: Callable[[], Instant]) -> tuple[Instant, Instant]:
        """Both ends of the range. `end` gives the end of the data, and is called only if needed."""
        end = cache(end)
        from_at, to_at = resolved(self.from_, end), end() if self.to is None else resolved(self.to, end)
        if to_at <= from_at:
            raise UserError("the range is empty: --to is not after --from", "swap them, or choose a later --to")
        return from_at, to_at

    def fields(self, settings: "Settings", span: tuple[Instant, Instant]) -> dict[str, Any]:
        """The fields of a request (`sim/request.py`) that these options set, with the range that `span` gave.

        Without an amount the venue's default is used.
        """
        return {
            "from_at": span[0],
            "to_at": span[1],
            **({} if self.equity is None else {"equity_usd": self.equity}),
            "seed": self.seed,
            "data_venue": self.data_venue,
            "max_gap": settings.max_gap if self.max_gap is None else self.max_gap,
            "max_cost_usd": self.max_cost_usd,
            "price_in": self.price_in,
            "price_out": self.price_out,
            "any_price": self.yes,
            "speculate": self.speculate,
            "blind": self.blind,
        }


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestOptions(RangeOptions):
    """Options of a backtest of any venue, run here or queued."""

    model: OtherModel = ""
    decisions: Annotated[
        Path | None, option("--decisions", "JSON lines file with decisions to use instead of a model.")
    ] = None
    max_waste_pct: Annotated[
        Amount,
        option("--max-waste-pct", "Limit on the cost of unused replies requested in advance, in % of the used ones."),
    ] = Decimal(35)
    repeats: Annotated[
        WholeNumber, option("--repeats", "Number of runs, with the seeds seed, seed+1, …; the results are summarised.")
    ] = 1
    prompts: Annotated[
        bool | None,
        Parameter(
            name="--prompts",
            negative="--no-prompts",
            help="Store the texts of prompts, also if a program decides; or only digests. Default: texts if a model decides.",
        ),
    ] = None

    def check(self) -> None:
        """Refuse values that are invalid for a backtest."""
        RangeOptions.check(self)
        if self.max_waste_pct > MOST_WASTE_PCT:
            raise UserError(f"--max-waste-pct: not from 0 to {MOST_WASTE_PCT}", "for example --max-waste-pct 35")
        if not 1 <= self.repeats <= MOST_REPEATS:
            raise UserError(f"--repeats: {self.repeats} is not from 1 to {MOST_REPEATS}", "for example --repeats 5")

    def fields(self, settings: "Settings", span: tuple[Instant, Instant]) -> dict[str, Any]:
        """The same fields, with the model and what is stored."""
        own = {"model": self.model, "max_waste_pct": self.max_waste_pct, "prompts": self.prompts}
        return {**RangeOptions.fields(self, settings, span), **own}

    def read_decisions(self, span: tuple[Instant, Instant], period: int, decision: "DecisionFormat") -> str | None:
        """Read and check the decisions file for a range, if one is given. Errors name the file."""
        if self.decisions is None:
            return None
        from pitboss.models.decisions import DecisionFile

        first = -(-span[0] // period) * period
        try:
            data = self.decisions.read_bytes()  # read once only, because it may be a pipe
        except OSError as error:
            raise UserError(
                f"cannot read {self.decisions}: {error.strerror}", "give --decisions a JSON lines file"
            ) from None
        DecisionFile.read(data, self.decisions.name, range(first, span[1], period), decision)
        return data.decode()


Queue = Annotated[bool, option("--queue", "Queue the run and return, instead of executing it here.")]
Priority = Annotated[WholeNumber | None, option("--priority", "Priority in the queue; higher goes first. Default: 0.")]
