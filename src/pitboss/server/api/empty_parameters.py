"""Lets a parameter of the query without a value count as left out, because forms and generated clients send it so."""

from typing import Any

from pitboss.server.access.writes import API


class WithoutEmptyParameters:
    """An ASGI middleware that removes them from requests to the API."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["query_string"] and scope["path"].startswith(f"{API}/"):
            # In place: what is around this reads from the same scope which route was taken.
            scope["query_string"] = _without_empty(scope["query_string"])
        await self._app(scope, receive, send)


def _without_empty(query: bytes) -> bytes:
    return b"&".join(parameter for parameter in query.split(b"&") if parameter.partition(b"=")[2])
