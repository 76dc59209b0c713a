"""A seeded fake of the Hyperliquid exchange: signed actions, info requests and streams, with faults, in virtual or wall time.

It is an independent implementation from the venue's documentation. It imports nothing of `pitboss.venues` and none of the
signing code of `pitboss.signer`, so that a client that agrees with it has been checked by a second reading of the same rules.

Three ways to reach one `FakeExchange`:

1. `python -m pitboss.testing.hyperliquid --port P`: HTTP and WebSocket in wall time; `/control` moves prices and injects faults.
2. `async with serving(exchange) as server`: the same server inside a test (`server.url`).
3. `InProcessTransport(exchange, clock)`: no sockets, virtual time, for many requests a second.

What a client under test needs of the third (structural; nothing of this package has to be imported by product code):

    class ...(Protocol):
        async def post(self, path: str, body: dict[str, Any], timeout_s: float) -> tuple[int, str]: ...
            # path is "/info" or "/exchange"; the answer is (HTTP status, text of the body), a NamedTuple `TransportReply`
            # raises TimeoutError after timeout_s of virtual time, ConnectionError where no connection came about or it broke

    class ...(Protocol):
        def now(self) -> int: ...                       # milliseconds since 1970, as `Clock` of pitboss.core.ports
        async def sleep(self, seconds: float) -> None: ...

A client that has several tasks runs under `run_in_virtual_time(clock, coroutine)`, where `asyncio.sleep` and
`asyncio.timeout` count virtual time too.
"""
