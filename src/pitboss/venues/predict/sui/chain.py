"""`Chain`: the little of Sui that a writer needs, as a port. `graphql` is the one that talks to a node.

An error of any of these calls says nothing about what happened: only `Effects` are facts. `outcome` may not know yet what
has long happened, for nodes index behind the chain; a None of it is never taken as a no (see `carry`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from pitboss.core.noun import noun

CLOCK = "0x" + "0" * 63 + "6"
"""The chain's own clock, at the same place on every network."""

SUI = "0x2::sui::SUI"
MAINNET = ("35834a8a", "4btiuiMPvEENsttpZC7CZ53DruC3MAgfznDbASZ7DR6S")
"""How nodes of the one network with real money name it: the first bytes of its genesis, or all of it."""

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_ID = re.compile(r"0x[0-9a-fA-F]{1,64}")


@noun
class Shared:
    """An object that many may use; its first shared version is part of how it is named."""

    id: str
    initial_version: int


@noun
class Coin:
    """One coin object of SUI at one version. A version is used up by exactly one transaction."""

    id: str
    version: int
    digest: str
    balance: int

    @property
    def key(self) -> str:
        """The name of this version."""
        return f"{self.id}:{self.version}"


@noun
class TransactionBasis:
    """What a transaction is built on, read at once."""

    chain_id: str
    epoch: int
    gas_price: int
    shared: Mapping[str, Shared]
    coins: tuple[Coin, ...]


@noun
class ChainEvent:
    """Something a transaction told: the name of its Move type without package and module, and its fields."""

    name: str
    fields: Mapping[str, Any]


@noun
class Effects:
    """What a transaction did, or in a simulation would do. `ok` is whether it went through; if not, why."""

    digest: str
    ok: bool
    events: tuple[ChainEvent, ...] = ()
    module: str = ""
    code: int | None = None
    error: str = ""
    outputs: tuple[tuple[bytes, ...], ...] = field(default=())
    """Of a simulation: the values each command gave back."""


class Chain(Protocol):
    """A node. Every call may raise `TransientError`: then nothing is known."""

    async def ground(self, ids: Sequence[str], owner: str) -> TransactionBasis:
        """The epoch and its gas price, these shared objects (those that there are), the owner's coins."""
        ...

    async def simulate(self, tx: bytes) -> Effects:
        """What these bytes would do now, with all the checks of a real execution."""
        ...

    async def execute(self, tx: bytes, signature: str) -> Effects:
        """Send signed bytes and wait until they are final. The same bytes twice are one transaction."""
        ...

    async def outcome(self, digest: str) -> Effects | None:
        """What a transaction did, or None where the node does not know of it (yet)."""
        ...

    async def consumer(self, object_id: str, version: int) -> str | None:
        """The digest of the transaction that used this version of an object up; None where none is known (yet)."""
        ...

    async def epoch(self) -> int:
        """The epoch of now."""
        ...


def is_id(text: str) -> bool:
    """Whether a text is an object id or an address."""
    return _ID.fullmatch(text) is not None


def full_id(text: str) -> str:
    """An id in its one full spelling."""
    return "0x" + text[2:].lower().rjust(64, "0")


def base58(data: bytes) -> str:
    """Bytes in the alphabet of digests."""
    number, text = int.from_bytes(data, "big"), ""
    while number:
        number, rest = divmod(number, 58)
        text = _ALPHABET[rest] + text
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + text


def is_digest(text: str) -> bool:
    """Whether a text is the one spelling of 32 bytes."""
    if not 32 <= len(text) <= 44 or not set(text) <= set(_ALPHABET):
        return False
    number = 0
    for letter in text:
        number = number * 58 + _ALPHABET.index(letter)
    return number < 2**256 and base58(number.to_bytes(32, "big")) == text
