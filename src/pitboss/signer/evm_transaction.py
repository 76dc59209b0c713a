"""The scheme `evm_transaction`: fee-market transactions (EIP-1559) of one account that call a listed function.

`read_transaction` and `EvmScheme.check` are pure. The check covers every byte that is signed: the call data must be the exact
encoding of the function's arguments, without anything behind it. Contract creation, access lists and other types of
transaction do not exist here.
"""

import hashlib
import re
from typing import Any, cast

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError, EncodingError
from eth_account import Account

from pitboss.core.noun import noun
from pitboss.signer.denied_functions import NAMES_BY_SELECTOR
from pitboss.signer.policy import SigningPolicy, address_problem
from pitboss.signer.protocol import (
    ARGUMENTS,
    CHAIN,
    CONTRACT,
    DENIED_FUNCTION,
    FEE,
    FUNCTION,
    GAS,
    MALFORMED,
    VALUE,
    SigningRefusal,
    refuse,
)

SCHEME_NAME = "evm_transaction"
MOST_DATA_BYTES = 32 * 1024
_DATA = re.compile(r"0x(?:[0-9a-f]{2})*")
_INTEGERS = {
    "chain_id": 2**63,
    "nonce": 2**63,
    "value": 2**256,
    "gas": 2**63,
    "max_fee_per_gas": 2**256,
    "max_priority_fee_per_gas": 2**256,
}
FIELDS = frozenset([*_INTEGERS, "to", "data"])


@noun
class EvmTransaction:
    """The content of one transaction. `to` is in lower case, amounts are in wei."""

    chain_id: int
    nonce: int
    to: str
    data: str
    value: int
    gas: int
    max_fee_per_gas: int
    max_priority_fee_per_gas: int

    @property
    def content_digest(self) -> str:
        """SHA-256 of everything that a replacement must not change: all fields but the two fees."""
        content = f"{self.chain_id}|{self.nonce}|{self.to}|{self.data}|{self.value}|{self.gas}"
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def slot(self) -> str:
        """What only one request may use: the nonce on this chain."""
        return f"{SCHEME_NAME}:{self.chain_id}:{self.nonce}"

    @property
    def fees(self) -> tuple[int, int]:
        """The fee per gas and the priority fee per gas."""
        return self.max_fee_per_gas, self.max_priority_fee_per_gas

    @property
    def spend(self) -> int:
        """The most that the transaction can cost: its value and all of its gas at the full fee."""
        return self.value + self.gas * self.max_fee_per_gas


@noun
class SignedTransaction:
    """Signed bytes and their hash, both as hexadecimal text with 0x."""

    raw: str
    hash: str


def read_transaction(payload: Any) -> EvmTransaction | SigningRefusal:
    """Read the payload of a request. Never raises."""
    if not isinstance(payload, dict):
        return refuse(MALFORMED, "the payload is not an object")
    fields = cast("dict[str, Any]", payload)
    if set(fields) != FIELDS:
        return refuse(MALFORMED, "fields of the transaction are missing or unknown")
    for name, bound in _INTEGERS.items():
        value = fields[name]
        if type(value) is not int or not 0 <= value < bound:
            return refuse(MALFORMED, f"{name} is not a whole number in its range")
    to, data = fields["to"], fields["data"]
    if not isinstance(to, str) or address_problem(to):
        return refuse(MALFORMED, "to is not an address")
    if not isinstance(data, str) or len(data) > 2 + 2 * MOST_DATA_BYTES or not _DATA.fullmatch(data):
        return refuse(MALFORMED, "data is not lower-case hexadecimal text in its bounds")
    return EvmTransaction(**{**fields, "to": to.lower()})


class EvmScheme:
    """Checks and signs transactions under one policy."""

    def __init__(self, policy: SigningPolicy) -> None:
        self.policy = policy
        self._table = policy.table()

    def check(self, transaction: EvmTransaction) -> SigningRefusal | None:
        """Return why the policy forbids a transaction, whatever was signed before; None if it does not."""
        caps = self.policy.caps
        if transaction.chain_id != self.policy.chain_id:
            return refuse(CHAIN)
        functions = self._table.get(transaction.to)
        if functions is None:
            return refuse(CONTRACT)
        selector = transaction.data[2:10]
        function = functions.get(selector)
        if function is None:
            return refuse(DENIED_FUNCTION if selector in NAMES_BY_SELECTOR else FUNCTION)
        if transaction.value > (caps.value_wei if function.payable else 0):
            return refuse(VALUE)
        if transaction.gas > caps.gas:
            return refuse(GAS)
        most_fee, most_priority = caps.max_fee_per_gas_wei, caps.max_priority_fee_per_gas_wei
        fee, priority = transaction.fees
        if fee > most_fee or priority > most_priority or priority > fee:
            return refuse(FEE)
        if not is_exact_encoding(function.types, bytes.fromhex(transaction.data[10:])):
            return refuse(ARGUMENTS)
        return None

    def sign(self, transaction: EvmTransaction, key: bytes) -> SignedTransaction:
        """Sign. The signature is deterministic (RFC 6979): equal transactions have equal bytes."""
        signed: Any = Account.sign_transaction(
            {
                "type": 2,
                "chainId": transaction.chain_id,
                "nonce": transaction.nonce,
                "to": bytes.fromhex(transaction.to[2:]),
                "data": transaction.data,
                "value": transaction.value,
                "gas": transaction.gas,
                "maxFeePerGas": transaction.max_fee_per_gas,
                "maxPriorityFeePerGas": transaction.max_priority_fee_per_gas,
            },
            key,
        )
        return SignedTransaction("0x" + bytes(signed.raw_transaction).hex(), "0x" + bytes(signed.hash).hex())


def is_exact_encoding(types: tuple[str, ...], data: bytes) -> bool:
    """Whether the bytes are the one canonical encoding of arguments of these types."""
    try:
        return encode(types, decode(types, data)) == data
    except (DecodingError, EncodingError, ValueError, OverflowError, RecursionError, UnicodeError):
        return False


def address_of(key: bytes) -> str:
    """Return the address of a key, in lower case."""
    return str(Account.from_key(key).address).lower()
