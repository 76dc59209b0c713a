"""How long a provider asks to wait before the next request, read from the headers or the body of its response. Pure."""

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from pitboss.models.error_bodies import error_message, error_of

LONGEST_WAIT_S = 86_400.0

_WAIT = re.compile(
    r"(?:try again|retry|wait)\D{0,20}?((?:\d+(?:\.\d+)?(?:ms|h|m|s)(?!\w)\s*|\d+(?:\.\d+)?(?:ms|h|m|s)(?=\d))+)",
    re.IGNORECASE,
)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def retry_after_s(body: object, headers: Mapping[str, str]) -> float | None:
    """The requested wait in seconds; None where the response names none.

    A date is compared with the response's own `Date` header, so the clock of this machine does not matter.
    """
    lower = {str(name).lower(): str(value) for name, value in headers.items()}
    ms = _number(lower.get("retry-after-ms"))
    if ms is not None:
        return _bounded(ms / 1000)
    after = lower.get("retry-after")
    if after is not None:
        seconds = _number(after)
        seconds = _until(after, lower.get("date")) if seconds is None else seconds
        if seconds is not None:
            return _bounded(seconds)
    details = error_of(body).get("details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and isinstance(detail.get("retryDelay"), str):
            seconds = duration_s(detail["retryDelay"])
            if seconds is not None:
                return _bounded(seconds)
    match = _WAIT.search(error_message(body))
    return None if match is None else _bounded(duration_s(match[1]) or 0.0)


def duration_s(text: str) -> float | None:
    """`12ms`, `7.66s`, `2m59.56s` in seconds; None for anything else."""
    parts = _DURATION.findall(text)
    return sum(float(number) * _UNITS[unit] for number, unit in parts) if parts else None


def _until(text: str, now: str | None) -> float | None:
    try:
        return (parsedate_to_datetime(text) - parsedate_to_datetime(now or "")).total_seconds()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_WAIT_S)
