"""`StoredTransaction`: the transaction of one intent as the outbox stores it, with all versions that were signed."""

import json
from dataclasses import asdict, replace

from pitboss.core.noun import noun
from pitboss.venues.community.chain.node_reader import ChainTransaction, MessageCall


@noun
class TxVersion:
    """One signed version: its fees per gas, and its hash with 0x. Empty where a wallet has not told it."""

    fee: int
    priority_fee: int
    hash: str = ""


@noun
class StoredTransaction:
    """The content is fixed with the nonce before anything is signed; only versions are added."""

    chain_id: int
    sender: str
    to: str
    data: str
    value: int
    gas: int
    nonce: int
    from_block: int
    """The newest block when the transaction was made: it cannot be in an earlier one that stays."""
    versions: tuple[TxVersion, ...]

    @property
    def call(self) -> MessageCall:
        """What it does."""
        return MessageCall(self.sender, self.to, self.data, self.value)

    @property
    def last(self) -> TxVersion:
        """The newest version."""
        return self.versions[-1]

    @property
    def hashes(self) -> tuple[str, ...]:
        """The hashes of all versions, newest first."""
        return tuple(version.hash for version in reversed(self.versions) if version.hash)

    def with_version(self, version: TxVersion) -> "StoredTransaction":
        """The same with one more version."""
        return replace(self, versions=(*self.versions, version))

    def with_hash(self, tx_hash: str) -> "StoredTransaction":
        """The same with the hash of its newest version."""
        return replace(self, versions=(*self.versions[:-1], replace(self.last, hash=tx_hash)))

    def is_same(self, other: ChainTransaction) -> bool:
        """Whether a transaction on the chain does exactly this."""
        return (self.sender, self.to, self.nonce, self.value, self.data) == (
            *(other.sender, other.to, other.nonce),
            *(other.value, other.data),
        )

    def payload(self) -> dict[str, object]:
        """The newest version as the signing process takes it."""
        return {
            "chain_id": self.chain_id,
            "nonce": self.nonce,
            "to": self.to,
            "data": self.data,
            "value": self.value,
            "gas": self.gas,
            "max_fee_per_gas": self.last.fee,
            "max_priority_fee_per_gas": self.last.priority_fee,
        }

    def dumps(self) -> bytes:
        """JSON bytes. Amounts may have 78 digits, more than the codec takes as numbers."""
        return json.dumps(asdict(self), sort_keys=True).encode()

    @staticmethod
    def loads(data: bytes) -> "StoredTransaction":
        """Read back what `dumps` wrote."""
        fields = json.loads(data)
        return StoredTransaction(**{**fields, "versions": tuple(TxVersion(**one) for one in fields["versions"])})
