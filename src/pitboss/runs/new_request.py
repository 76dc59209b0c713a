"""Build the request of a backtest from a skill and plain fields, for every caller: commands, web, chat, MCP server.

The fields are those of `sim/request.py` and of the venue's own request. What a caller reads them from (options, JSON, a form) is
its own business; the estimate and the queue are in `jobs/submit.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any

from pitboss.bootstrap.settings import Settings
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.suggestion import suggestion
from pitboss.runs.venues import venue_of
from pitboss.sim.request import BacktestRequest

NOT_SETTABLE = frozenset({"skill", "decisions", "disguise"})
"""Fields of a request that have no value which a single text could give."""


@dataclass(frozen=True, slots=True)
class BuiltRequest:
    """A request, and a warning if another model than the named one is used."""

    request: BacktestRequest
    warning: str = ""


def build_request(skill: Mapping[str, Any], request_fields: Mapping[str, Any], settings: Settings) -> BuiltRequest:
    """The request of a complete plain skill document, in the type of its venue."""
    venue = venue_of(skill)
    model, warning = venue.fallback_model(str(request_fields.get("model") or skill["model"]), settings)
    changed = {"model": model} if warning else {}
    return BuiltRequest(venue.request_type()(**{"skill": skill, **request_fields, **changed}), warning)


def request_field(request: BacktestRequest, name: str, value: str) -> Any:
    """The value of a field of a request, such as a fee, from its text. Raises `UserError` if it does not fit."""
    names = {field.name for field in fields(request)} - NOT_SETTABLE
    if name not in names:
        raise UserError(
            f"run.{name[:100]}: no such field", suggestion(f"run.{name}", [f"run.{each}" for each in sorted(names)])
        )
    plain = codec.plain(replace(request, skill={}))
    current = plain[name]
    try:
        if isinstance(current, bool):
            plain[name] = {"true": True, "false": False}[value.lower()]
        else:
            plain[name] = int(value) if isinstance(current, int) else value
        new_value = getattr(codec.parse(type(request), plain), name)
    except (KeyError, ValueError, ArithmeticError):
        now = "it has no value now" if current in (None, "") else f"it is {current} now"
        raise UserError(f"run.{name}: {value[:100]!r} does not fit", now) from None
    # No venue has an option that may be negative: a negative latency, for example, would show news before they were published.
    if isinstance(new_value, int | Decimal) and not (Decimal(new_value).is_finite() and new_value >= 0):
        raise UserError(f"run.{name}: {value[:100]} is not a number of at least 0", "write plain digits, such as 4.5")
    return new_value


def repeated(request: BacktestRequest, repeats: int) -> list[BacktestRequest]:
    """The request once for each repeat, with the seeds seed, seed + 1, …"""
    return [replace(request, seed=request.seed + number, repeat=number) for number in range(repeats)]
