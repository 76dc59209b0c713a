"""Exceptions of pydantic-ai's model classes → a `Failure`. The one place that looks at them.

What a status and a body mean is judged in `models.failures`, as for every other provider.
"""

from collections.abc import Mapping

from pydantic_ai import exceptions

from pitboss.models.failures import Failure, classify, malformed

UNREADABLE = (
    exceptions.UnexpectedModelBehavior,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""What the vendors' clients raise over a reply that is not what its provider documents."""

# What errors inside a reply that began well (status 200) stand for; the vendors name no status there.
_NAMED = {"overloaded_error": 529, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504}


def failure_of(error: exceptions.ModelAPIError | exceptions.UserError, asked: str) -> Failure:
    """What an error of a request means. `asked` is the model as the person wrote it."""
    if isinstance(error, exceptions.UserError):
        return Failure("user", "bad_setting", f"{asked}: {_line(error)}", "look at model_settings of the skill")
    body = error.body
    if isinstance(error, exceptions.ModelHTTPError):
        headers: Mapping[str, str] = {} if error.in_stream else (error.headers or {})
        return classify(error.status_code, body, headers, asked)
    if error.provider_error_type in _NAMED:
        return classify(_NAMED[error.provider_error_type], body, {}, asked)
    if isinstance(error, exceptions.ModelTimeoutError):
        return Failure("retry", "timeout", f"{asked}: no reply in time")
    if isinstance(error, exceptions.ModelConnectionError):
        return Failure("retry", "network", f"{asked}: the connection failed")
    if isinstance(error, exceptions.ModelRequestRejectedError):
        return Failure("user", "bad_setting", f"{asked}: {_line(error)}", "look at model_settings of the skill")
    return unreadable(error, asked)


def unreadable(error: Exception, asked: str) -> Failure:
    """A reply that is no reply."""
    cause = error.__cause__ or error
    return malformed(asked, f"the reply could not be read ({type(cause).__name__})")


def late(asked: str, seconds: float) -> Failure:
    """No reply within the time of one try."""
    return Failure("retry", "timeout", f"{asked}: no reply within {seconds:g} s")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
