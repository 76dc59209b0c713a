"""The journal of the scheme `evm_transaction`: requests, their signatures and replacements, and what is used of each UTC day.

A request id has one content and one nonce for ever: asked again it gets the same bytes, or a replacement with higher fees. The day
never goes back, even if the clock does. A request that is replaced on a later day counts for both days in full.
"""

from typing import Any

from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.noun import noun
from pitboss.signer.evm.policy import EvmCaps
from pitboss.signer.evm.transaction import EvmTransaction, SignedTransaction
from pitboss.signer.journal import SigningJournal, Statement
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
from pitboss.signer.scheme_definition import Reservation

TABLES = """
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
class DayUse:
    """What is used of one UTC day's caps."""

    day: int
    spend_wei: int = 0
    count: int = 0


def reserve_transaction(
    journal: SigningJournal, request_id: str, transaction: EvmTransaction, caps: EvmCaps, now: Instant
) -> Reservation | SigningRefusal:
    """Count a transaction and store its place, or return the place it has; or why it may not be signed."""
    with journal.transaction() as run:
        content = run("SELECT slot, content FROM requests WHERE request_id = ?", request_id).fetchone()
        if content is None:
            return _add(run, request_id, transaction, caps, now)
        if content != (transaction.slot, transaction.content_digest):
            return refuse(ID_CONFLICT)
        rows = run(
            "SELECT number, fee, priority_fee, spend, day, raw, hash FROM signatures WHERE request_id = ? ORDER BY number",
            request_id,
        ).fetchall()
        for number, fee, priority_fee, _, _, raw, tx_hash in rows:
            if (int(fee), int(priority_fee)) == transaction.fees:
                signed = None if raw is None else SignedTransaction(raw, tx_hash)
                return Reservation(request_id, transaction, signed, number)
        return _replace(run, request_id, transaction, caps, now, rows[-1])


def _add(
    run: Statement, request_id: str, transaction: EvmTransaction, caps: EvmCaps, now: Instant
) -> Reservation | SigningRefusal:
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
    run: Statement, request_id: str, transaction: EvmTransaction, caps: EvmCaps, now: Instant, last: Any
) -> Reservation | SigningRefusal:
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


def store_transaction(journal: SigningJournal, place: Reservation, signed: SignedTransaction) -> None:
    """Store signed bytes before they leave the process."""
    with journal.transaction() as run:
        run(
            "UPDATE signatures SET raw = ?, hash = ? WHERE request_id = ? AND number = ?",
            *(signed.raw, signed.hash, place.request_id, place.number),
        )


def use_of_day(journal: SigningJournal, now: Instant) -> DayUse:
    """What is used of the caps of the current day."""
    with journal.transaction() as run:
        return _use(run, now)


def recent_signatures(journal: SigningJournal, most: int) -> list[tuple[str, str, int, str | None]]:
    """The latest signatures: request id, slot, number and hash."""
    with journal.transaction() as run:
        return run(
            "SELECT request_id, slot, number, hash FROM signatures JOIN requests USING (request_id)"
            " ORDER BY created_at DESC, number DESC LIMIT ?",
            most,
        ).fetchall()


def _use(run: Statement, now: Instant) -> DayUse:
    """The day that the caps count for: today, or the last counted day if the clock has gone back."""
    last = run("SELECT day, spend, count FROM days ORDER BY day DESC LIMIT 1").fetchone()
    today = now // DAY_MS
    return DayUse(today) if last is None or last[0] < today else DayUse(last[0], int(last[1]), last[2])


def _count(
    run: Statement, request_id: str, number: int, transaction: EvmTransaction, use: DayUse, extra: int, more: int
) -> Reservation:
    fee, priority_fee = transaction.fees
    run("INSERT OR REPLACE INTO days VALUES (?, ?, ?)", use.day, str(use.spend_wei + extra), use.count + more)
    run(
        "INSERT INTO signatures VALUES (?, ?, ?, ?, ?, ?, NULL, NULL)",
        *(request_id, number, str(fee), str(priority_fee), str(transaction.spend), use.day),
    )
    return Reservation(request_id, transaction, None, number)
