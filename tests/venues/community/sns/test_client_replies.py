"""The runner's client of the forum: whatever a server answers, a call returns an object or fails as unavailable."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from pitboss.bootstrap.machine import SystemClock
from pitboss.venues.community.sns.client import SnsClient, SnsUnavailable

CALLS: dict[str, Callable[[SnsClient], Any]] = {
    "context": lambda client: client.context(5),
    "source": lambda client: client.contract_source(contract_id="k"),
    "thread": lambda client: client.create_thread("c", "t", "b", "DISCUSSION", "key"),
    "comment": lambda client: client.create_comment("t", "b", "DISCUSSION", "key"),
    "status": lambda client: client.set_request_status("t", "resolved", "key"),
    "issued": lambda client: client.mark_comment_issued("m", "key"),
}
ODD: list[Any] = [
    {},
    [],
    None,
    5,
    {"nonce": None},
    {"nonce": "a\r\nx-evil: 1"},
    {"nonce": "n" * 5_000},
    {"nonce": "\u2028"},
]
ODD += [
    {"nonce": "fine", name: value} for name in ("context", "contract", "thread", "comment") for value in (None, [], "x")
]


@pytest.mark.parametrize("protocol", [1, 2])
def test_a_reply_of_another_shape_is_no_answer(protocol: Any) -> None:
    reply: list[Any] = [None]

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        assert "x-evil" not in request.headers
        return web.json_response(reply[0])

    async def story() -> None:
        runner = web.ServerRunner(web.Server(answer))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        try:
            async with SnsClient(f"http://127.0.0.1:{port}", "a", "rnr_" + "0" * 64, SystemClock(), protocol) as client:
                for reply[0] in ODD:
                    for call in CALLS.values():
                        with pytest.raises(SnsUnavailable):
                            await call(client)
        finally:
            await runner.cleanup()

    asyncio.run(story())
