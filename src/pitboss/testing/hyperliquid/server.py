"""The fake exchange over HTTP and WebSocket on this machine: `/info`, `/exchange`, `/ws`, and `/control` for tests and demos.

Time is the wall clock's unless it is advanced by hand (`/control` `advance` adds to it).
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import orjson
from aiohttp import WSMsgType, web

from pitboss.core.instant import Instant
from pitboss.testing.hyperliquid.control import act
from pitboss.testing.hyperliquid.exchange import FakeExchange
from pitboss.testing.hyperliquid.faults import FaultPlan
from pitboss.testing.hyperliquid.gateway import UNREADABLE, Gateway
from pitboss.testing.hyperliquid.streams import StreamHub, StreamSession

MOST_BYTES = 1 << 20
HOLD_S = 120
"""How long a request that is never answered is held open."""
PUMP_S = 0.05


class FakeServer:
    """One exchange behind sockets. `now` gives milliseconds; the exchange follows it, plus what `advance` added."""

    def __init__(
        self, exchange: FakeExchange, now: Callable[[], Instant] | None, plan: FaultPlan | None = None
    ) -> None:
        self.exchange = exchange
        self.gateway = Gateway(exchange, plan)
        self.hub = StreamHub(self.gateway)
        self.url = ""
        self._now = now
        self._offset = exchange.now - now() if now is not None and exchange.now > now() else 0
        self._sockets: set[web.WebSocketResponse] = set()
        self._released = asyncio.Event()

    def catch_up(self) -> None:
        """Let the exchange live up to now; a clock that was not given stands still."""
        if self._now is not None:
            self.exchange.advance(self._now() + self._offset)

    def advance(self, ms: int) -> None:
        """Let time pass at once."""
        self._offset += ms
        self.exchange.advance(self.exchange.now + ms)

    def routes(self) -> list[web.RouteDef]:
        """What the server answers."""
        return [
            web.post("/info", self._post),
            web.post("/exchange", self._post),
            web.get("/ws", self._websocket),
            web.post("/control", self._control),
            web.get("/control", self._control),
        ]

    async def pump(self) -> None:
        """Keep the exchange at the clock's time, so that streams flow and orders fire without any request."""
        while True:
            self.catch_up()
            await asyncio.sleep(PUMP_S)

    async def stop(self) -> None:
        """Close what is open."""
        self._released.set()
        for socket in list(self._sockets):
            await socket.close()

    async def _post(self, request: web.Request) -> web.StreamResponse:
        try:
            body = orjson.loads(await request.read())
        except orjson.JSONDecodeError:
            return web.Response(status=422, text=UNREADABLE)
        self.catch_up()
        delivery = self.gateway.handle(request.path, body)
        if delivery.lost == "connection":
            return await self._abort(request)
        wait = HOLD_S if delivery.lost else delivery.delay_ms / 1_000
        if wait:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._released.wait(), wait)
        if delivery.lost:
            return await self._abort(request)
        kind = "text/html" if delivery.text.startswith("<") else "application/json"
        return web.Response(status=delivery.status, text=delivery.text, content_type=kind)

    async def _abort(self, request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        raise asyncio.CancelledError

    async def _websocket(self, request: web.Request) -> web.StreamResponse:
        self.catch_up()
        if self.gateway.conditions.outage() is not None:
            return web.Response(status=502, text="Bad Gateway")
        socket = web.WebSocketResponse(max_msg_size=MOST_BYTES)
        await socket.prepare(request)
        self._sockets.add(socket)
        outbox: asyncio.Queue[str | bool] = asyncio.Queue()
        session = self.hub.connect(outbox.put_nowait, outbox.put_nowait)
        sender = asyncio.create_task(_send(socket, request, outbox))
        try:
            async for message in socket:
                if message.type == WSMsgType.TEXT:
                    self._receive(session, message.data)
        finally:
            self.hub.disconnect(session)
            self._sockets.discard(socket)
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)
        return socket

    def _receive(self, session: StreamSession, text: str) -> None:
        self.catch_up()
        if not session.is_half_open:
            self.hub.receive(session, text)

    async def _control(self, request: web.Request) -> web.StreamResponse:
        self.catch_up()
        try:
            command: Any = orjson.loads(await request.read()) if request.method == "POST" else {"do": "truth"}
            result = act(self, command)
        except (ValueError, KeyError, TypeError, ArithmeticError) as error:
            return web.json_response({"error": str(error)}, status=400)
        return web.json_response(result)


async def _send(socket: web.WebSocketResponse, request: web.Request, outbox: "asyncio.Queue[str | bool]") -> None:
    """Send what a session has to say; True ends the connection abruptly, False with a close frame."""
    while True:
        item = await outbox.get()
        if isinstance(item, str):
            await socket.send_str(item)
        elif item:
            if request.transport is not None:
                request.transport.abort()
            return
        else:
            await socket.close()
            return


@asynccontextmanager
async def serving(
    exchange: FakeExchange,
    plan: FaultPlan | None = None,
    now: Callable[[], Instant] | None = None,
    port: int = 0,
) -> AsyncIterator[FakeServer]:
    """Serve an exchange on 127.0.0.1 for the duration of the block. Without `now`, time passes by `server.advance` alone."""
    server = FakeServer(exchange, now, plan)
    app = web.Application(client_max_size=MOST_BYTES)
    app.add_routes(server.routes())
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    pump = asyncio.create_task(server.pump()) if now is not None else None
    try:
        yield server
    finally:
        if pump is not None:
            pump.cancel()
            await asyncio.gather(pump, return_exceptions=True)
        await server.stop()
        await runner.cleanup()
