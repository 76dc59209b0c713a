"""Between the outbox and the port: entries as outcomes, and nonces as coins. Pure."""

import json

from pitboss.store.outbox import OutboxEntry
from pitboss.venues.community.chain.node_reader import TxReceipt
from pitboss.venues.community.chain.ports import ChainFailure, FailureCode, TxOutcome, TxStatus
from pitboss.venues.community.chain.stored_transaction import StoredTransaction


def coin_of(scope: str, nonce: int) -> str:
    """The nonce of an account as the outbox stores it: coins of a scope sort by nonce."""
    return f"{scope}:{nonce:020d}"


def nonce_of(entry: OutboxEntry) -> int:
    """The nonce of an entry that has one."""
    assert entry.coin is not None
    return int(entry.coin.rpartition(":")[2].partition("+")[0])


def next_coin_of(entry: OutboxEntry) -> str:
    """Another coin for the nonce of an entry that was refused; it sorts behind that of the entry."""
    assert entry.coin is not None
    first, _, number = entry.coin.partition("+")
    return f"{first}+{int(number or 0) + 1:06d}"


def failed_send(request_id: str, code: FailureCode, message: str) -> TxOutcome:
    """The outcome of a transaction that was not sent."""
    return TxOutcome(request_id, "not_sent", failure=ChainFailure(code, message))


def packed_outcome(status: TxStatus, receipt: TxReceipt | None, tx_hash: str = "") -> bytes:
    """A final result as the outbox stores it."""
    fields = {"status": status, "hash": receipt.hash if receipt else tx_hash}
    if receipt is not None:
        fields |= {"block_number": receipt.block_number, "gas_used": receipt.gas_used}
    return json.dumps(fields, sort_keys=True).encode()


def outcome_of(entry: OutboxEntry, failure: ChainFailure | None = None) -> TxOutcome:
    """What an entry says. `failure` says why an open one has no result."""
    transaction = StoredTransaction.loads(entry.request)
    if entry.state == "void":
        return failed_send(entry.order_id, "signer_refused", entry.note)
    if entry.outcome is not None:
        fields = json.loads(entry.outcome)
        return TxOutcome(
            entry.order_id,
            fields["status"],
            fields["hash"],
            transaction.nonce,
            fields.get("block_number"),
            fields.get("gas_used"),
            max_fee_wei_per_gas=max(version.fee for version in transaction.versions),
        )
    status: TxStatus = "dropped" if failure is not None and failure.code == "dropped" else "unknown"
    return TxOutcome(entry.order_id, status, transaction.last.hash, transaction.nonce, failure=failure)
