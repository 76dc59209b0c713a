"""Formatting of numbers and times for reports: one form per kind of value.

Thousands are separated, the minus is U+2212, units follow the number, and an unknown value is a dash. The prompt has its
own rounding (`pitboss.prompt.render`); nothing here reaches a model.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal

from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS, Instant
from pitboss.report.source import number, pair

NONE = "–"
FEW_DAYS = "<20 days"
"""The flag of a Sharpe ratio of fewer daily returns than an interval needs."""
MINUS = "\u2212"


def _sign(value: float, digits: str, signed: bool) -> str:
    """`digits` is the absolute value already rounded: a rounded zero carries no sign."""
    if not any(digit in digits for digit in "123456789"):
        return digits
    return (MINUS if value < 0 else "+" if signed else "") + digits


def plain(value: object, digits: int = 2, *, signed: bool = False) -> str:
    numeric = number(value)
    return NONE if numeric is None else _sign(numeric, f"{abs(numeric):,.{digits}f}", signed)


def count(value: object) -> str:
    return plain(value, 0)


def usd(value: object, *, signed: bool = False, digits: int | None = None) -> str:
    """Dollars with cents; amounts below a cent keep two significant digits, large ones drop the cents."""
    numeric = number(value)
    if numeric is None:
        return NONE
    size = abs(numeric)
    if digits is None:
        digits = 0 if size >= 1_000_000 else 2 if size >= 0.01 or size < 1e-6 else 4 if size >= 0.0001 else 6
    return _sign(numeric, f"${size:,.{digits}f}", signed)


def percent(value: object, *, signed: bool = False, digits: int = 2) -> str:
    numeric = number(value)
    return NONE if numeric is None else _sign(numeric, f"{abs(numeric):,.{digits}f}%", signed)


def has_few_days(metrics: Mapping[str, object]) -> bool:
    """Whether a Sharpe ratio among these metrics is of too few days: then it has no interval."""
    return pair(metrics.get("sharpe_ci")) is None


def sharpe(value: object, few_days: bool) -> str:
    """A Sharpe ratio, flagged if it is of too few days."""
    text = plain(value)
    return f"{text} ({FEW_DAYS})" if few_days and text != NONE else text


def difference(first: object, second: object, digits: int = 2) -> Decimal | None:
    """The difference of two numbers as they are shown, so that a reader who subtracts gets the same."""
    shown = [number(value) for value in (first, second)]
    if shown[0] is None or shown[1] is None:
        return None
    return Decimal(f"{shown[0]:.{digits}f}") - Decimal(f"{shown[1]:.{digits}f}")


def drawdown(value: object) -> str:
    """A fall in percent, with a minus whichever sign it has."""
    numeric = number(value)
    return NONE if numeric is None else percent(-abs(numeric))


def share(value: object, digits: int = 1, *, signed: bool = False) -> str:
    """A fraction as a percentage."""
    numeric = number(value)
    return NONE if numeric is None else percent(numeric * 100, digits=digits, signed=signed)


def price(value: object) -> str:
    """About six significant digits, never an exponent."""
    numeric = number(value)
    if numeric is None:
        return NONE
    size = abs(numeric)
    digits = 1 if size >= 10_000 else 2 if size >= 100 else 4 if size >= 1 else 6 if size >= 0.01 else 8
    return _sign(numeric, f"{size:,.{digits}f}", False)


def amount(value: object) -> str:
    """A size in coins: as many digits as it has, eight at most."""
    numeric = number(value)
    if numeric is None:
        return NONE
    text = f"{abs(numeric):,.8f}".rstrip("0").rstrip(".")
    return _sign(numeric, text, False)


def with_unit(value: object, unit: str) -> str:
    """A number of the engine with its unit; text that is not a number is returned unchanged."""
    numeric = number(value)
    if numeric is None:
        return NONE if value is None else str(value)
    unit = unit.strip()
    if unit.lower() == "usd":
        return usd(numeric)
    if unit == "price":
        return price(numeric)
    digits = 0 if numeric == int(numeric) else 2 if abs(numeric) >= 0.01 else 6
    text = plain(numeric, digits)
    if unit in ("%", "pct"):
        return f"{text}%"
    return f"{text}\u00d7" if unit in ("x", "×") else f"{text} {unit}".strip()


def clock(at: Instant | None) -> str:
    """`2025-06-01 12:30`; the page states once that all times are UTC."""
    return NONE if at is None else _moment(at).strftime("%Y-%m-%d %H:%M")


def day(at: Instant | None) -> str:
    """`1 June 2025`."""
    if at is None:
        return "an unknown day"
    moment = _moment(at)
    return f"{moment.day} {moment:%B %Y}"


def span(length_ms: float) -> str:
    """A duration in its largest two units."""
    minutes = round(length_ms / MINUTE_MS)
    days, minutes = divmod(minutes, DAY_MS // MINUTE_MS)
    hours, minutes = divmod(minutes, HOUR_MS // MINUTE_MS)
    parts = [f"{value} {unit}" for value, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if value]
    return " ".join(parts[:2]) or "0 min"


def plural(value: object, singular: str, several: str | None = None) -> str:
    """`1 trade`, `2 trades`."""
    return f"{count(value)} {singular if number(value) == 1 else several or singular + 's'}"


def tone(value: object) -> str | None:
    """The style class of a gain or a loss; the sign is always shown as well."""
    numeric = number(value)
    return None if not numeric else "gain" if numeric > 0 else "loss"


def _moment(at: Instant) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC)
