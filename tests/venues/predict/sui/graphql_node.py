"""A Sui node over HTTP: answers the writer's queries from `fake_chain` in the shapes of the published GraphQL schema.

It can lose replies on the wire.
"""

import asyncio
import base64
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from pitboss.core.errors import TransientError
from pitboss.venues.predict.sui.chain import Coin, Effects
from venues.predict.sui.fake_chain import FakeChain


@dataclass
class Node:
    """The node. `faults` has, by operation, the faults of its next requests: lost, hang, cut, garbage, busy, error."""

    chain: FakeChain
    faults: dict[str, list[str]] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    url: str = ""
    on_hang: Callable[[], None] = lambda: None
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        name = body["query"].split("(")[0].split()[1]
        self.requests.append((name, body["variables"]))
        fault = self.faults[name].pop(0) if self.faults.get(name) else ""
        if fault == "busy":
            return web.Response(status=503)
        if fault == "error":
            return web.json_response({"data": None, "errors": [{"message": "the request timed out"}]})
        try:
            data = await getattr(self, name.lower())(**body["variables"])
        except TransientError as error:
            return web.json_response({"data": None, "errors": [{"message": str(error)}]})
        if fault == "lost":
            request.transport.close()  # pyright: ignore[reportOptionalMemberAccess]
        if fault == "hang":
            self.on_hang()
            await self.stop.wait()
        if fault == "garbage":
            return web.Response(body=b'{"data": {"epo')
        return web.json_response({"data": data})

    async def ground(self, keys: list[Any], owner: str, coin: str, most: int) -> Any:
        assert coin == "0x2::coin::Coin<0x2::sui::SUI>"
        found = await self.chain.read_basis([key["address"] for key in keys], owner)
        objects = [
            None
            if key["address"] not in found.shared
            else {"address": key["address"], "owner": {"__typename": "Shared", "initialSharedVersion": 5}}
            for key in keys
        ]
        coins = [_coin(one) for one in found.coins[:most]]
        return {
            "chainIdentifier": found.chain_id,
            "epoch": {"epochId": found.epoch, "referenceGasPrice": str(found.gas_price)},
            "multiGetObjects": objects,
            "address": {"objects": {"nodes": coins}},
        }

    async def contents(self, keys: list[Any]) -> Any:
        found = await self.chain.contents([key["address"] for key in keys])
        return {
            "multiGetObjects": [
                None
                if key["address"] not in found
                else {"address": key["address"], "asMoveObject": {"contents": {"json": found[key["address"]]}}}
                for key in keys
            ]
        }

    async def coins(self, owner: str, coin: str, most: int) -> Any:
        found = await self.chain.coins(owner, coin.removeprefix("0x2::coin::Coin<").removesuffix(">"))
        return {"address": {"objects": {"nodes": [_coin(one) for one in found[:most]]}}}

    async def simulate(self, transaction: Any) -> Any:
        effects = await self.chain.simulate(base64.b64decode(transaction["bcs"]["value"]))
        outputs = [
            {"returnValues": [{"value": {"bcs": base64.b64encode(value).decode()}} for value in command]}
            for command in effects.outputs
        ]
        return {"simulateTransaction": {"effects": _effects(effects), "outputs": outputs if effects.ok else None}}

    async def execute(self, tx: str, signatures: list[str]) -> Any:
        (signature,) = signatures
        try:
            effects = await self.chain.execute(base64.b64decode(tx), signature)
        except TransientError as error:
            return {"executeTransaction": {"effects": None, "errors": [str(error)]}}
        return {"executeTransaction": {"effects": _effects(effects), "errors": None}}

    async def outcome(self, digest: str) -> Any:
        effects = await self.chain.outcome(digest)
        return {"transactionEffects": None if effects is None else _effects(effects)}

    async def consumer(self, id: str, version: int) -> Any:
        digest = await self.chain.consumer(id, version)
        if digest is None:
            return {"objectVersions": {"nodes": []}}
        changes = [
            {"address": "0x" + "5" * 64, "inputState": None},
            {"address": id, "inputState": {"version": version}},
        ]
        effects = {"digest": digest, "objectChanges": {"nodes": changes}}
        return {"objectVersions": {"nodes": [{"previousTransaction": {"effects": effects}}]}}

    async def epoch(self) -> Any:
        return {"epoch": {"epochId": await self.chain.epoch()}}


def _coin(coin: Coin) -> dict[str, Any]:
    json = {"id": coin.id, "balance": str(coin.balance)}
    return {"address": coin.id, "version": coin.version, "digest": coin.digest, "contents": {"json": json}}


def _effects(effects: Effects) -> dict[str, Any]:
    events = [
        {"contents": {"type": {"repr": f"0x{'ab' * 32}::predict::{event.name}"}, "json": dict(event.fields)}}
        for event in effects.events
    ]
    failure = {"abortCode": str(effects.code), "message": effects.error, "module": {"name": effects.module}}
    return {
        "digest": effects.digest,
        "status": "SUCCESS" if effects.ok else "FAILURE",
        "executionError": None if effects.ok else failure,
        "events": {"nodes": events},
    }


@contextmanager
def serving_node(chain: FakeChain) -> Iterator[Node]:
    """A node that listens until the end of the block."""
    node, loop, up = Node(chain), asyncio.new_event_loop(), threading.Event()

    async def serve() -> None:
        app = web.Application()
        app.router.add_post("/graphql", node.answer)
        runner = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        node.url = f"http://{host}:{port}/graphql"
        up.set()
        await node.stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert up.wait(10)
    try:
        yield node
    finally:
        loop.call_soon_threadsafe(node.stop.set)
        thread.join(10)
        loop.close()
