"""Exceptions of pydantic-ai's model classes and of our own gate → a `Failure`. The one place that looks at them.

What a status and a body mean is judged in `models.failures`, as for every other provider.
"""

from collections.abc import Mapping

import httpx2
from pydantic_ai import exceptions

from pitboss.models.failures import NOTHING, Failure, classify, malformed


class Stopped(Exception):
    """A reply that is not handed to the vendor's client: an error, or nothing that could be read (`why`)."""

    def __init__(
        self, why: str = "", status: int = 0, body: object = None, headers: Mapping[str, str] = NOTHING
    ) -> None:
        super().__init__(why or f"status {status}")
        self.why = why
        self.status = status
        self.body = body
        self.headers = headers

    def failure(self, asked: str) -> Failure:
        """What it means for the call."""
        return malformed(asked, self.why) if self.why else classify(self.status, self.body, self.headers, asked)


def failure_of(error: Exception, asked: str) -> Failure:
    """What an error of a request means. `asked` is the model as the person wrote it."""
    stopped = _stopped(error)
    if stopped is not None:
        return stopped.failure(asked)
    if isinstance(error, exceptions.UserError | exceptions.ModelRequestRejectedError):
        return Failure("user", "bad_setting", f"{asked}: {_line(error)}", "look at model_settings of the skill")
    if isinstance(error, exceptions.ModelTimeoutError):
        return Failure("retry", "timeout", f"{asked}: no reply in time")
    if isinstance(error, exceptions.ModelConnectionError | httpx2.HTTPError):
        return Failure("retry", "network", f"{asked}: the connection failed")
    # The vendors' clients raise all kinds of things over a reply that is not what its provider documents.
    return malformed(asked, f"the reply could not be read ({type(error.__cause__ or error).__name__})")


def _stopped(error: BaseException | None) -> Stopped | None:
    """Ours, below what the clients in between made of it."""
    for _ in range(8):
        if error is None or isinstance(error, Stopped):
            return error
        error = error.__cause__ or error.__context__
    return None


def late(asked: str, seconds: float) -> Failure:
    """No reply within the time of one try."""
    return Failure("retry", "timeout", f"{asked}: no reply within {seconds:g} s")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
