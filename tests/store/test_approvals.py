"""Approvals: one for each tool, the newest counts, and changed rows are detected."""

import pytest
from sqlalchemy import text

from pitboss.core.errors import ReplayMismatch
from pitboss.store.approvals import Approval, Approvals
from pitboss.store.database import open_database

DIGEST, OTHER = "a" * 64, "b" * 64


@pytest.fixture
def approvals(bench):
    return Approvals(bench.database, bench.now)


def test_nothing_is_approved_by_default(approvals):
    assert approvals.of("time") == {}


def test_an_approval_is_there_for_another_process_with_its_text_and_its_time(bench, approvals, address):
    assert approvals.approve("time", "now", DIGEST, b"{}")

    with open_database(address) as database:
        assert Approvals(database, bench.now).of("time") == {"now": Approval("time", "now", DIGEST, b"{}", bench.at)}
        assert Approvals(database, bench.now).of("tim") == {}


def test_a_new_approval_takes_the_place_of_the_old_and_the_same_again_changes_nothing(bench, approvals):
    approvals.approve("time", "now", DIGEST, b"{}")
    bench.at += 1_000

    assert not approvals.approve("time", "now", DIGEST, b"{}")
    assert approvals.of("time")["now"].approved_at == bench.at - 1_000
    assert approvals.approve("time", "now", OTHER, b"[]")
    assert approvals.of("time")["now"] == Approval("time", "now", OTHER, b"[]", bench.at)


def test_tools_of_two_servers_are_kept_apart(approvals):
    approvals.approve("time", "now", DIGEST, b"{}")
    approvals.approve("clock", "now", OTHER, b"{}")

    assert approvals.of("time")["now"].digest == DIGEST
    assert approvals.of("clock")["now"].digest == OTHER


@pytest.mark.parametrize(
    "change", ["digest = 'c'", "definition = CAST('0' AS {bytes})", "tool = 'then'", "approved_at = 1"]
)
def test_a_changed_row_is_found_out_and_never_sealed_again(bench, approvals, change):
    approvals.approve("time", "now", DIGEST, b"{}")
    with bench.database.write() as connection:
        kind = "BLOB" if bench.database.journal_mode else "BYTEA"
        connection.execute(text(f"UPDATE approvals SET {change.format(bytes=kind)}"))

    with pytest.raises(ReplayMismatch, match="approvals"):
        approvals.of("time")
    if not change.startswith("tool"):
        with pytest.raises(ReplayMismatch, match="approvals"):
            approvals.approve("time", "now", OTHER, b"{}")
