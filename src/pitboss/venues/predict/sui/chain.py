"""`Chain`: the port to a Sui node, reduced to what a writer needs. `graphql` implements it over the network.

An error of any of these calls says nothing about what happened: only `Effects` are facts. `outcome` may return None
long after the execution, because nodes index behind the chain; None never means that a transaction was not executed
(see `order_sender`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from pitboss.core.noun import noun

CLOCK = "0x" + "0" * 63 + "6"
"""The chain's clock object, with the same id on every network."""

SUI = "0x2::sui::SUI"
MAINNET = ("35834a8a", "4btiuiMPvEENsttpZC7CZ53DruC3MAgfznDbASZ7DR6S")
"""Identifiers of the only network with real money: the first bytes of its genesis digest, or all of it."""

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_ID = re.compile(r"0x[0-9a-fA-F]{1,64}")


@noun
class Shared:
    """A shared object; its initial shared version is part of its reference."""

    id: str
    initial_version: int


@noun
class Coin:
    """One coin object at one version. A version is consumed by exactly one transaction."""

    id: str
    version: int
    digest: str
    balance: int

    @property
    def key(self) -> str:
        """Return the identifier of this version."""
        return f"{self.id}:{self.version}"


@noun
class TransactionBasis:
    """The on-chain data that a transaction is built from, read in one request."""

    chain_id: str
    epoch: int
    gas_price: int
    shared: Mapping[str, Shared]
    coins: tuple[Coin, ...]


@noun
class ChainEvent:
    """An event of a transaction: the name of its Move type without package and module, and its fields."""

    name: str
    fields: Mapping[str, Any]


@noun
class Effects:
    """What a transaction did, or would do in a simulation. `ok` is whether it succeeded; if not, a reason is given."""

    digest: str
    ok: bool
    events: tuple[ChainEvent, ...] = ()
    module: str = ""
    code: int | None = None
    error: str = ""
    outputs: tuple[tuple[bytes, ...], ...] = field(default=())
    """Return values of each command, in a simulation only."""


class Chain(Protocol):
    """A node. Every call may raise `TransientError`, which means that the result is unknown."""

    async def contents(self, ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Return the fields of the objects that exist, by id."""
        ...

    async def coins(self, owner: str, coin_type: str) -> tuple[Coin, ...]:
        """Return the owner's coins of a type."""
        ...

    async def read_basis(self, ids: Sequence[str], owner: str) -> TransactionBasis:
        """Return the epoch and its gas price, those of the shared objects that exist, and the owner's coins."""
        ...

    async def simulate(self, tx: bytes) -> Effects:
        """Return what these bytes would do now, with all checks of a real execution."""
        ...

    async def execute(self, tx: bytes, signature: str) -> Effects:
        """Send signed bytes and wait until they are final. Sending the same bytes twice is one transaction."""
        ...

    async def outcome(self, digest: str) -> Effects | None:
        """Return what a transaction did, or None if the node has no result (yet)."""
        ...

    async def consumer(self, object_id: str, version: int) -> str | None:
        """Return the digest of the transaction that consumed this version; None if the node has none (yet)."""
        ...

    async def epoch(self) -> int:
        """Return the current epoch."""
        ...


def is_id(text: str) -> bool:
    """Whether a text is an object id or an address."""
    return _ID.fullmatch(text) is not None


def full_id(text: str) -> str:
    """Expand an id to 0x and 64 lower-case digits (`0x6` → `0x000…6`): an object may be written both ways."""
    return "0x" + text[2:].lower().rjust(64, "0")


def base58(data: bytes) -> str:
    """Encode bytes in base58, the encoding of digests."""
    number, text = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = _ALPHABET[digit] + text
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + text


def is_digest(text: str) -> bool:
    """Whether a text is the canonical base58 encoding of 32 bytes."""
    if not 32 <= len(text) <= 44 or not set(text) <= set(_ALPHABET):
        return False
    number = 0
    for letter in text:
        number = number * 58 + _ALPHABET.index(letter)
    return number < 2**256 and base58(number.to_bytes(32, "big")) == text
