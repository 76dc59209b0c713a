"""`FaultyRpc`: a JSON-RPC transport between a client and an `EmbeddedEvmNode` that loses, delays, repeats and falsifies answers.

Which request gets which fault follows from one seed, so that a failure can be run again. `serve_rpc` offers any transport over
HTTP on localhost.
"""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from aiohttp import web

from pitboss.core.errors import TransientError
from pitboss.testing.evm_node import EmbeddedEvmNode

T = TypeVar("T")
Post = Callable[[bytes], Awaitable[tuple[bytes, int]]]

ANY_REQUEST = (
    "lose_request",
    "lose_answer",
    "delay",
    "repeat",
    "error",
    "wrong_id",
    "garbage",
    "reorganise",
    "drop_pool",
)
BY_METHOD = {
    "eth_chainId": ("wrong_chain",),
    "eth_getTransactionReceipt": ("null", "other_receipt", "false_success"),
    "eth_getTransactionByHash": ("null",),
    "eth_getTransactionCount": ("count_back", "count_ahead"),
    "eth_blockNumber": ("count_back", "count_ahead"),
    "eth_sendRawTransaction": ("false_accept", "false_error"),
}
MOST_REORGANISED = 12


class SeededChoices:
    """Numbers that follow from a seed alone."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._number = 0

    def below(self, bound: int) -> int:
        """A number from 0 up to but not including `bound`."""
        self._number += 1
        data = hashlib.sha256(f"{self._seed}:{self._number}".encode()).digest()
        return int.from_bytes(data[:8], "big") % bound

    def of(self, values: Sequence[T]) -> T:
        """One of the values."""
        return values[self.below(len(values))]


class FaultyRpc:
    """Breaks about `percent` of all requests. `faults` counts what was done."""

    def __init__(self, node: EmbeddedEvmNode, seed: str, percent: int) -> None:
        self.node = node
        self.percent = percent
        self.faults: Counter[str] = Counter()
        self._choices = SeededChoices(seed)
        self._first_height = node.height()
        self._late: list[bytes] = []
        self._connection = 1

    async def post(self, body: bytes) -> tuple[bytes, int]:
        """Carry one request, or break it."""
        if self._late and self._choices.below(3) == 0:
            self.node.answer(self._late.pop(0))
        method = json.loads(body)["method"]
        if self._choices.below(100) >= self.percent:
            return self.node.answer(body), self._connection
        fault = self._choices.of((*ANY_REQUEST, *(BY_METHOD.get(method, ()) * 4)))
        self.faults[fault] += 1
        return self._break(fault, body), self._connection

    def heal(self) -> None:
        """Deliver what is late and break nothing any more."""
        self.percent = 0
        while self._late:
            self.node.answer(self._late.pop(0))

    def _break(self, fault: str, body: bytes) -> bytes:
        if fault == "lose_request":
            self._connection += 1
            raise TransientError("the request was lost")
        if fault == "delay":
            self._late.append(body)
            raise TransientError("the answer did not come in time")
        if fault == "reorganise":
            deepest = min(MOST_REORGANISED, self.node.height() - self._first_height)
            if deepest > 0:
                self.node.reorganise(1 + self._choices.below(deepest), keep=self._choices.below(2) == 0)
        elif fault == "drop_pool":
            self.node.drop_pool()
        if fault in ("false_accept", "false_error"):  # the node answers without having done anything
            return self._falsified(
                fault, json.dumps({"id": json.loads(body)["id"], "result": "0x" + "00" * 32}).encode()
            )
        if fault == "repeat":
            self.node.answer(body)
        reply = self.node.answer(body)
        if fault == "lose_answer":
            raise TransientError("the answer was lost")
        return self._falsified(fault, reply)

    def _falsified(self, fault: str, reply: bytes) -> bytes:
        content: dict[str, Any] = json.loads(reply)
        result = content.get("result")
        if fault == "garbage":
            return reply[: len(reply) // 2]
        if fault == "wrong_id":
            content["id"] = -1
        elif fault in ("error", "false_error"):
            return json.dumps({"id": content["id"], "error": {"code": -32000, "message": "internal error"}}).encode()
        elif fault == "wrong_chain":
            content["result"] = "0x1"
            self._connection += 1
        elif fault == "null":
            content["result"] = None
        elif fault in ("count_back", "count_ahead") and isinstance(result, str):
            step = 1 + self._choices.below(5)
            content["result"] = hex(max(0, int(result, 16) + (step if fault == "count_ahead" else -step)))
        elif fault == "other_receipt" and isinstance(result, dict):
            result["transactionHash"] = "0x" + "77" * 32
        elif fault == "false_success" and isinstance(result, dict):
            result["blockHash"] = "0x" + "88" * 32
        return json.dumps(content).encode()


@asynccontextmanager
async def serve_rpc(post: Post) -> AsyncIterator[str]:
    """Serve a transport on localhost until the block ends. A request that it loses ends its connection."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            reply, _ = await post(await request.read())
        except TransientError:
            if request.transport is not None:
                request.transport.abort()
            raise asyncio.CancelledError from None
        return web.Response(body=reply, content_type="application/json")

    app = web.Application()
    app.router.add_post("/", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()
