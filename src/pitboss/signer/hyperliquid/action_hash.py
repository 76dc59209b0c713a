"""The hash and the signature of a Hyperliquid action, as its exchange checks them.

An action is hashed with its nonce, vault and expiry; an EIP-712 message `Agent` that names the network and that hash is signed. The fixed
parts of the message are hashed once and the signature comes from libsecp256k1: 0.2 ms instead of the 1.3 ms of eth-account's general encoder.
"""

from typing import Literal

import msgpack
from coincurve import PrivateKey
from eth_hash.auto import keccak

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.signer.hyperliquid.actions import Action

Network = Literal["mainnet", "testnet"]
SOURCES: dict[Network, str] = {"mainnet": "a", "testnet": "b"}

_DOMAIN_TYPE = b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"


def domain_separator(name: str, chain_id: int) -> bytes:
    """The EIP-712 domain of version 1 without a contract."""
    parts = (keccak(_DOMAIN_TYPE), keccak(name.encode()), keccak(b"1"), chain_id.to_bytes(32, "big"), bytes(32))
    return keccak(b"".join(parts))


_DOMAIN = domain_separator("Exchange", 1337)
_AGENT_TYPE = keccak(b"Agent(string source,bytes32 connectionId)")
_SOURCE_HASHES = {network: keccak(source.encode()) for network, source in SOURCES.items()}


@noun
class ActionSignature:
    """A recoverable signature. `r` and `s` are hexadecimal text with 0x and without leading zeros, as the exchange's own library writes them."""

    r: str
    s: str
    v: int

    def wire(self) -> dict[str, str | int]:
        """The value of `signature` in a request to the exchange."""
        return {"r": self.r, "s": self.s, "v": self.v}


def action_hash(action: Action, nonce: int, vault: str | None = None, expires_after: Instant | None = None) -> bytes:
    """Hash an action with what protects it from replay. `vault` is an address; None for the account itself."""
    data = msgpack.packb(action)
    assert isinstance(data, bytes)
    data += nonce.to_bytes(8, "big")
    data += b"\x00" if vault is None else b"\x01" + bytes.fromhex(vault.removeprefix("0x"))
    if expires_after is not None:
        data += b"\x00" + expires_after.to_bytes(8, "big")
    return keccak(data)


def agent_digest(connection_id: bytes, network: Network) -> bytes:
    """The EIP-712 digest of the message `Agent` that carries an action's hash."""
    return typed_digest(_DOMAIN, keccak(_AGENT_TYPE + _SOURCE_HASHES[network] + connection_id))


def typed_digest(domain: bytes, struct_hash: bytes) -> bytes:
    """What is signed of an EIP-712 message."""
    return keccak(b"\x19\x01" + domain + struct_hash)


def sign_digest(digest: bytes, key: bytes) -> ActionSignature:
    """Sign 32 bytes. Deterministic (RFC 6979): equal digests have equal signatures."""
    signature = PrivateKey(key).sign_recoverable(digest, hasher=None)
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
    return ActionSignature(hex(r), hex(s), 27 + signature[64])


def sign_action(
    action: Action,
    nonce: int,
    network: Network,
    key: bytes,
    vault: str | None = None,
    expires_after: Instant | None = None,
) -> ActionSignature:
    """Sign an action with the key of an agent."""
    return sign_digest(agent_digest(action_hash(action, nonce, vault, expires_after), network), key)
