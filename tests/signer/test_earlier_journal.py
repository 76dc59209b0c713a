"""A journal that was written before schemes had files of their own opens, and gives the same bytes and counts."""

import sqlite3
from pathlib import Path

from pitboss.core.instant import DAY_MS
from pitboss.signer.evm.transaction_journal import recent_signatures, use_of_day
from pitboss.signer.journal import SigningJournal
from pitboss.signer.request_handler import RequestHandler
from pitboss.signer.schemes.evm_transaction import EvmScheme
from signer.hostile_requests import KEY, POLICY, line, payload

EARLIER = """
CREATE TABLE requests (
    request_id TEXT PRIMARY KEY, slot TEXT NOT NULL UNIQUE, content TEXT NOT NULL, created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE signatures (
    request_id TEXT NOT NULL REFERENCES requests, number INTEGER NOT NULL, fee TEXT NOT NULL, priority_fee TEXT NOT NULL,
    spend TEXT NOT NULL, day INTEGER NOT NULL, raw TEXT, hash TEXT, PRIMARY KEY (request_id, number)
) STRICT;
CREATE TABLE days (day INTEGER PRIMARY KEY, spend TEXT NOT NULL, count INTEGER NOT NULL) STRICT;
INSERT INTO requests VALUES ('a', 'evm_transaction:1337:0', '{content}', 1728000000000);
INSERT INTO signatures VALUES ('a', 1, '10000000000', '1000000000', '1000000000000000', 20000, '0xkept', '0xhash');
INSERT INTO days VALUES (20000, '1000000000000000', 1);
"""


def test_a_journal_of_an_earlier_version_opens_with_its_signatures_and_counts(tmp_path: Path) -> None:
    from pitboss.signer.evm.transaction import EvmTransaction

    at = 20_000 * DAY_MS
    earlier = sqlite3.connect(tmp_path / "journal.db")
    earlier.executescript(EARLIER.replace("{content}", EvmTransaction(**payload()).content_digest))
    earlier.close()
    journal = SigningJournal(tmp_path / "journal.db")
    handler = RequestHandler(KEY, EvmScheme(POLICY), journal, lambda: at)
    kept = {"ok": True, "build": handler.build, "raw": "0xkept", "hash": "0xhash", "number": 1}
    assert handler.handle(line("a", payload())) == kept
    assert use_of_day(journal, at).count == 1
    assert handler.handle(line("b", payload()))["code"] == "S14_NONCE_USED"
    assert recent_signatures(journal, 5) == [("a", "evm_transaction:1337:0", 1, "0xhash")]
    assert journal.halts() == []
