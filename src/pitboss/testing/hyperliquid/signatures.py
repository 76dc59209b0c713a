"""Who signed an action: the exchange's hash of an action and the EIP-712 envelope around it, written from their description.

The exchange reads an action into its own types and hashes those, so keys in another order, numbers with trailing zeros and
addresses in capitals give another signer. `canonical` does the same for the actions that the fake exchange carries out.
"""

from decimal import Decimal
from functools import cache
from typing import Any

import msgpack
from coincurve import PrivateKey, PublicKey
from eth_utils.crypto import keccak

from pitboss.core.money import text

ORDER_KEYS = ("a", "b", "p", "s", "r", "t", "c")
KEYS = {
    "order": ("type", "orders", "grouping", "builder"),
    "cancel": ("type", "cancels"),
    "cancelByCloid": ("type", "cancels"),
    "batchModify": ("type", "modifies"),
    "modify": ("type", "oid", "order"),
    "updateLeverage": ("type", "asset", "isCross", "leverage"),
    "updateIsolatedMargin": ("type", "asset", "isBuy", "ntli"),
    "scheduleCancel": ("type", "time"),
    "noop": ("type",),
}
INNER_KEYS = {"cancel": ("a", "o"), "cancelByCloid": ("asset", "cloid"), "batchModify": ("oid", "order")}


def canonical(action: dict[str, Any]) -> dict[str, Any]:
    """An action with the keys, their order and the spelling that the exchange itself writes."""
    kind = action["type"]
    ordered = _in_order(action, KEYS.get(kind, tuple(action)))
    for name in ("orders", "cancels", "modifies"):
        if isinstance(ordered.get(name), list):
            ordered[name] = [_inner(kind, one) for one in ordered[name]]
    if "order" in ordered:
        ordered["order"] = _order(ordered["order"])
    if isinstance(ordered.get("builder"), dict):
        ordered["builder"] = _in_order(ordered["builder"], ("b", "f"))
    return ordered


def _inner(kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    if kind == "order":
        return _order(fields)
    ordered = _in_order(fields, INNER_KEYS.get(kind, tuple(fields)))
    if "order" in ordered:
        ordered["order"] = _order(ordered["order"])
    return ordered


def _order(fields: dict[str, Any]) -> dict[str, Any]:
    ordered = _in_order(fields, ORDER_KEYS)
    ordered["p"], ordered["s"] = _number(ordered["p"]), _number(ordered["s"])
    kind = ordered["t"]
    if "trigger" in kind:
        trigger = _in_order(kind["trigger"], ("isMarket", "triggerPx", "tpsl"))
        ordered["t"] = {"trigger": trigger | {"triggerPx": _number(trigger["triggerPx"])}}
    if "c" in ordered:
        ordered["c"] = ordered["c"].lower()
    return ordered


def _in_order(fields: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: fields[key] for key in keys if key in fields}


def _number(value: str) -> str:
    return text(Decimal(value))


def connection_id(action: dict[str, Any], nonce: int, vault: str | None, expires_after: int | None) -> bytes:
    """The hash that is signed: msgpack of the action, nonce, vault, expiry."""
    data = bytes(msgpack.packb(canonical(action)) or b"") + nonce.to_bytes(8, "big")
    data += b"\x00" if vault is None else b"\x01" + bytes.fromhex(vault[2:])
    if expires_after is not None:
        data += b"\x00" + expires_after.to_bytes(8, "big")
    return keccak(data)


@cache
def _domain() -> bytes:
    kind = keccak(b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")
    return keccak(kind + keccak(b"Exchange") + keccak(b"1") + (1337).to_bytes(32, "big") + bytes(32))


@cache
def _agent_type() -> bytes:
    return keccak(b"Agent(string source,bytes32 connectionId)")


def digest(hashed: bytes, is_mainnet: bool) -> bytes:
    """The EIP-712 digest of a connection id."""
    source = keccak(b"a" if is_mainnet else b"b")
    return keccak(b"\x19\x01" + _domain() + keccak(_agent_type() + source + hashed))


def signer_of(body: dict[str, Any], is_mainnet: bool) -> str:
    """The address that signed a request, in lower case; ValueError where the signature is none."""
    signature = body["signature"]
    try:
        r, s, v = int(signature["r"], 16), int(signature["s"], 16), int(signature["v"])
        raw = r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes([v - 27])
        hashed = connection_id(body["action"], body["nonce"], body.get("vaultAddress"), body.get("expiresAfter"))
        key = PublicKey.from_signature_and_message(raw, digest(hashed, is_mainnet), hasher=None)
    except (KeyError, TypeError, OverflowError, ValueError, ArithmeticError) as error:
        raise ValueError(f"unreadable signature: {error}") from None
    except Exception as error:  # noqa: BLE001  coincurve raises bare exceptions for points that are not on the curve
        raise ValueError(f"unreadable signature: {error}") from None
    return address_of(key)


def address_of(key: PublicKey) -> str:
    """The address of a public key, in lower case."""
    return "0x" + keccak(key.format(compressed=False)[1:])[12:].hex()


def address_of_secret(secret: str) -> str:
    """The address of a private key in hex."""
    return address_of(PrivateKey(bytes.fromhex(secret.removeprefix("0x"))).public_key)


def sign(
    secret: str,
    action: dict[str, Any],
    nonce: int,
    expires_after: int | None = None,
    is_mainnet: bool = False,
) -> dict[str, Any]:
    """A signed request body, for tests of the exchange itself."""
    key = PrivateKey(bytes.fromhex(secret.removeprefix("0x")))
    raw = key.sign_recoverable(digest(connection_id(action, nonce, None, expires_after), is_mainnet), hasher=None)
    signature = {"r": "0x" + raw[:32].hex(), "s": "0x" + raw[32:64].hex(), "v": raw[64] + 27}
    return {
        "action": action,
        "nonce": nonce,
        "signature": signature,
        "vaultAddress": None,
        "expiresAfter": expires_after,
    }
