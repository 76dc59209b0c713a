"""Options that several commands share, and the exact reading of numbers, times and durations."""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from cyclopts import Parameter, Token

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, Instant, parse_duration, parse_instant

MOST_DIGITS, MOST_PLACES = 40, 20
MOST_DURATION_MS = 3_650 * DAY_MS


def read_amount(text: str, name: str) -> Decimal:
    """An exact number of at least zero."""
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
    from pitboss.data.arrival import parse_latency

    try:
        parse_latency(text)
    except UserError as error:
        raise UserError(f"{name}: {error.message}", error.hint) from None
    return 0, text


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
"""How late news is: milliseconds for all of it, or the text of a latency that differs by source or item."""
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
    """An option with its meaning."""
    return Parameter(name=name, help=text)
