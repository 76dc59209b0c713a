"""`SignerClient`: asks the signing process over its socket. It is what the asking process has instead of a key."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from pitboss.core.errors import TransientError
from pitboss.core.noun import noun
from pitboss.signer.protocol import MEANINGS, MOST_LINE_BYTES, VERSION, SigningRefusal

TIMEOUT_S = 10.0
_HEX = re.compile(r"0x[0-9a-f]+")


@noun
class SignatureReply:
    """Signed bytes and their hash, as hexadecimal text with 0x."""

    raw: str
    hash: str


@noun
class SignerDescription:
    """Whose key the signing process holds, and for which chain."""

    address: str
    chain_id: int
    spend_left_wei: int
    transactions_left: int


class SignerClient:
    """One connection for each request. A lost answer is a `TransientError`: ask again with the same request id.

    `on_build` is called with the build of the signing process at every answer; empty if the answer has none.
    """

    def __init__(
        self, path: Path, timeout_s: float = TIMEOUT_S, on_build: Callable[[str], None] = lambda build: None
    ) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._on_build = on_build

    async def sign(
        self, scheme: str, request_id: str, payload: Mapping[str, object]
    ) -> SignatureReply | SigningRefusal:
        """Have a transaction signed, or return why it is refused."""
        reply = await self.ask_to_sign(scheme, request_id, payload)
        if isinstance(reply, SigningRefusal):
            return reply
        raw, tx_hash = reply.get("raw"), reply.get("hash")
        if not (isinstance(raw, str) and isinstance(tx_hash, str) and _HEX.fullmatch(raw) and _HEX.fullmatch(tx_hash)):
            raise TransientError("the signer's answer cannot be read")
        return SignatureReply(raw, tx_hash)

    async def describe(self) -> SignerDescription:
        """Return the address, the chain and what is left of the day's caps."""
        reply = await self.ask_for_description()
        try:
            return SignerDescription(
                str(reply["address"]),
                int(reply["chain_id"]),
                int(reply["spend_left_wei"]),
                int(reply["transactions_left"]),
            )
        except (KeyError, TypeError, ValueError):
            raise TransientError("the signer's answer cannot be read") from None

    async def ask_to_sign(
        self, scheme: str, request_id: str, payload: Mapping[str, object]
    ) -> dict[str, Any] | SigningRefusal:
        """Have a payload of any scheme signed; return the fields of the reply, or why it is refused."""
        return await self._ask({"op": "sign", "scheme": scheme, "request_id": request_id, "payload": dict(payload)})

    async def ask_for_description(self) -> dict[str, Any]:
        """Return the fields of the description that every scheme gives."""
        reply = await self._ask({"op": "describe"})
        if isinstance(reply, SigningRefusal):
            raise TransientError("the signer's answer cannot be read")
        return reply

    async def _ask(self, request: dict[str, object]) -> dict[str, Any] | SigningRefusal:
        line = json.dumps({"version": VERSION, **request}, separators=(",", ":")).encode() + b"\n"
        try:
            async with asyncio.timeout(self._timeout_s):
                reader, writer = await asyncio.open_unix_connection(self._path, limit=2 * MOST_LINE_BYTES)
                try:
                    writer.write(line)
                    await writer.drain()
                    answer = await reader.readline()
                finally:
                    writer.close()
                    with suppress(OSError):
                        await writer.wait_closed()
        except (OSError, TimeoutError, ValueError):
            raise TransientError("the signer does not answer; `pitboss signer run` starts it") from None
        reply = _reply(answer)
        if not isinstance(reply, SigningRefusal):
            self._on_build(str(reply.get("build", "")))
        return reply


def _reply(answer: bytes) -> dict[str, Any] | SigningRefusal:
    try:
        content = json.loads(answer)
    except ValueError:
        raise TransientError("the signer's answer cannot be read") from None
    reply = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
    if reply.get("ok") is True:
        return reply
    code, message = reply.get("code"), reply.get("message")
    if not isinstance(code, str) or code not in MEANINGS or not isinstance(message, str):
        raise TransientError("the signer's answer cannot be read")
    return SigningRefusal(code, message[:300])
