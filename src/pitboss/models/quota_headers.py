"""Quotas in the headers of a reply, whatever names and units the provider uses: a limit, a remainder and an instant.

Pure. The length of a window is never assumed: Groq counts requests by the day and tokens by the minute under the same
names. What the readings mean for the next call is computed in `quotas`.
"""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from pitboss.core.instant import SECOND_MS, Instant
from pitboss.core.noun import noun

_VENDOR = re.compile(r"(?:x-|anthropic-)?ratelimit-(?:(limit|remaining|reset)(?:-(.+))?|(.+)-(limit|remaining|reset))")
_GO = re.compile(r"(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h|d))+")
_GO_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)")
_GO_MS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6, "d": 8.64e7}
_DRAFT_ITEM = re.compile(r"""\s*(?:"([^"]*)"|([\w-]+))\s*((?:;\s*[\w-]+=[^;,]+)*)""")
_EPOCH_S, _EPOCH_MS = 1e9, 1e11


@noun
class QuotaReading:
    """One quota as the headers of a reply report it."""

    name: str
    unit: str
    remaining: int
    limit: int | None = None
    reset_at: Instant | None = None


def read_quotas(headers: Mapping[str, str], now: Instant) -> tuple[QuotaReading, ...]:
    """Every quota in the headers of a reply. What cannot be read is left out."""
    fields_by_name: dict[str, dict[str, str]] = {}
    readings: list[QuotaReading] = []
    date: str | None = None
    for key, value in headers.items():
        name = key.lower()
        if name == "date":
            date = value
        if "ratelimit" not in name:
            continue
        if name == "ratelimit":
            readings.extend(_draft(value, now))
        elif match := _VENDOR.fullmatch(name):
            fields_by_name.setdefault(match[2] or match[3] or "requests", {})[match[1] or match[4]] = value
    skew = _skew(date, now) if fields_by_name else 0
    for name, fields in fields_by_name.items():
        unit, remaining = _unit(name), _integer(fields.get("remaining"))
        if unit is not None and remaining is not None:
            reset_at = reset_at_of(fields.get("reset", ""), now, skew)
            readings.append(QuotaReading(name, unit, remaining, _integer(fields.get("limit")), reset_at))
    return tuple(readings)


def reset_at_of(text: str, now: Instant, skew: int = 0) -> Instant | None:
    """When a quota is full again: a Go duration, seconds from now, an epoch in s or ms, or RFC 3339.

    `skew` is how far the local clock is ahead of the provider's. Whole seconds count as rounded down.
    """
    text = text.strip()
    if _GO.fullmatch(text):
        return _later(now, sum(float(number) * _GO_MS[unit] for number, unit in _GO_PART.findall(text)))
    try:
        number = float(text)
    except ValueError:
        try:
            stamp = datetime.fromisoformat(text)
        except ValueError:
            return None
        if stamp.tzinfo is None:
            stamp = stamp.replace(tzinfo=UTC)
        rounding_ms = 0 if stamp.microsecond else SECOND_MS
        return math.ceil(stamp.timestamp() * 1000) + skew + rounding_ms
    if not math.isfinite(number) or number < 0:
        return None
    if number >= _EPOCH_MS:
        return math.ceil(min(number, 1e15)) + skew
    if number >= _EPOCH_S:
        return math.ceil(number * 1000) + skew + SECOND_MS
    return _later(now, number * 1000 + (SECOND_MS if "." not in text else 0))


def _later(now: Instant, ms: float) -> Instant:
    return now + math.ceil(min(ms, 1e12))


def _skew(date: str | None, now: Instant) -> int:
    try:
        return now - round(parsedate_to_datetime(date or "").timestamp() * 1000)
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0


def _unit(name: str) -> str | None:
    if "token" in name:
        return "input-tokens" if "input" in name else "output-tokens" if "output" in name else "tokens"
    return "requests" if "request" in name or name in ("minute", "hour", "day") else None


def _integer(text: str | None) -> int | None:
    try:
        number = float((text or "").split(",")[0].split(";")[0])
    except ValueError:
        return None
    return int(number) if math.isfinite(number) and 0 <= number < 1e15 else None


def _draft(value: str, now: Instant) -> Iterator[QuotaReading]:
    """`"name";r=9;t=30, …` of the IETF draft, and its older form `limit=10, remaining=9, reset=30`."""
    plain = dict(part.strip().split("=", 1) for part in value.split(",") if re.fullmatch(r"\s*\w+=[\d.]+\s*", part))
    if (remaining := _integer(plain.get("remaining"))) is not None:
        reset_at = reset_at_of(plain.get("reset", ""), now)
        yield QuotaReading("draft", "requests", remaining, _integer(plain.get("limit")), reset_at)
        return
    for item in _DRAFT_ITEM.finditer(value):
        fields = dict(part.strip().split("=", 1) for part in item[3].split(";") if "=" in part)
        remaining = _integer(fields.get("r"))
        if remaining is not None:
            unit = _unit(fields.get("qu", "requests").strip('"')) or "requests"
            yield QuotaReading(
                f"draft {item[1] or item[2]}", unit, remaining, None, reset_at_of(fields.get("t", ""), now)
            )
