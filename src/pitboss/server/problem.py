"""Errors of the API as `application/problem+json`: `code`, `detail` and `hint`, as the command line words them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from pitboss.bootstrap.redact import REDACTOR
from pitboss.core.errors import BudgetExceeded, InvariantError, TransientError, UserError
from pitboss.store.retry import Unreachable

if TYPE_CHECKING:
    from fastapi import Response

BUG = 500
"""The status of errors that are bugs in pitboss; they are logged (`error_log.py`)."""
MEDIA_TYPE = "application/problem+json"
BUSY_WAIT_S = 2
"""After how long a request that found the database busy should be sent again; the database itself was waited for already."""
_OPTION = re.compile(r"(?<!\S)--([a-z][a-z-]*[a-z])")
_ITEM = re.compile(r"(?<!\S)--(set|vary) (?=\S)")
"""Options whose values are the items of a list in the API."""
TITLES = {
    400: "Bad request",
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Too large",
    415: "Unsupported type",
    422: "Invalid input",
    429: "Too many requests",
    500: "Internal error",
    503: "Not available now",
}


class ProblemDocument(BaseModel):
    """An error: what went wrong, and what to do about it."""

    type: str = "about:blank"
    title: str = Field(examples=["Invalid input"])
    status: int = Field(examples=[422])
    code: str = Field(examples=["user_error"], description="A stable name of the kind of error.")
    detail: str = Field(examples=["the range is empty: to is not after from"])
    hint: str = Field("", examples=["give a later `to`"])
    errors: list[dict[str, Any]] = Field(default_factory=list, description="One entry for each invalid field.")
    retry_after_s: int | None = Field(None, description="After how many seconds a limit on requests lets more through.")
    estimate: dict[str, Any] | None = Field(None, description="The estimated cost that has to be confirmed.")


class Problem(Exception):
    """An error of a request, with its HTTP status."""

    def __init__(self, status: int, code: str, detail: str, hint: str = "", **more: Any) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.hint, self.more = status, code, detail, hint, more


def without_options(text: str) -> str:
    """A message that names options of the command line, with the fields of the API instead; whole commands stay as they are."""
    parts = text.split("`")
    return "`".join(
        part if index % 2 and part.startswith("pitboss ") else _with_fields(part, is_first=not index)
        for index, part in enumerate(parts)
    )


def _with_fields(part: str, is_first: bool) -> str:
    """A list field is named where a message begins with it; elsewhere its item is written as it is given."""
    part = _ITEM.sub(lambda option: f"{option[1]}: " if is_first and not option.start() else "", part)
    return _OPTION.sub(lambda option: option[1].replace("-", "_"), part)


def without_location(problem: Problem, location: str) -> Problem:
    """A problem whose texts do not tell where the database is."""
    detail, hint = (text.replace(location, "the database") for text in (problem.detail, problem.hint))
    return Problem(problem.status, problem.code, detail, hint, **problem.more)


@contextmanager
def refused_as(status: int, code: str) -> Iterator[None]:
    """Gives a refusal inside the block this status. A database that is away is no refusal and passes: see `problem_of`."""
    try:
        yield
    except Unreachable:
        raise
    except UserError as error:
        raise Problem(status, code, error.message, error.hint) from None


def problem_of(error: Exception) -> Problem:
    """The problem that an error of pitboss is shown as. The codes are the names of docs/errors.md in snake case."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, Unreachable):  # the words of the error name a file of the server
        hint = f"try again in {BUSY_WAIT_S} s"
        return Problem(503, "transient_error", "the database is busy or away", hint, retry_after_s=BUSY_WAIT_S)
    if isinstance(error, UserError):
        return Problem(422, "user_error", without_options(error.message), without_options(error.hint))
    if isinstance(error, BudgetExceeded):
        return Problem(409, "budget_exceeded", str(error), "raise the setting daily_usd, or wait until tomorrow")
    if isinstance(error, TransientError):
        return Problem(503, "transient_error", str(error), "try again")
    if isinstance(error, InvariantError):
        return Problem(BUG, "invariant_error", str(error))
    return Problem(BUG, "internal_error", "this is a bug in pitboss", "the log of the server tells more")


def problem_document(problem: Problem) -> dict[str, Any]:
    """The problem as plain values, without secrets."""
    return {
        "type": "about:blank",
        "title": TITLES.get(problem.status, "Error"),
        "status": problem.status,
        "code": problem.code,
        "detail": REDACTOR.redact(problem.detail),
        "hint": REDACTOR.redact(problem.hint),
        **problem.more,
    }


def problem_response(problem: Problem, headers: dict[str, str] | None = None) -> "Response":
    """The HTTP response of a problem, without secrets."""
    from fastapi.responses import JSONResponse

    headers = {"Cache-Control": "no-store", **retry_headers(problem), **(headers or {})}
    return JSONResponse(problem_document(problem), problem.status, headers, MEDIA_TYPE)


def retry_headers(problem: Problem) -> dict[str, str]:
    """The header that tells when to try again, where that is known."""
    return {"Retry-After": str(problem.more["retry_after_s"])} if "retry_after_s" in problem.more else {}


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors that a route declares, besides those that every route may give."""
    return {
        status: {"model": ProblemDocument, "description": TITLES[status], "content": {MEDIA_TYPE: {}}}
        for status in sorted({400, 401, 403, 413, 422, 429, 500, 503, *statuses})
    }
