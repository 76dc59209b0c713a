"""`HyperliquidSignerClient`: asks a signing process for signatures of Hyperliquid's actions. It is what a broker has instead of a key."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from pitboss.core.errors import TransientError
from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.signer.client import TIMEOUT_S, SignerClient
from pitboss.signer.hyperliquid.policy import SCHEME_NAME
from pitboss.signer.protocol import SigningRefusal

_HEX = re.compile(r"0x[0-9a-f]{1,64}")


@noun
class HyperliquidSignature:
    """A signature with the nonce and the expiry that it is for."""

    nonce: int
    expires_after: Instant
    r: str
    s: str
    v: int


@noun
class HyperliquidSignerState:
    """Whose key the signing process holds, for which account and network, and what is left of its caps."""

    address: str
    account: str
    network: str
    vault: str | None
    halt_reason: str
    orders_left_minute: int
    orders_left_day: int
    opened_notional_left_usd: str
    order_notional_usd: str
    """The most that one opening order may be worth; 0 for a signer that opens nothing."""
    build: str = ""


class HyperliquidSignerClient:
    """One connection for each request. A lost answer is a `TransientError`: ask again with the same request id and content.

    `on_build` is called with the build of the signing process at every answer.
    """

    def __init__(
        self, path: Path, timeout_s: float = TIMEOUT_S, on_build: Callable[[str], None] = lambda build: None
    ) -> None:
        self._client = SignerClient(path, timeout_s, on_build)

    async def sign(self, request_id: str, payload: Mapping[str, Any]) -> HyperliquidSignature | SigningRefusal:
        """Have an action signed, or return why it is refused."""
        reply = await self._client.ask_to_sign(SCHEME_NAME, request_id, payload)
        return reply if isinstance(reply, SigningRefusal) else read_signature(reply)

    async def describe(self) -> HyperliquidSignerState:
        """Return the agent's address, the account and what is left. Raises `TransientError` if it is another scheme's."""
        reply = await self._client.ask_for_description()
        try:
            return HyperliquidSignerState(
                str(reply["address"]),
                str(reply["account"]),
                str(reply["network"]),
                None if reply["vault"] is None else str(reply["vault"]),
                str(reply["halt_reason"]),
                int(reply["orders_left_minute"]),
                int(reply["orders_left_day"]),
                str(reply["opened_notional_left_usd"]),
                str(reply["order_notional_usd"]),
                str(reply.get("build", "")),
            )
        except (KeyError, TypeError, ValueError):
            raise TransientError("the signer's answer cannot be read; does its policy name this scheme?") from None


def read_signature(reply: Mapping[str, Any]) -> HyperliquidSignature:
    """Read the reply of a signing process. Raises `TransientError` for anything else."""
    nonce, expires_after, signature = reply.get("nonce"), reply.get("expires_after"), reply.get("signature")
    if type(nonce) is int and type(expires_after) is int and isinstance(signature, dict):
        parts = cast("dict[str, Any]", signature)
        r, s, v = (parts.get(name) for name in ("r", "s", "v"))
        if isinstance(r, str) and isinstance(s, str) and _HEX.fullmatch(r) and _HEX.fullmatch(s) and v in (27, 28):
            return HyperliquidSignature(nonce, expires_after, r, s, int(v))
    raise TransientError("the signer's answer cannot be read")
