"""Transactions of Sui for tests, encoded here byte by byte; shares no code with the reader of the signing process."""

import base64
from collections.abc import Sequence
from typing import Any

KEY = bytes(range(7, 39))
PACKAGE, PREDICT, MANAGER, ORACLE, CLOCK = ("0x" + digits * 32 for digits in ("ab", "01", "02", "03", "06"))


def uleb(number: int) -> bytes:
    data = b""
    while number >= 0x80:
        data, number = data + bytes([number & 0x7F | 0x80]), number >> 7
    return data + bytes([number])


def rows(parts: Sequence[bytes]) -> bytes:
    return uleb(len(parts)) + b"".join(parts)


def u64(number: int) -> bytes:
    return number.to_bytes(8, "little")


def address(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def pure(data: bytes) -> bytes:
    return b"\0" + uleb(len(data)) + data


def shared(object_id: str, mutable: bool) -> bytes:
    return b"\1\1" + address(object_id) + u64(5) + bytes([mutable])


def reference(digits: str) -> bytes:
    return bytes.fromhex(digits * 32) + u64(9) + b"\x20" + bytes(32)


def owned(digits: str) -> bytes:
    return b"\1\0" + reference(digits)


GAS_COIN = b"\0"


def given(place: int) -> bytes:
    return b"\1" + place.to_bytes(2, "little")


def result(place: int) -> bytes:
    return b"\2" + place.to_bytes(2, "little")


def call(target: str, arguments: Sequence[bytes], package: str = PACKAGE, types: Sequence[bytes] = ()) -> bytes:
    words = b"".join(uleb(len(word)) + word.encode() for word in target.split("::"))
    return b"\0" + address(package) + words + rows(types) + rows(arguments)


def transfer(objects: Sequence[bytes], recipient: bytes) -> bytes:
    return b"\1" + rows(objects) + recipient


def split(coin: bytes, amounts: Sequence[bytes]) -> bytes:
    return b"\2" + coin + rows(amounts)


def merge(coin: bytes, coins: Sequence[bytes]) -> bytes:
    return b"\3" + coin + rows(coins)


QUOTE_TYPE = b"\7" + address("0x" + "e9" * 32) + b"\5dusdc\5DUSDC" + rows([])


def transaction(sender: str, inputs: Sequence[bytes], commands: Sequence[bytes], **changes: Any) -> bytes:
    owner, budget = changes.get("gas_owner", sender), changes.get("budget", 50_000_000)
    gas = rows([reference("77")]) + address(owner) + u64(1_000) + u64(budget)
    kind = changes.get("kind", b"\0\0")
    return kind + rows(inputs) + rows(commands) + address(sender) + gas + changes.get("expiry", b"\1" + u64(12))


def mint(sender: str, quantity: int = 2_000_000, manager: str = MANAGER, **changes: Any) -> bytes:
    """A mint as the writer of the venue makes it, with money kept out of its reach meanwhile."""
    inputs = [
        shared(manager, True), pure(u64(90)), pure(bytes(32)), pure(u64(1)), pure(u64(2)), pure(b"\1"),
        shared(PREDICT, True), shared(ORACLE, False), pure(u64(quantity)), shared(CLOCK, False),
    ]  # fmt: skip
    commands = [
        call("predict_manager::withdraw", [given(0), given(1)], types=[QUOTE_TYPE]),
        call("market_key::new", [given(2), given(3), given(4), given(5)]),
        call("predict::mint", [given(6), given(0), given(7), result(1), given(8), given(9)], types=[QUOTE_TYPE]),
        call("predict_manager::deposit", [given(0), result(0)], types=[QUOTE_TYPE]),
    ]
    return transaction(sender, inputs, commands, **changes)


def deposit(sender: str, amount: int = 20_000_000, **changes: Any) -> bytes:
    inputs = [owned("c1"), owned("c2"), pure(u64(amount)), shared(changes.pop("manager", MANAGER), True)]
    commands = [
        merge(given(0), [given(1)]),
        split(given(0), [given(2)]),
        call("predict_manager::deposit", [given(3), result(1)], types=[QUOTE_TYPE]),
    ]
    return transaction(sender, inputs, commands, **changes)


def fence(sender: str, recipient: str = "") -> bytes:
    """A transaction that does nothing but use its gas coin."""
    return transaction(sender, [pure(address(recipient or sender))], [transfer([GAS_COIN], given(0))])


def text(tx: bytes) -> str:
    return base64.b64encode(tx).decode()
