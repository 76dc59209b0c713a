"""`SigningJournal`: what was signed and how much of each UTC day's caps is used, in an SQLite file of the signing process.

A request is counted and stored in one transaction before it is signed, and the signed bytes are stored before they leave. A
process that is killed in between has counted too much, never too little. A request id has one content and one nonce for ever:
asked again it gets the same bytes, or a replacement with higher fees.

The day never goes back, even if the clock does. A request that is replaced on a later day counts for both days in full.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.noun import noun
from pitboss.signer.evm_transaction import EvmTransaction, SignedTransaction
from pitboss.signer.policy import SigningCaps
from pitboss.signer.protocol import (
    DAY_COUNT,
    DAY_SPEND,
    FEE_NOT_HIGHER,
    ID_CONFLICT,
    NONCE_USED,
    REPLACEMENTS,
    SigningRefusal,
    refuse,
)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS requests (
    request_id TEXT PRIMARY KEY, slot TEXT NOT NULL UNIQUE, content TEXT NOT NULL, created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS signatures (
    request_id TEXT NOT NULL REFERENCES requests, number INTEGER NOT NULL, fee TEXT NOT NULL, priority_fee TEXT NOT NULL,
    spend TEXT NOT NULL, day INTEGER NOT NULL, raw TEXT, hash TEXT, PRIMARY KEY (request_id, number)
) STRICT;
CREATE TABLE IF NOT EXISTS days (day INTEGER PRIMARY KEY, spend TEXT NOT NULL, count INTEGER NOT NULL) STRICT;
"""


@noun
class JournalPlace:
    """Where a signature belongs: its request and number, and the bytes if they were signed before."""

    request_id: str
    number: int
    signed: SignedTransaction | None


@noun
class DayUse:
    """What is used of one UTC day's caps."""

    day: int
    spend_wei: int = 0
    count: int = 0


class SigningJournal:
    """The journal in one file, for one process at a time."""

    def __init__(self, path: Path) -> None:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=5.0)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def reserve(
        self, request_id: str, transaction: EvmTransaction, caps: SigningCaps, now: Instant
    ) -> JournalPlace | SigningRefusal:
        """Count a transaction and store its place, or return the place it has; or why it may not be signed."""
        with self._transaction() as run:
            content = run("SELECT slot, content FROM requests WHERE request_id = ?", request_id).fetchone()
            if content is None:
                return self._add(run, request_id, transaction, caps, now)
            if content != (transaction.slot, transaction.content_digest):
                return refuse(ID_CONFLICT)
            rows = run(
                "SELECT number, fee, priority_fee, spend, day, raw, hash FROM signatures WHERE request_id = ? ORDER BY number",
                request_id,
            ).fetchall()
            for number, fee, priority_fee, _, _, raw, tx_hash in rows:
                if (int(fee), int(priority_fee)) == transaction.fees:
                    return JournalPlace(request_id, number, None if raw is None else SignedTransaction(raw, tx_hash))
            return self._replace(run, request_id, transaction, caps, now, rows[-1])

    def _add(
        self, run: Any, request_id: str, transaction: EvmTransaction, caps: SigningCaps, now: Instant
    ) -> JournalPlace | SigningRefusal:
        if run("SELECT 1 FROM requests WHERE slot = ?", transaction.slot).fetchone() is not None:
            return refuse(NONCE_USED)
        use = _use(run, now)
        if use.count >= caps.transactions_per_day:
            return refuse(DAY_COUNT)
        if use.spend_wei + transaction.spend > caps.spend_per_day_wei:
            return refuse(DAY_SPEND)
        run("INSERT INTO requests VALUES (?, ?, ?, ?)", request_id, transaction.slot, transaction.content_digest, now)
        return _count(run, request_id, 1, transaction, use, transaction.spend, 1)

    def _replace(
        self, run: Any, request_id: str, transaction: EvmTransaction, caps: SigningCaps, now: Instant, last: Any
    ) -> JournalPlace | SigningRefusal:
        number, fee, priority_fee, spend, day = last[:5]
        if any(
            10 * new < 11 * int(old) or new <= int(old)
            for new, old in zip(transaction.fees, (fee, priority_fee), strict=True)
        ):
            return refuse(FEE_NOT_HIGHER)
        if number > caps.replacements:
            return refuse(REPLACEMENTS)
        use = _use(run, now)
        new_day = use.day > day
        extra = transaction.spend if new_day else transaction.spend - int(spend)
        if new_day and use.count >= caps.transactions_per_day:
            return refuse(DAY_COUNT)
        if use.spend_wei + extra > caps.spend_per_day_wei:
            return refuse(DAY_SPEND)
        return _count(run, request_id, number + 1, transaction, use, extra, int(new_day))

    def store(self, place: JournalPlace, signed: SignedTransaction) -> None:
        """Store signed bytes before they leave the process."""
        with self._transaction() as run:
            run(
                "UPDATE signatures SET raw = ?, hash = ? WHERE request_id = ? AND number = ?",
                *(signed.raw, signed.hash, place.request_id, place.number),
            )

    def use_of_day(self, now: Instant) -> DayUse:
        """What is used of the caps of the current day."""
        with self._transaction() as run:
            return _use(run, now)

    def recent(self, most: int) -> list[tuple[str, str, int, str | None]]:
        """The latest signatures: request id, slot, number and hash."""
        with self._transaction() as run:
            return run(
                "SELECT request_id, slot, number, hash FROM signatures JOIN requests USING (request_id)"
                " ORDER BY created_at DESC, number DESC LIMIT ?",
                most,
            ).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        """One transaction; committed unless the block raises."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield lambda statement, *values: self._connection.execute(statement, values)
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


def _use(run: Any, now: Instant) -> DayUse:
    """The day that the caps count for: today, or the last counted day if the clock has gone back."""
    last = run("SELECT day, spend, count FROM days ORDER BY day DESC LIMIT 1").fetchone()
    today = now // DAY_MS
    return DayUse(today) if last is None or last[0] < today else DayUse(last[0], int(last[1]), last[2])


def _count(
    run: Any, request_id: str, number: int, transaction: EvmTransaction, use: DayUse, extra: int, more: int
) -> JournalPlace:
    fee, priority_fee = transaction.fees
    run("INSERT OR REPLACE INTO days VALUES (?, ?, ?)", use.day, str(use.spend_wei + extra), use.count + more)
    run(
        "INSERT INTO signatures VALUES (?, ?, ?, ?, ?, ?, NULL, NULL)",
        *(request_id, number, str(fee), str(priority_fee), str(transaction.spend), use.day),
    )
    return JournalPlace(request_id, number, None)
