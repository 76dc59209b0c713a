"""The pauses of the fetcher between attempts at one request."""

import asyncio

import pytest
from aiohttp import web
from source_servers import FakeTime, closing, serving_app

from pitboss.core.errors import UserError
from pitboss.data.fetch import LONGEST_RETRY_AFTER_S, Query, address


def pauses(retry_after: str | None, failures: int = 1) -> list[float]:
    """The pauses of a client whose server first replies with 429 this many times."""
    replies = iter([429] * failures + [200])

    async def reply(_request: web.Request) -> web.Response:
        status = next(replies)
        headers = {"Retry-After": retry_after} if status == 429 and retry_after is not None else {}
        return web.Response(status=status, headers=headers, body=b"{}")

    app, clock = web.Application(), FakeTime(0)
    app.router.add_get("/", reply)
    fetcher = clock.fetcher()
    with serving_app(app) as url:
        asyncio.run(closing(fetcher, fetcher.ask(Query(url), lambda reply: reply.json())))
    return clock.paused


@pytest.mark.parametrize(("retry_after", "seconds"), [("7", 7.0), ("0", 0.0), ("1e9", LONGEST_RETRY_AFTER_S)])
def test_the_pause_is_at_least_what_the_server_requests_but_not_hours(retry_after: str, seconds: float) -> None:
    (pause,) = pauses(retry_after)
    assert seconds <= pause <= seconds + 1


@pytest.mark.parametrize("retry_after", [None, "soon", "-1", "nan", "inf"])
def test_without_a_usable_request_of_the_server_the_bound_of_the_pause_doubles(retry_after: str | None) -> None:
    times = pauses(retry_after, failures=7)
    assert all(0 <= pause <= bound for pause, bound in zip(times, (0.5, 1, 2, 4, 8, 16, 30), strict=True))
    assert max(times) > 1


@pytest.mark.parametrize("text", ["http://[::1", "ftp://host", "host"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not an address"):
        address(text)
