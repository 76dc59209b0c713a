"""Users, sessions, tokens and the audit log, on both databases; the hashes of passwords."""

import pytest

from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.core.instant import DAY_MS, HOUR_MS
from pitboss.store.api_tokens import ApiTokens
from pitboss.store.audit_log import AuditLog
from pitboss.store.passwords import NO_PASSWORD, check_password, hash_password, is_password
from pitboss.store.sessions import Sessions
from pitboss.store.users import MACHINE_USER, Users


def test_a_password_fits_its_hash_and_no_other():
    stored = hash_password("a good password", "ab" * 16, log_n=4, p=1)

    assert is_password("a good password", stored)
    assert not is_password("another password", stored)
    assert not is_password("a" * 2_000, stored)
    assert not is_password("", NO_PASSWORD)
    assert hash_password("a good password", "cd" * 16, log_n=4, p=1) != stored
    assert "good" not in stored


@pytest.mark.parametrize("password", ["", "eleven char", "x" * 1_025])
def test_the_only_rule_for_a_password_is_its_length(password):
    with pytest.raises(UserError):
        check_password(password)
    check_password("             ")
    check_password("twelve chars")


def test_users_are_added_once_changed_and_found(bench):
    users = Users(bench.database, bench.now)
    assert not users.can_sign_in()
    anna = users.add("anna", "author", "hash")

    assert (anna.owner, anna.disabled) == ("anna", False)
    assert users.can_sign_in()
    assert users.get("anna") == anna
    assert users.get("ghost") is None
    assert users.get("local") == MACHINE_USER
    assert users.change("anna", role="admin", disabled=True).role == "admin"
    assert [user.disabled for user in users.list()] == [True]
    assert not users.can_sign_in()
    with pytest.raises(UserError, match="there is a user anna already"):
        users.add("anna", "viewer", "")
    with pytest.raises(UserError, match="there is no user"):
        users.change("ghost", role="admin")


@pytest.mark.parametrize("name", ["", "Anna", "a b", "a" * 65, "../x", "<b>", "-a", "ä", "a\n", "local"])
def test_a_name_that_could_be_mistaken_for_something_else_is_refused(bench, name):
    with pytest.raises(UserError):
        Users(bench.database, bench.now).add(name, "viewer", "")


def test_a_user_whose_row_was_changed_is_not_believed(bench):
    users = Users(bench.database, bench.now)
    users.add("anna", "viewer", "hash")
    with bench.database.write() as connection:
        connection.exec_driver_sql("UPDATE users SET role = 'admin'")

    with pytest.raises(ReplayMismatch):
        users.get("anna")


def test_a_session_lasts_while_it_is_used_and_no_longer_than_its_end(bench):
    sessions = Sessions(bench.database, bench.now, HOUR_MS, DAY_MS)
    sessions.begin("d" * 64, "anna")
    for _ in range(30):
        bench.at += 50 * 60_000
        found = sessions.find("d" * 64)
        if found is None:
            break
    assert bench.at - 1_700_000_000_000 == pytest.approx(DAY_MS, abs=50 * 60_000)

    sessions.begin("e" * 64, "anna")
    bench.at += HOUR_MS
    assert sessions.find("e" * 64) is None
    sessions.begin("f" * 64, "bob")
    with bench.database.read() as connection:
        left = connection.exec_driver_sql("SELECT digest FROM sessions").scalars().all()
    assert left == ["f" * 64]


def test_sessions_end_one_by_one_or_all_of_a_user_but_one(bench):
    sessions = Sessions(bench.database, bench.now, HOUR_MS, DAY_MS)
    for digest, name in (("1" * 64, "anna"), ("2" * 64, "anna"), ("3" * 64, "anna"), ("4" * 64, "bob")):
        sessions.begin(digest, name)
    sessions.end("1" * 64)
    sessions.end_all("anna", besides="2" * 64)

    assert [sessions.find(number * 64) is not None for number in "1234"] == [False, True, False, True]


def test_a_session_whose_row_was_changed_is_none(bench):
    sessions = Sessions(bench.database, bench.now, HOUR_MS, DAY_MS)
    sessions.begin("d" * 64, "anna")
    with bench.database.write() as connection:
        connection.exec_driver_sql("UPDATE sessions SET user_name = 'admin'")
    assert sessions.find("d" * 64) is None


def test_tokens_are_found_by_their_digest_until_they_end(bench):
    tokens = ApiTokens(bench.database, bench.now, bench.new_id)
    token = tokens.add("d" * 64, "anna", "  for\x00 nightly   runs ", "author", bench.at + DAY_MS)
    other = tokens.add("e" * 64, "bob", "b", "viewer", None)

    assert token.label == "for nightly runs"
    assert tokens.find("d" * 64) == token
    assert tokens.list("anna")[0].last_used_at == bench.at
    assert tokens.find("f" * 64) is None
    assert [listed.id for listed in tokens.list()] == [token.id, other.id]
    with pytest.raises(UserError, match="there is no token"):
        tokens.revoke(other.id, "anna")
    tokens.revoke(other.id)
    assert tokens.find("e" * 64) is None
    bench.at += DAY_MS
    assert tokens.find("d" * 64) is None
    for label, expires_at in (("", None), ("x" * 201, None), ("x", bench.at)):
        with pytest.raises(UserError):
            tokens.add("0" * 64, "anna", label, "viewer", expires_at)


def test_old_entries_of_the_audit_log_are_deleted_and_an_entry_tells_how_many(bench, monkeypatch):
    monkeypatch.setattr("pitboss.store.audit_log.BATCH", 2)
    log = AuditLog(bench.database, bench.now)
    for number in range(5):
        log.append("anna", "127.0.0.1", f"act {number}")
        bench.at += DAY_MS

    assert log.prune(bench.at - 2 * DAY_MS) == 3
    assert [entry.action for entry in log.listing()] == ["audit prune", "act 4", "act 3"]
    assert log.listing()[0].detail.startswith("3 entries from before ")
    assert log.prune(bench.at - 2 * DAY_MS) == 0
    assert len(log.listing()) == 3


def test_the_scopes_of_a_token_are_stored_with_it_under_its_seal(bench):
    tokens = ApiTokens(bench.database, bench.now, bench.new_id)
    token = tokens.add("d" * 64, "anna", "a", "author", None, ["runs:read", "costs:read", "runs:read"])
    assert token.scopes == {"costs:read", "runs:read"}
    assert tokens.find("d" * 64) == token
    with bench.database.write() as connection:
        connection.exec_driver_sql("UPDATE api_tokens SET scopes = NULL")
    assert tokens.find("d" * 64) is None


def test_the_audit_log_is_read_newest_first_and_shows_what_was_changed(bench):
    log = AuditLog(bench.database, bench.now)
    for number in range(3):
        log.append("anna" if number else "bob", "127.0.0.1", f"act {number}", "x" * 2_000, "a\nb\u202e")
        bench.at += 1
    with bench.database.write() as connection:
        connection.exec_driver_sql("UPDATE audit_log SET user_name = 'eve' WHERE action = 'act 1'")

    entries = log.listing()
    assert [(entry.action, entry.intact) for entry in entries] == [("act 2", True), ("act 1", False), ("act 0", True)]
    assert entries[0].detail == "a b "
    assert len(entries[0].object) == 1_000
    assert [entry.action for entry in log.listing(1, before=entries[0].id)] == ["act 1"]
    assert [entry.action for entry in log.listing(user_name="bob")] == ["act 0"]
