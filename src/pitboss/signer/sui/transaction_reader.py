"""Reads the bytes of a Sui transaction (BCS) strictly: the few parts that a listed call needs, and nothing else.

What is not read here cannot be signed: other kinds of transaction, of command, of input or of expiry, numbers in a longer form than needed, and
bytes behind the end are all unreadable. So a check of the result is a check of every byte.
"""

import hashlib
from collections.abc import Callable
from typing import TypeVar

from pitboss.core.noun import noun

MOST_PARTS = 256
_DEEPEST = 8
T = TypeVar("T")


class UnreadableTransaction(Exception):
    """The bytes are not a transaction of the kind that is ever signed."""


@noun
class SuiInput:
    """An input: `pure` bytes, an `owned` object, or a `shared` one that may be changed or only read."""

    kind: str
    value: bytes
    """The bytes, or the id of the object."""
    mutable: bool = False


@noun
class SuiArgument:
    """An argument of a command: the `gas` coin, an `input`, or the `result` of an earlier command."""

    kind: str
    place: int = 0


@noun
class SuiCommand:
    """A command: `call`, `transfer` (the last argument is the recipient), `split` or `merge` (the first is the coin)."""

    kind: str
    arguments: tuple[SuiArgument, ...]
    package: str = ""
    target: str = ""
    """Module and function of a call, as `module::function`."""


@noun
class SuiTransaction:
    """What a transaction does, who pays for it, and the last epoch in which it can be executed."""

    sender: str
    inputs: tuple[SuiInput, ...]
    commands: tuple[SuiCommand, ...]
    gas_owner: str
    gas_budget: int
    last_epoch: int
    digest: str


def read_sui_transaction(data: bytes) -> SuiTransaction:
    """Read a transaction. Raises `UnreadableTransaction`."""
    reader = _BcsReader(data)
    if reader.length() != 0 or reader.length() != 0:
        raise UnreadableTransaction("it is not a programmable transaction of version 1")
    inputs = reader.rows(_input)
    commands = reader.rows(_command)
    sender = reader.address()
    reader.rows(_BcsReader.object_reference)
    owner, _, budget = reader.address(), reader.number(8), reader.number(8)
    if reader.length() != 1:
        raise UnreadableTransaction("it does not expire with an epoch")
    last_epoch = reader.number(8)
    if not reader.is_at_end:
        raise UnreadableTransaction("there are bytes behind its end")
    digest = hashlib.blake2b(b"TransactionData::" + data, digest_size=32).hexdigest()
    return SuiTransaction(sender, inputs, commands, owner, budget, last_epoch, digest)


class _BcsReader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._data)

    def part(self, count: int) -> bytes:
        data = self._data[self._at : self._at + count]
        if len(data) != count:
            raise UnreadableTransaction("it ends too early")
        self._at += count
        return data

    def number(self, count: int) -> int:
        return int.from_bytes(self.part(count), "little")

    def length(self) -> int:
        """A length or a variant: seven bits a byte, in its shortest form."""
        number = 0
        for place in range(5):
            (byte,) = self.part(1)
            number |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                if place and not byte:
                    break
                return number
        raise UnreadableTransaction("a length is not in its shortest form")

    def flag(self) -> bool:
        value = self.number(1)
        if value > 1:
            raise UnreadableTransaction("a flag is neither 0 nor 1")
        return value == 1

    def rows(self, read: "Callable[[_BcsReader], T]") -> tuple[T, ...]:
        count = self.length()
        if count > MOST_PARTS:
            raise UnreadableTransaction("it has too many parts")
        return tuple(read(self) for _ in range(count))

    def address(self) -> str:
        return "0x" + self.part(32).hex()

    def word(self) -> str:
        name = self.part(self.length())
        if not 0 < len(name) <= 128 or not name.replace(b"_", b"").isalnum():
            raise UnreadableTransaction("a name is not made of letters, digits and _")
        return name.decode("ascii")

    def object_reference(self) -> bytes:
        object_id = self.part(32)
        self.number(8)
        if self.length() != 32:
            raise UnreadableTransaction("the digest of an object does not have 32 bytes")
        self.part(32)
        return object_id

    def skip_type(self, depth: int = 0) -> None:
        kind = self.length()
        if depth > _DEEPEST or kind > 10:
            raise UnreadableTransaction("a type cannot be read")
        if kind == 6:
            self.skip_type(depth + 1)
        elif kind == 7:
            self.address()
            self.word()
            self.word()
            self.rows(lambda reader: reader.skip_type(depth + 1))


def _input(reader: _BcsReader) -> SuiInput:
    kind = reader.length()
    if kind == 0:
        return SuiInput("pure", reader.part(reader.length()))
    if kind != 1:
        raise UnreadableTransaction("an input is neither a value nor an object")
    kind = reader.length()
    if kind == 0:
        return SuiInput("owned", reader.object_reference(), True)
    if kind != 1:
        raise UnreadableTransaction("an object is neither owned nor shared")
    object_id = reader.part(32)
    reader.number(8)
    return SuiInput("shared", object_id, reader.flag())


def _argument(reader: _BcsReader) -> SuiArgument:
    kind = reader.length()
    if kind == 0:
        return SuiArgument("gas")
    if kind > 3:
        raise UnreadableTransaction("an argument cannot be read")
    place = reader.number(2)
    if kind == 3:
        reader.number(2)
    return SuiArgument("input" if kind == 1 else "result", place)


def _command(reader: _BcsReader) -> SuiCommand:
    kind = reader.length()
    if kind == 0:
        package, module, function = reader.address(), reader.word(), reader.word()
        reader.rows(_BcsReader.skip_type)
        return SuiCommand("call", reader.rows(_argument), package, f"{module}::{function}")
    if kind == 1:
        objects = reader.rows(_argument)
        return SuiCommand("transfer", (*objects, _argument(reader)))
    if kind in (2, 3):
        coin = _argument(reader)
        return SuiCommand("split" if kind == 2 else "merge", (coin, *reader.rows(_argument)))
    raise UnreadableTransaction("a command is neither a call, a transfer, a split nor a merge")
