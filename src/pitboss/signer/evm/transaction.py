"""A fee-market transaction (EIP-1559) as a request carries it, and its strict reading. Other types of transaction do not exist here."""

import hashlib
import re
from typing import Any, cast

from pitboss.core.noun import noun
from pitboss.signer.addresses import address_problem
from pitboss.signer.protocol import MALFORMED, SigningRefusal, refuse

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
