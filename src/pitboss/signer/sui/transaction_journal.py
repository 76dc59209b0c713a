"""The journal of the scheme `sui_transaction`: transactions, their signatures, and what is used of each UTC day.

A transaction is counted once, whatever it is asked for again: its bytes are one transaction on the chain. The day never goes back.
"""

from collections.abc import Mapping

from pitboss.core.instant import DAY_MS, Instant
from pitboss.signer.journal import SigningJournal, Statement

TABLES = """
CREATE TABLE IF NOT EXISTS sui_transactions (
    digest TEXT PRIMARY KEY, request_id TEXT NOT NULL UNIQUE, day INTEGER NOT NULL, created_at INTEGER NOT NULL, signature TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS sui_use (
    day INTEGER NOT NULL, name TEXT NOT NULL, amount TEXT NOT NULL, PRIMARY KEY (day, name)
) STRICT;
"""
GAS_NAME, COUNT_NAME, COINS_NAME = "gas", "transactions", "coins"
"""What is counted beside the amounts of functions, which have :: in their names."""


def day_of(run: Statement, now: Instant) -> int:
    """The day that the caps count for: today, or the last counted day if the clock has gone back."""
    last = run("SELECT max(day) FROM sui_use").fetchone()[0]
    return max(now // DAY_MS, last or 0)


def use_of(run: Statement, day: int) -> dict[str, int]:
    """What is used of a day, by name."""
    return {name: int(amount) for name, amount in run("SELECT name, amount FROM sui_use WHERE day = ?", day)}


def stored_transaction(run: Statement, request_id: str) -> tuple[str, str | None] | None:
    """Digest and signature of a request id."""
    return run("SELECT digest, signature FROM sui_transactions WHERE request_id = ?", request_id).fetchone()


def is_stored(run: Statement, digest: str) -> bool:
    """Whether a transaction was asked for, under any request id."""
    return run("SELECT 1 FROM sui_transactions WHERE digest = ?", digest).fetchone() is not None


def add_transaction(
    run: Statement, request_id: str, digest: str, day: int, totals: Mapping[str, int], now: Instant
) -> None:
    """Store a transaction and what the day has used with it."""
    run("INSERT INTO sui_transactions VALUES (?, ?, ?, ?, NULL)", digest, request_id, day, now)
    for name, amount in totals.items():
        run("INSERT OR REPLACE INTO sui_use VALUES (?, ?, ?)", day, name, str(amount))


def store_signature(journal: SigningJournal, digest: str, signature: str) -> None:
    """Store a signature before it leaves the process."""
    with journal.transaction() as run:
        run("UPDATE sui_transactions SET signature = ? WHERE digest = ?", signature, digest)


def recent_transactions(run: Statement, most: int) -> list[tuple[str, str, int]]:
    """The latest transactions: request id, digest and instant."""
    return run(
        "SELECT request_id, digest, created_at FROM sui_transactions ORDER BY created_at DESC LIMIT ?", most
    ).fetchall()
