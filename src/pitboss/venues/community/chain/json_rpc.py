"""A JSON-RPC client with the chain id pinned: bounded, one attempt for each request, every answer checked for its shape.

The chain id is checked on every new connection, before anything that came over it is used. An error object of the node is a
value (`RpcRejection`); everything else that goes wrong is a `TransientError`. What a node says is never trusted further than
its form: `node_reader.py` compares answers with each other.
"""

import json
from collections.abc import Sequence
from typing import Any, Protocol, cast

import aiohttp
import orjson

from pitboss.core.errors import TransientError
from pitboss.core.noun import noun
from pitboss.core.plain_http import check_plain_http
from pitboss.venues.community.addresses import split_address

MOST_REPLY_BYTES = 8 << 20
TIMEOUT_S = 20.0


@noun
class RpcRejection:
    """An error object of a node. The text is a stranger's."""

    code: int
    message: str


class RpcTransport(Protocol):
    """Carries one request. The number tells connections apart."""

    async def post(self, body: bytes) -> tuple[bytes, int]: ...


class HttpTransport:
    """Posts to one address over one connection at a time. The address may hold a key: no message repeats it."""

    def __init__(self, url: str, http_hosts: str = "", timeout_s: float = TIMEOUT_S) -> None:
        parts = split_address(url, "the address of the node")
        check_plain_http(parts.scheme, parts.hostname, "the address of the node", http_hosts)
        self._url = url
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None
        self._connections = 0

    async def post(self, body: bytes) -> tuple[bytes, int]:
        """Send one request and return the reply with the number of its connection."""
        try:
            async with self._opened().post(
                self._url, data=body, headers={"Content-Type": "application/json"}, allow_redirects=False
            ) as response:
                reply = await response.content.read(MOST_REPLY_BYTES + 1)
                while len(reply) <= MOST_REPLY_BYTES and (more := await response.content.read(MOST_REPLY_BYTES)):
                    reply += more
                if len(reply) > MOST_REPLY_BYTES:
                    raise TransientError("the node's answer is too long")
                if response.status != 200:
                    raise TransientError(f"the node answers with status {response.status}")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise TransientError(f"the node cannot be reached: {type(error).__name__}") from None
        return reply, self._connections

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            trace = aiohttp.TraceConfig()

            async def count(*_: object) -> None:
                self._connections += 1

            trace.on_connection_create_end.append(count)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=1),
                timeout=aiohttp.ClientTimeout(total=self._timeout_s),
                trace_configs=[trace],
            )
        return self._session

    async def close(self) -> None:
        """Close the connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None


class JsonRpcClient:
    """Asks one node about one chain."""

    def __init__(self, transport: RpcTransport, chain_id: int) -> None:
        self.chain_id = chain_id
        self._transport = transport
        self._number = 0
        self._checked_connection: int | None = None

    async def ask(self, method: str, params: Sequence[object]) -> Any:
        """Return the result of one request, or an `RpcRejection`."""
        answer, connection = await self._post(method, params)
        if connection != self._checked_connection:
            await self._check_chain(connection)
        return answer

    async def check_chain(self) -> None:
        """Check the chain id before a request that must not reach another chain."""
        _, connection = await self._post("eth_blockNumber", [])
        await self._check_chain(connection)

    async def _check_chain(self, connection: int) -> None:
        self._checked_connection = None
        answer, second = await self._post("eth_chainId", [])
        if not isinstance(answer, str) or answer != hex(self.chain_id):
            raise TransientError(f"the node is not one of chain {self.chain_id}")
        if second != connection:
            raise TransientError("the connection to the node was replaced before its chain was checked")
        self._checked_connection = connection

    async def _post(self, method: str, params: Sequence[object]) -> tuple[Any, int]:
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": list(params)}
        reply, connection = await self._transport.post(json.dumps(request).encode())
        try:
            content = orjson.loads(reply)
        except ValueError:
            raise TransientError("the node's answer is not JSON") from None
        fields = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
        if fields.get("id") != self._number:
            raise TransientError("the node answers another request")
        error = fields.get("error")
        if isinstance(error, dict):
            code, message = cast("dict[str, Any]", error).get("code"), cast("dict[str, Any]", error).get("message")
            return RpcRejection(code if type(code) is int else 0, str(message)[:300]), connection
        if "result" not in fields:
            raise TransientError("the node's answer has no result")
        return fields["result"], connection
