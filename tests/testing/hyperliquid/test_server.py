"""The fake exchange over real HTTP and WebSocket, embedded in a test and as a program."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from forked_process import ForkedProcess
from pitboss.testing.hyperliquid.__main__ import main
from pitboss.testing.hyperliquid.faults import FaultPlan, FaultRule
from pitboss.testing.hyperliquid.server import FakeServer, serving
from pitboss.testing.hyperliquid.signatures import sign
from testing.hyperliquid.client import still_exchange, wire_order


@asynccontextmanager
async def server_and_session(*faults: FaultRule) -> AsyncIterator[tuple[FakeServer, aiohttp.ClientSession]]:
    async with (
        serving(still_exchange(), FaultPlan(faults, 1)) as server,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(10)) as session,
    ):
        yield server, session


async def post(session: aiohttp.ClientSession, url: str, body: Any) -> tuple[int, str]:
    async with session.post(url, json=body) as response:
        return response.status, await response.text()


def order_body(server: FakeServer, nonce: int = 0) -> dict[str, Any]:
    action = {"type": "order", "orders": [wire_order("BTC", True, "69000", "0.01", "Ioc")], "grouping": "na"}
    return sign(server.exchange.ready.agent_private_key, action, server.exchange.now + nonce)


async def next_message(socket: aiohttp.ClientWebSocketResponse, channel: str) -> Any:
    """The data of the next message of a channel."""
    async with asyncio.timeout(30):
        while True:
            message = json.loads(await socket.receive_str())
            if message["channel"] == channel:
                return message.get("data")


def test_info_and_exchange_are_answered_over_http() -> None:
    async def play() -> None:
        async with server_and_session() as (server, session):
            status, text = await post(session, server.url + "/info", {"type": "allMids"})
            assert (status, json.loads(text)["BTC"]) == (200, "68000.0")
            status, text = await post(session, server.url + "/exchange", order_body(server))
            assert "filled" in json.loads(text)["response"]["data"]["statuses"][0]
            status, text = await post(session, server.url + "/info", {"type": "nothing"})
            assert status == 422
            async with session.post(server.url + "/info", data=b"{") as response:
                assert response.status == 422

    asyncio.run(play())


def test_streams_flow_over_a_socket_and_fills_come_with_the_answer() -> None:
    async def play() -> None:
        async with server_and_session() as (server, session), session.ws_connect(server.url + "/ws") as socket:
            user = server.exchange.ready.master_address
            for wanted in ({"type": "userFills", "user": user}, {"type": "allMids"}):
                await socket.send_json({"method": "subscribe", "subscription": wanted})
            assert (await next_message(socket, "userFills"))["isSnapshot"] is True
            assert (await next_message(socket, "allMids"))["mids"]["BTC"] == "68000.0"
            await post(session, server.url + "/exchange", order_body(server))
            assert (await next_message(socket, "userFills"))["fills"][0]["sz"] == "0.01"
            await socket.send_json({"method": "ping"})
            await next_message(socket, "pong")
            server.advance(1_000)
            await next_message(socket, "allMids")
            await socket.send_json({"method": "unsubscribe", "subscription": {"type": "allMids"}})
            await next_message(socket, "subscriptionResponse")
            server.advance(62_000)
            message = await socket.receive()
            assert message.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)

    asyncio.run(play())


def test_faults_reach_the_client_as_broken_connections_statuses_and_silence() -> None:
    async def play() -> None:
        faults = (
            FaultRule("connection_reset", on=("allMids",), times=1),
            FaultRule("http_502_html", on=("meta",)),
            FaultRule("never_received", on=("userFees",)),
            FaultRule("ws_drop", after=1),
        )
        async with server_and_session(*faults) as (server, session):
            with pytest.raises(aiohttp.ClientError):
                await post(session, server.url + "/info", {"type": "allMids"})
            assert (await post(session, server.url + "/info", {"type": "meta"}))[0] == 502
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await post(session, server.url + "/info", {"type": "userFees", "user": "0x" + "1" * 40})
            async with session.ws_connect(server.url + "/ws") as socket:
                await socket.send_json({"method": "ping"})
                await next_message(socket, "pong")
                server.advance(5_000)
                message = await socket.receive()
                assert message.type in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR)

    asyncio.run(play())


def test_the_control_endpoint_moves_prices_and_time_and_begins_and_ends_faults() -> None:
    async def play() -> None:
        async with server_and_session() as (server, session):

            async def control(**command: Any) -> tuple[int, Any]:
                status, text = await post(session, server.url + "/control", command)
                return status, json.loads(text)

            await control(do="price", coin="BTC", price="68500")
            assert json.loads((await post(session, server.url + "/info", {"type": "allMids"}))[1])["BTC"] == "68500.0"
            before = (await control(do="status"))[1]["time"]
            assert (await control(do="advance", seconds=90))[1]["time"] == before + 90_000
            assert (await control(do="fault", kind="rate_limited", times=1))[0] == 200
            assert (await post(session, server.url + "/info", {"type": "allMids"}))[0] == 429
            await control(do="outage", on=True)
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await session.ws_connect(server.url + "/ws")
            await control(do="outage", on=False)
            assert (await post(session, server.url + "/exchange", order_body(server)))[0] == 200
            await control(do="agent", change="revoke")
            text = (await post(session, server.url + "/exchange", order_body(server, 1)))[1]
            assert "does not exist" in text
            await control(do="clear")
            async with session.get(server.url + "/control") as response:
                truth = await response.json()
            assert truth["positions"] == {"BTC": "0.01"}
            assert truth["identity_gap"] in ("0", "0.000000")
            for wrong in (
                {"do": "sing"},
                {"do": "fault", "kind": "rain"},
                {"do": "price"},
                {"do": "agent", "change": "x"},
            ):
                assert (await control(**wrong))[0] == 400

    asyncio.run(play())


def test_the_program_prints_its_address_and_a_ready_account_and_ends_on_a_signal(tmp_path: Path) -> None:
    faults = tmp_path / "faults.toml"
    faults.write_text('[[fault]]\nkind = "rate_limited"\non = ["meta"]\n')
    prices = tmp_path / "prices.json"
    prices.write_text(
        json.dumps({"BTC": [{"t": 0, "T": 59_999, "o": "61000", "h": "61000", "l": "61000", "c": "61000"}]})
    )
    options = ("--port", 0, "--seed", 5, "--symbols", "BTC", "--faults", faults, "--prices", prices)
    process = ForkedProcess("-m", "pitboss.testing.hyperliquid", *options)
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())

        async def play() -> None:
            async with aiohttp.ClientSession() as session:
                status, text = await post(session, ready["url"] + "/info", {"type": "allMids"})
                assert (status, json.loads(text)) == (200, {"BTC": "61000.0"})
                assert (await post(session, ready["url"] + "/info", {"type": "meta"}))[0] == 429
                _, text = await post(session, ready["url"] + "/info", {"type": "exchangeStatus"})
                nonce = json.loads(text)["time"]
                order = wire_order(0, True, "62000", "0.01", "Ioc", coins=("BTC",))
                action = {"type": "order", "orders": [order], "grouping": "na"}
                body = sign(ready["account"]["agent_private_key"], action, nonce, nonce + 10_000)
                _, text = await post(session, ready["url"] + "/exchange", body)
                assert "filled" in text
                async with session.ws_connect(ready["ws"]) as socket:
                    await socket.send_json({"method": "subscribe", "subscription": {"type": "bbo", "coin": "BTC"}})
                    assert await next_message(socket, "bbo")

        asyncio.run(play())
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    "options", [("--symbols", "NOPE"), ("--faults", "none.toml"), ("--deposit", "much"), ("--port", "70000")]
)
def test_the_program_says_what_is_wrong_with_its_options(
    options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["hyperliquid", "--history-days", "0", *options])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert options[1] in capsys.readouterr().err
