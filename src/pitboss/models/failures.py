"""What an error of a provider means: try again, give up on this call, or something that a person must put right.

Pure: status, body and headers in, a `Failure` out; shared by every adapter that talks to a provider. A model's own mistake
(a call that the provider refused to pass on, a refusal) is no failure: the readers of replies make a reply of it.
"""

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from pitboss.core import codec
from pitboss.core.errors import TransientError, UserError
from pitboss.core.noun import noun

Reaction = Literal["retry", "give_up", "user"]

MAX_WORDS = 300
LONGEST_WAIT_S = 86_400.0
NOTHING: Mapping[str, str] = {}

_AGAIN = frozenset({408, 409, 425, 429})
_MODEL = re.compile(r"model", re.IGNORECASE)
_NO_MODEL = re.compile(
    r"(model|deployment)\b.{0,120}(not (found|exist)|does ?n[o']t exist|unknown|is not a valid|invalid|decommissioned"
    r"|not available)|(unknown|invalid|no such|not a valid) model|no endpoints found",
    re.IGNORECASE | re.DOTALL,
)
_NO_MONEY = re.compile(
    r"insufficient[_ ](quota|balance|funds|credits)|credit balance|exceeded your current quota|billing|payment required"
    r"|requires more credits|spend(ing)? limit",
    re.IGNORECASE,
)
_BAD_KEY = re.compile(
    r"api[_ -]?key.{0,40}(not valid|invalid|incorrect|missing|expired)|(invalid|incorrect|missing|no) api[_ -]?key"
    r"|invalid x-api-key|api_key_invalid|unauthenticated",
    re.IGNORECASE | re.DOTALL,
)
_NOT_TAKEN = re.compile(
    r"(does|do|is|are) not support|not supported|unsupported|unrecognized|unknown (parameter|field|argument|name)"
    r"|extra (inputs|fields)|unexpected keyword",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"context[_ ](length|window|size)|maximum context|too many tokens|prompt is too long|too large|token limit"
    r"|reduce the length|(input length|token count).{0,60}exceeds",
    re.IGNORECASE,
)
_MISSING = frozenset({"model_not_found", "model_not_exist", "unknown_model", "invalid_model", "model_decommissioned"})
_POOR = frozenset({"insufficient_quota", "billing_hard_limit_reached", "insufficient_balance", "billing_error"})
_UNKNOWN_KEY = frozenset({"invalid_api_key", "authentication_error", "unauthenticated", "api_key_invalid"})
_BUSY = frozenset({"rate_limit_exceeded", "rate_limit_error", "overloaded_error", "resource_exhausted", "unavailable"})
_WAIT = re.compile(
    r"(?:try again|retry|wait)\D{0,20}?((?:\d+(?:\.\d+)?(?:ms|h|m|s)(?!\w)\s*|\d+(?:\.\d+)?(?:ms|h|m|s)(?=\d))+)",
    re.IGNORECASE,
)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


UNREACHED = frozenset({"unreachable", "bad_address", "certificate", "redirect"})


@noun
class Failure:
    """One failed call. `code` is a short stable word for the reason, `message` one line for a person."""

    reaction: Reaction
    code: str
    message: str
    hint: str = ""
    wait_s: float | None = None
    status: int = 0

    @property
    def charged(self) -> bool:
        """Whether the call may have cost something: not where it was refused or nobody was reached."""
        return not (400 <= self.status < 500 and self.status != 408) and self.code not in UNREACHED

    def error(self, charged: bool = False) -> UserError | TransientError:
        """The exception that this failure ends in once it is not tried again. `charged`: an earlier try may have been."""
        error = UserError(self.message, self.hint) if self.reaction == "user" else TransientError(self.message)
        setattr(error, "charged", charged or self.charged)  # noqa: B010 – read by the budget, wherever it stands
        setattr(error, "code", self.code)  # noqa: B010 – read by whoever has more to say about a reason
        return error


