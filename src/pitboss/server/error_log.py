"""Logs the bugs that requests meet, once each and with the traceback, because the response does not show them.

The web server's own log is off: it would report every closed connection too. An entry names the route and not the path or the
body of the request, which may hold a secret; secrets in the traceback are removed as in every line of the log.
"""

import logging
from collections.abc import Iterator
from typing import Any

from sqlalchemy.exc import StatementError
from starlette.requests import ClientDisconnect

LOG = logging.getLogger("pitboss.server")


class ErrorLog:
    """An ASGI middleware that logs the errors of an app and raises them again. Streams pass through it unbuffered."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await self._app(scope, receive, send)
        except ClientDisconnect:
            raise
        except Exception as error:
            if scope["type"] == "http":
                log_failed_request(scope, error)
            raise


def log_failed_request(scope: Any, error: Exception) -> None:
    """Log an error of a request with its method and the template of its route."""
    log_bug("request failed", error, method=scope["method"], route=getattr(scope.get("route"), "path", ""))


def log_bug(message: str, error: Exception, **fields: object) -> None:
    """Log an error with its traceback, without the values of SQL statements."""
    for cause in _chain(error):
        if isinstance(cause, StatementError):
            cause.hide_parameters = True
    LOG.error(message, extra={"fields": {**fields, "error": type(error).__name__}}, exc_info=error)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
