"""`RequestHandler`: one line in, one reply out. It holds the key and uses it after the policy and the journal have agreed.

The key is kept in a closure: no attribute, repr or pickle contains it, and no exception passes its text on.
"""

import sqlite3
from collections.abc import Callable
from typing import Any

from pitboss.core.instant import Instant
from pitboss.signer.evm_transaction import (
    SCHEME_NAME,
    EvmScheme,
    EvmTransaction,
    SignedTransaction,
    address_of,
    read_transaction,
)
from pitboss.signer.journal import JournalPlace, SigningJournal
from pitboss.signer.protocol import (
    SCHEME,
    UNAVAILABLE,
    VERSION,
    SigningRefusal,
    SigningRequest,
    read_request,
    refuse,
)


class RequestHandler:
    """Answers the requests of one signing process."""

    __slots__ = ("_journal", "_now", "_scheme", "_sign", "address")

    def __init__(self, key: bytes, scheme: EvmScheme, journal: SigningJournal, now: Callable[[], Instant]) -> None:
        self.address = address_of(key)
        self._sign: Callable[[EvmTransaction], SignedTransaction] = _signing(key, scheme)
        self._scheme = scheme
        self._journal = journal
        self._now = now

    def handle(self, line: bytes) -> dict[str, Any]:
        """Answer one request. A failure of the journal is a refusal: what cannot be counted is not signed."""
        request = read_request(line)
        if isinstance(request, SigningRefusal):
            return request.reply()
        try:
            return self._describe() if request.op == "describe" else self._signed(request)
        except sqlite3.Error:
            return refuse(UNAVAILABLE).reply()

    def _signed(self, request: SigningRequest) -> dict[str, Any]:
        if request.scheme != SCHEME_NAME:
            return refuse(SCHEME).reply()
        transaction = read_transaction(request.payload)
        if isinstance(transaction, SigningRefusal):
            return transaction.reply()
        refusal = self._scheme.check(transaction)
        if refusal is not None:
            return refusal.reply()
        place = self._journal.reserve(request.request_id, transaction, self._scheme.policy.caps, self._now())
        if not isinstance(place, JournalPlace):
            return place.reply()
        signed = place.signed
        if signed is None:
            signed = self._sign(transaction)
            self._journal.store(place, signed)
        return {"ok": True, "raw": signed.raw, "hash": signed.hash, "number": place.number}

    def _describe(self) -> dict[str, Any]:
        policy = self._scheme.policy
        use = self._journal.use_of_day(self._now())
        return {
            "ok": True,
            "version": VERSION,
            "schemes": [SCHEME_NAME],
            "address": self.address,
            "chain_id": policy.chain_id,
            "spend_left_wei": policy.caps.spend_per_day_wei - use.spend_wei,
            "transactions_left": policy.caps.transactions_per_day - use.count,
        }

    def __repr__(self) -> str:
        return f"RequestHandler({self.address})"

    def __reduce__(self) -> str:
        raise TypeError("what holds a key is never pickled or copied")


def _signing(key: bytes, scheme: EvmScheme) -> Callable[[EvmTransaction], SignedTransaction]:
    def sign(transaction: EvmTransaction) -> SignedTransaction:
        return scheme.sign(transaction, key)

    return sign