def classify(status: int, body: object, headers: Mapping[str, str] = NOTHING, asked: str = "the provider") -> Failure:
    """Judge an error reply. `body` is parsed JSON, or the raw text where it is none; `asked` says who was asked what.

    A status below 400 belongs to an error that came inside a reply that began well; the error's own code is the status.
    """
    error = error_of(body)
    codes = _codes(error)
    words = said(body)
    if status < 300:
        status = next((code for code in codes if isinstance(code, int) and 400 <= code < 600), 0)
    if 300 <= status < 400:
        return Failure(
            "user",
            "redirect",
            f"{asked}: the address redirects elsewhere ({status}), which is never followed",
            "check the base URL of the provider",
            status=status,
        )
    names = {code.lower() for code in codes if isinstance(code, str)}
    told = f": {words}" if words else ""
    # Google says that a quota is used up when only this minute's is, and then how long to wait.
    poor = status in (400, 403, 429) and _NO_MONEY.search(words) and delay(body, NOTHING) is None
    if status == 402 or names & _POOR or poor:
        return Failure(
            "user", "no_money", f"{asked}: the account has no money or quota left{told}", _PAY, status=status
        )
    if status == 401 or names & _UNKNOWN_KEY or (status in (400, 403) and _BAD_KEY.search(words)):
        # The provider's words stay out: some repeat the key.
        return Failure("user", "bad_key", f"{asked}: the key was refused", _KEY, status=status)
    if names & _MISSING or (status in (400, 404, 422) and _NO_MODEL.search(words)):
        return Failure("user", "unknown_model", f"{asked}: no such model{told}", _CHOOSE, status=status)
    if status == 404:
        return _not_found(asked, words, told, names)
    if status in _AGAIN or status in (0, 200) or (status >= 500 and status not in (501, 505)) or names & _BUSY:
        wait_s = delay(body, headers) if status >= 400 else None
        code = "busy" if status in (429, 529, 503) or names & _BUSY else "server"
        return Failure("retry", code, f"{asked}: {_name(status)}{told}", wait_s=wait_s, status=status)
    if status == 413 or _TOO_LONG.search(words) or "context_length_exceeded" in names:
        return Failure("give_up", "too_long", f"{asked}: the question is too long{told}", status=status)
    if status == 403:
        return Failure("user", "forbidden", f"{asked}: not allowed with this key{told}", _KEY, status=status)
    if status in (400, 422) and (error.get("param") or _NOT_TAKEN.search(words)):
        return Failure("user", "bad_setting", f"{asked}: a setting is not accepted{told}", _SETTING, status=status)
    return Failure("give_up", "bad_request", f"{asked}: the request was refused ({status}){told}", status=status)


_PAY = "top the account up, wait for the quota to renew, or choose another model"
_KEY = "set the right key: `pitboss secrets set NAME`, or the provider's environment variable"
_CHOOSE = "see the provider's list of models; `pitboss models list` shows which providers there are"
_SETTING = "look at model_settings of the skill, or choose a model that takes them"


def _not_found(asked: str, words: str, told: str, names: set[str]) -> Failure:
    if _MODEL.search(words) or names & {"not_found_error"}:
        return Failure("user", "unknown_model", f"{asked}: no such model{told}", _CHOOSE, status=404)
    return Failure("user", "bad_address", f"{asked}: nothing answers at this address{told}", _ADDRESS, status=404)


_ADDRESS = "check the base URL; it usually ends in /v1"


def malformed(asked: str, why: str) -> Failure:
    """A reply that is no reply: worth another try, as proxies on the way cause most of them."""
    return Failure("retry", "malformed", f"{asked}: {why}")


def error_of(body: object) -> Mapping[str, Any]:
    """The error object of a body, whatever the envelope; empty where there is none."""
    if isinstance(body, list) and body:
        body = body[0]  # Google wraps errors of streams in an array
    if not isinstance(body, dict):
        return {}
    error = body.get("error")
    if isinstance(error, dict):
        return error
    if isinstance(error, str):
        return {"message": error, "code": body.get("code"), "type": body.get("type")}
    return body if "message" in body or "detail" in body else {}


def said(body: object) -> str:
    """What the provider said, as one line of bounded length."""
    error = error_of(body)
    words = error.get("message") or error.get("detail")
    if not isinstance(words, str):
        if words is not None:
            words = _complaints(words) or str(words)[: MAX_WORDS * 2]
        else:
            words = body[: MAX_WORDS * 4] if isinstance(body, str) else ""
    if words.lstrip()[:1] == "<":
        words = re.sub(r"<[^>]*>", " ", words)  # a page of a proxy
    line = codec.printable(" ".join(words.split()))
    return line if len(line) <= MAX_WORDS else line[: MAX_WORDS - 1] + "…"


def _complaints(words: object) -> str:
    """The list of what was wrong with each field, as many Python servers give it."""
    words = words.get("detail") if isinstance(words, dict) else words
    found = [one for one in words if isinstance(one, dict)] if isinstance(words, list) else []
    return "; ".join(
        f"{'.'.join(map(str, where)) if isinstance(where := one.get('loc'), list) else ''} {one.get('msg', '')}".strip()
        for one in found[:5]
    )


def delay(body: object, headers: Mapping[str, str]) -> float | None:
    """How long the provider wants to be left alone, in seconds; None where it does not say.

    A date is read against the reply's own `Date`, so that nobody's clock matters.
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
            seconds = span(detail["retryDelay"])
            if seconds is not None:
                return _bounded(seconds)
    found = _WAIT.search(said(body))
    return None if found is None else _bounded(span(found[1]) or 0.0)


def span(text: str) -> float | None:
    """`12ms`, `7.66s`, `2m59.56s` in seconds; None for anything else."""
    found = _SPAN.findall(text)
    return sum(float(number) * _UNITS[unit] for number, unit in found) if found else None


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


def _codes(error: Mapping[str, Any]) -> list[int | str]:
    found: list[int | str] = []
    for name in ("code", "status_code", "status", "type", "reason"):
        value = error.get(name)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
            value = int(value)
        if isinstance(value, int | str) and not isinstance(value, bool):
            found.append(value)
    return found


def _name(status: int) -> str:
    if status in (429, 529):
        return f"too busy ({status})"
    return f"the server failed ({status})" if status else "the reply holds an error"
