"""The scheme `evm_transaction`: fee-market transactions (EIP-1559) of one account that call a listed function.

Reading and checking are pure. The check covers every byte that is signed: the call data must be the exact encoding of the function's
arguments, without anything behind it. Contract creation and access lists do not exist here.
"""

from typing import Any

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError, EncodingError
from eth_account import Account

from pitboss.core.instant import Instant
from pitboss.signer.denied_functions import NAMES_BY_SELECTOR
from pitboss.signer.evm.policy import EvmPolicy
from pitboss.signer.evm.transaction import SCHEME_NAME, EvmTransaction, SignedTransaction, read_transaction
from pitboss.signer.evm.transaction_journal import (
    TABLES,
    recent_signatures,
    reserve_transaction,
    store_transaction,
    use_of_day,
)
from pitboss.signer.journal import SigningJournal
from pitboss.signer.protocol import (
    ARGUMENTS,
    CHAIN,
    CONTRACT,
    DENIED_FUNCTION,
    FEE,
    FUNCTION,
    GAS,
    VALUE,
    SigningRefusal,
    refuse,
)
from pitboss.signer.scheme_definition import PolicyAnswers, Reservation, SchemeDefinition
from pitboss.signer.secp256k1_keys import SECP256K1

EXAMPLE_POLICY = """\
# What this signer may sign. It is read once, when the signer starts. Amounts are in wei.
version = 1
scheme = "evm_transaction"
chain_id = 11155111                              # Sepolia

[caps]
value_wei = 10_000_000_000_000_000               # of one transaction: 0.01 ether
gas = 500_000
max_fee_per_gas_wei = 100_000_000_000            # 100 gwei
max_priority_fee_per_gas_wei = 5_000_000_000     # 5 gwei
spend_per_day_wei = 100_000_000_000_000_000      # value and fees of a UTC day: 0.1 ether
transactions_per_day = 50
replacements = 10                                # of one transaction, each with higher fees

[[contracts]]
address = "0x0000000000000000000000000000000000000000"
functions = ["deposit()", "withdraw(uint256)"]   # full signatures; nothing else can be called
payable = ["deposit()"]                          # only these may be sent value
"""


class EvmScheme:
    """Checks and signs transactions under one policy."""

    name = SCHEME_NAME
    tables = TABLES

    def __init__(self, policy: EvmPolicy) -> None:
        self.policy = policy
        self._table = policy.table()

    def check_key(self, address: str) -> None:
        """Any key may sign: what it may do is in the policy."""

    def read(self, payload: Any) -> EvmTransaction | SigningRefusal:
        """Read the payload of a request."""
        return read_transaction(payload)

    def check(self, content: EvmTransaction) -> SigningRefusal | None:
        """Return why the policy forbids a transaction, whatever was signed before; None if it does not."""
        caps, transaction = self.policy.caps, content
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

    def reserve(
        self, journal: SigningJournal, request_id: str, content: EvmTransaction, now: Instant
    ) -> Reservation | SigningRefusal:
        """Count a transaction and store its place, or return the place it has; or why it may not be signed."""
        return reserve_transaction(journal, request_id, content, self.policy.caps, now)

    def sign(self, content: EvmTransaction, key: bytes) -> SignedTransaction:
        """Sign. The signature is deterministic (RFC 6979): equal transactions have equal bytes."""
        transaction = content
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

    def store(self, journal: SigningJournal, place: Reservation, signed: SignedTransaction) -> None:
        """Store signed bytes before they leave the process."""
        store_transaction(journal, place, signed)

    def reply(self, place: Reservation, signed: SignedTransaction) -> dict[str, Any]:
        """The signed bytes, their hash and the number of the replacement."""
        return {"raw": signed.raw, "hash": signed.hash, "number": place.number}

    def describe(self, journal: SigningJournal, now: Instant) -> dict[str, Any]:
        """The chain and what is left of the day."""
        caps, use = self.policy.caps, use_of_day(journal, now)
        return {
            "chain_id": self.policy.chain_id,
            "spend_left_wei": caps.spend_per_day_wei - use.spend_wei,
            "transactions_left": caps.transactions_per_day - use.count,
        }

    def show(self, journal: SigningJournal, now: Instant) -> dict[str, Any]:
        """The policy, what is used of the day and the latest signatures."""
        policy, use = self.policy, use_of_day(journal, now)
        return {
            "chain_id": policy.chain_id,
            "caps": policy.caps.model_dump(),
            "contracts": [contract.model_dump() for contract in policy.contracts],
            "today": {"spend_wei": use.spend_wei, "transactions": use.count},
            "recent": [
                {"request_id": request_id, "slot": slot, "number": number, "hash": tx_hash}
                for request_id, slot, number, tx_hash in recent_signatures(journal, 20)
            ],
        }


def is_exact_encoding(types: tuple[str, ...], data: bytes) -> bool:
    """Whether the bytes are the one canonical encoding of arguments of these types."""
    try:
        return encode(types, decode(types, data)) == data
    except (DecodingError, EncodingError, ValueError, OverflowError, RecursionError, UnicodeError):
        return False


def example_policy(answers: PolicyAnswers) -> str:
    """A policy for a test network, with a contract to replace."""
    del answers
    return EXAMPLE_POLICY


SCHEME = SchemeDefinition(SCHEME_NAME, EvmPolicy, EvmScheme, example_policy, SECP256K1)
