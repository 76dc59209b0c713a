"""The journal of the scheme `hyperliquid_action`: nonces, verdicts that have opened an order, and what is used of each minute and day.

Everything that decides about a request happens in one transaction, before anything is signed: a nonce is on disk before it is used, and is
never used twice. Minute and day never go back, even if the clock does; then openings wait until it has caught up.
"""

from decimal import Decimal

from pitboss.core.instant import DAY_MS, MINUTE_MS, Instant
from pitboss.core.money import CONTEXT, ZERO, text
from pitboss.core.noun import noun
from pitboss.signer.hyperliquid.action_hash import ActionSignature
from pitboss.signer.journal import SigningJournal, Statement

TABLES = """
CREATE TABLE IF NOT EXISTS hyperliquid_actions (
    nonce INTEGER PRIMARY KEY, request_id TEXT NOT NULL UNIQUE, content TEXT NOT NULL, type TEXT NOT NULL,
    expires_after INTEGER NOT NULL, verdict TEXT NOT NULL, created_at INTEGER NOT NULL, r TEXT, s TEXT, v INTEGER
) STRICT;
CREATE TABLE IF NOT EXISTS hyperliquid_opens (
    verdict TEXT PRIMARY KEY, nonce INTEGER NOT NULL REFERENCES hyperliquid_actions, notional TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS hyperliquid_use (
    period TEXT NOT NULL, number INTEGER NOT NULL, orders INTEGER NOT NULL, notional TEXT NOT NULL,
    PRIMARY KEY (period, number)
) STRICT;
"""
PERIODS = {"minute": MINUTE_MS, "day": DAY_MS}


@noun
class OpenUse:
    """What is used of a minute's or a UTC day's caps."""

    period: str
    number: int
    orders: int = 0
    notional: Decimal = ZERO


@noun
class JournalledAction:
    """An action that has its nonce: what it was, and its signature if it was made."""

    nonce: int
    content: str
    expires_after: Instant
    signature: ActionSignature | None


def stored_action(run: Statement, request_id: str) -> JournalledAction | None:
    """The action of a request id, if it has one."""
    row = run(
        "SELECT nonce, content, expires_after, r, s, v FROM hyperliquid_actions WHERE request_id = ?", request_id
    ).fetchone()
    if row is None:
        return None
    nonce, content, expires_after, r, s, v = row
    return JournalledAction(nonce, content, expires_after, None if r is None else ActionSignature(r, s, v))


def add_action(
    run: Statement, request_id: str, content: str, kind: str, expires_after: Instant, verdict: str, now: Instant
) -> int:
    """Store a new action under the next nonce, which is returned: the clock's, or one above the last."""
    last = run("SELECT max(nonce) FROM hyperliquid_actions").fetchone()[0]
    nonce = now if last is None else max(now, last + 1)
    run(
        "INSERT INTO hyperliquid_actions VALUES (?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL)",
        *(nonce, request_id, content, kind, expires_after, verdict, now),
    )
    return nonce


def has_opened(run: Statement, verdict: str) -> bool:
    """Whether an opening order was signed for a verdict."""
    return run("SELECT 1 FROM hyperliquid_opens WHERE verdict = ?", verdict).fetchone() is not None


def add_open(run: Statement, verdict: str, nonce: int, notional: Decimal, uses: tuple[OpenUse, ...]) -> None:
    """Count an opening order and mark its verdict."""
    run("INSERT INTO hyperliquid_opens VALUES (?, ?, ?)", verdict, nonce, text(notional))
    for use in uses:
        run(
            "INSERT OR REPLACE INTO hyperliquid_use VALUES (?, ?, ?, ?)",
            *(use.period, use.number, use.orders + 1, text(CONTEXT.add(use.notional, notional))),
        )


def use_of(run: Statement, period: str, now: Instant) -> OpenUse:
    """What is used of the current minute or day: the clock's, or the last counted one if the clock has gone back."""
    current = now // PERIODS[period]
    row = run(
        "SELECT number, orders, notional FROM hyperliquid_use WHERE period = ? ORDER BY number DESC LIMIT 1", period
    ).fetchone()
    if row is None or row[0] < current:
        return OpenUse(period, current)
    return OpenUse(period, row[0], row[1], Decimal(row[2]))


def store_signature(journal: SigningJournal, nonce: int, signature: ActionSignature) -> None:
    """Store a signature before it leaves the process."""
    with journal.transaction() as run:
        run(
            "UPDATE hyperliquid_actions SET r = ?, s = ?, v = ? WHERE nonce = ?",
            *(signature.r, signature.s, signature.v, nonce),
        )


def recent_actions(run: Statement, most: int) -> list[tuple[int, str, str, int, str]]:
    """The latest actions: nonce, request id, type, expiry and digest of the verdict."""
    return run(
        "SELECT nonce, request_id, type, expires_after, verdict FROM hyperliquid_actions ORDER BY nonce DESC LIMIT ?",
        most,
    ).fetchall()
