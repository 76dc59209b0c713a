"""What a provider's error means for a call: retry it, give it up, or ask a person to correct something.

Pure: status, body and headers in, a `Failure` out; shared by every client that calls a provider. A mistake of the model
itself (a tool call that the provider rejected, a refusal) is not a failure: the readers of replies return a reply for it.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from pitboss.core.errors import BudgetExceeded, ModelUnavailable, TransientError, UserError
from pitboss.core.noun import noun
from pitboss.models.error_bodies import error_codes, error_message, error_of
from pitboss.models.retry_after import retry_after_s

Reaction = Literal["retry", "give_up", "unavailable", "user", "budget"]
NO_HEADERS: Mapping[str, str] = MappingProxyType({})

_RETRIED = frozenset({408, 409, 425, 429})
_NAMES_MODEL = re.compile(r"model", re.IGNORECASE)
_NO_MODEL = re.compile(
    r"(model|deployment)\b.{0,120}(not (found|exist)|does ?n[o']t exist|unknown|is not a valid|invalid|decommissioned"
    r"|not available)|(unknown|invalid|no such|not a valid) model|no endpoints found"
    r"|on-demand throughput",
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
_UNSUPPORTED = re.compile(
    r"(does|do|is|are) not support|not supported|unsupported|unrecognized|unknown (parameter|field|argument|name)"
    r"|extra (inputs|fields)|unexpected keyword",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"context[_ ](length|window|size)|maximum context|too many tokens|prompt is too long|too large|token limit"
    r"|reduce the length|(input length|token count).{0,60}exceeds",
    re.IGNORECASE,
)
_MODEL_CODES = frozenset(
    {"model_not_found", "model_not_exist", "unknown_model", "invalid_model", "model_decommissioned"}
)
_MONEY_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "insufficient_balance", "billing_error"})
_KEY_CODES = frozenset({"invalid_api_key", "authentication_error", "unauthenticated", "api_key_invalid"})
_BUSY_CODES = frozenset(
    {"rate_limit_exceeded", "rate_limit_error", "overloaded_error", "resource_exhausted", "unavailable"}
)

NOT_CHARGED = frozenset({"unreachable", "bad_address", "certificate", "redirect", "paused", "budget"})
"""Codes of failures in which no provider processed the request."""


@noun
class Failure:
    """One failed call. `code` is a short stable word for the reason, `message` one line for a person.

    `wait_s` is the pause that the provider asked for, `status` the HTTP status (0 where there was no response).
    """

    reaction: Reaction
    code: str
    message: str
    hint: str = ""
    wait_s: float | None = None
    status: int = 0

    @property
    def may_be_charged(self) -> bool:
        """Whether the call may have cost something. Not where the provider refused it or was never reached."""
        return not (400 <= self.status < 500 and self.status != 408) and self.code not in NOT_CHARGED

    def error(self) -> UserError | TransientError | BudgetExceeded:
        """The exception that stands for this failure at the public port."""
        if self.reaction == "user":
            return UserError(self.message, self.hint)
        if self.reaction == "unavailable":
            return ModelUnavailable(self.message)
        return BudgetExceeded(self.message) if self.reaction == "budget" else TransientError(self.message)


def classify(status: int, body: object, headers: Mapping[str, str] = NO_HEADERS, name: str = "the provider") -> Failure:
    """Judge an error response. `body` is parsed JSON, or the raw text where it is not JSON; `name` begins the message.

    A status below 400 means that the error arrived inside a response that began well; the error's own code is the status.
    """
    error = error_of(body)
    codes = error_codes(error)
    message = error_message(body)
    if status < 300:
        status = next((code for code in codes if isinstance(code, int) and 400 <= code < 600), 0)
    if 300 <= status < 400:
        return Failure(
            "user",
            "redirect",
            f"{name}: the address redirects elsewhere ({status}), which is never followed",
            "check the base URL of the provider",
            status=status,
        )
    lower_codes = {code.lower() for code in codes if isinstance(code, str)}
    suffix = f": {message}" if message else ""
    # Google reports a quota as used up when only this minute's is, and then says how long to wait.
    no_money = status in (400, 403, 429) and _NO_MONEY.search(message) and retry_after_s(body, NO_HEADERS) is None
    if status == 402 or lower_codes & _MONEY_CODES or no_money:
        return Failure(
            "user", "no_money", f"{name}: the account has no money or quota left{suffix}", _PAY, status=status
        )
    if status == 401 or lower_codes & _KEY_CODES or (status in (400, 403) and _BAD_KEY.search(message)):
        # The provider's message is left out: some repeat the key.
        return Failure("user", "bad_key", f"{name}: the key was refused", _KEY, status=status)
    if lower_codes & _MODEL_CODES or (status in (400, 404, 422) and _NO_MODEL.search(message)):
        return Failure("user", "unknown_model", f"{name}: no such model{suffix}", _CHOOSE, status=status)
    if status == 404:
        if _NAMES_MODEL.search(message) or lower_codes & {"not_found_error"}:
            return Failure("user", "unknown_model", f"{name}: no such model{suffix}", _CHOOSE, status=404)
        return Failure("user", "bad_address", f"{name}: nothing answers at this address{suffix}", _ADDRESS, status=404)
    if (
        status in _RETRIED
        or status in (0, 200)
        or (status >= 500 and status not in (501, 505))
        or lower_codes & _BUSY_CODES
    ):
        wait_s = retry_after_s(body, headers) if status >= 400 else None
        code = "busy" if status in (429, 529, 503) or lower_codes & _BUSY_CODES else "server"
        return Failure("retry", code, f"{name}: {_status_text(status)}{suffix}", wait_s=wait_s, status=status)
    if status == 413 or _TOO_LONG.search(message) or "context_length_exceeded" in lower_codes:
        return Failure("give_up", "too_long", f"{name}: the question is too long{suffix}", status=status)
    if status == 403:
        return Failure("user", "forbidden", f"{name}: not allowed with this key{suffix}", _KEY, status=status)
    if status in (400, 422) and (error.get("param") or _UNSUPPORTED.search(message)):
        return Failure("user", "bad_setting", f"{name}: a setting is not accepted{suffix}", _SETTING, status=status)
    return Failure("give_up", "bad_request", f"{name}: the request was refused ({status}){suffix}", status=status)


_PAY = "top up the account, wait for the quota to renew, or choose another model"
_KEY = "set the right key: `pitboss secrets set NAME`, or the provider's environment variable"
_CHOOSE = "see the provider's list of models; `pitboss models list` shows the providers"
_SETTING = "check model_settings of the skill, or choose a model that accepts them"
_ADDRESS = "check the base URL; it usually ends in /v1"


def malformed(name: str, reason: str) -> Failure:
    """A response that is not a reply. It is retried, because most of them are caused by proxies on the way."""
    return Failure("retry", "malformed", f"{name}: {reason}")


def _status_text(status: int) -> str:
    if status in (429, 529):
        return f"too busy ({status})"
    return f"the server failed ({status})" if status else "the reply holds an error"
