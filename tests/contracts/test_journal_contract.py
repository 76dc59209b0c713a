"""What every Journal does, whatever it is made of. A new implementation is one more entry in `JOURNALS`."""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import postgres_server
from pitboss.core import codec
from pitboss.core.errors import InvariantError, ReplayMismatch
from pitboss.core.snapshot import GENESIS, check, seal
from pitboss.core.state import LastDecision, State
from pitboss.store.database import Database, open_database
from pitboss.store.journal import StoredJournal
from pitboss.store.runs import Runs
from pitboss.store.skills import Skills
from pitboss.testing.journal import MemoryJournal, chained, state_after


@dataclass(frozen=True)
class Case:
    """How to make a fresh journal, and how to open the same one again as another process would."""

    new: Callable[[], Any]
    reopen: Callable[[Any], Any]


def _memory(_request: pytest.FixtureRequest) -> Iterator[Case]:
    yield Case(MemoryJournal, MemoryJournal)


def _sqlite(request: pytest.FixtureRequest) -> Iterator[Case]:
    with open_database(request.getfixturevalue("tmp_path") / "pitboss.db") as database:
        yield _stored(database)


def _postgres(request: pytest.FixtureRequest) -> Iterator[Case]:
    template = request.getfixturevalue("empty_postgres")
    with postgres_server.leased_database(template) as address, open_database(address) as database:
        yield _stored(database)


@pytest.fixture(scope="module")
def empty_postgres() -> Iterator[str]:
    """A migrated database without a row, to be copied."""
    address = postgres_server.new_database()
    open_database(address).close()
    yield address
    postgres_server.drop(address)


def _stored(database: Database) -> Case:
    ids = itertools.count()

    def new_id() -> str:
        return f"id{next(ids)}"

    def now() -> int:
        return 0

    runs = Runs(database, now, new_id)
    skill = Skills(database, now, new_id).save("trend", "1" * 64, b"")

    def new() -> StoredJournal:
        run_id = runs.create(skill.id, skill.version, "m", {})
        return StoredJournal(database, run_id, runs.claim(run_id))

    def reopen(journal: StoredJournal) -> StoredJournal:
        return StoredJournal(database, journal.run_id, runs.claim(journal.run_id))

    return Case(new, reopen)


JOURNALS = {"memory": _memory, "sqlite": _sqlite, "postgres": _postgres}


@pytest.fixture(params=sorted(JOURNALS))
def case(request):
    yield from JOURNALS[request.param](request)


def commit(journal, records, state=None, progress=0.5):
    asyncio.run(journal.commit(records, state or state_after(records), progress))


def test_a_new_journal_is_empty(case):
    journal = case.new()

    assert list(journal.records()) == []
    assert journal.latest_state() is None


def test_records_come_back_as_they_were_in_order(case):
    journal, records = case.new(), chained(5)
    commit(journal, records[:2])
    commit(journal, records[2:3])
    commit(journal, records[3:])

    assert list(journal.records()) == records
    assert list(case.reopen(journal).records()) == records
    assert list(journal.records(3)) == records[3:]


def test_a_stored_chain_checks_from_its_beginning(case):
    journal, records = case.new(), chained(4)
    commit(journal, records)

    expected = GENESIS
    for number, record in enumerate(journal.records()):
        check(record, number, expected)
        expected = record.digest


def test_records_can_be_read_any_number_of_times(case):
    journal, records = case.new(), chained(3)
    commit(journal, records)

    assert list(journal.records()) == list(journal.records()) == records


def test_the_latest_state_is_the_last_one_committed_and_reads_back_exactly(case):
    journal, records = case.new(), chained(3)
    commit(journal, records[:1])
    state = replace(
        state_after(records, {"cash": Decimal("9999.00000000000000000001")}),
        accepted_opens=(1, 2),
        last=LastDecision(7, "refused", code="R3_POSITION_CAP"),
        asked_close={"BTC": 1.5},
    )
    commit(journal, records[1:], state)

    for opened in (journal, case.reopen(journal)):
        seq, plain = opened.latest_state()
        assert seq == 3
        assert plain == codec.plain(state)
        assert codec.parse(State, plain) == replace(state, world={"cash": "9999.00000000000000000001"})


def test_a_state_can_be_committed_without_records(case):
    journal, records = case.new(), chained(2)
    commit(journal, records)
    commit(journal, [], replace(state_after(records), model_errors=2))

    assert journal.latest_state()[1]["model_errors"] == 2
    assert list(journal.records()) == records


def test_a_state_can_be_committed_before_the_first_record(case):
    journal = case.new()
    commit(journal, [], State(world={"cash": "1"}))

    assert journal.latest_state() == (0, codec.plain(State(world={"cash": "1"})))


def test_a_reopened_journal_goes_on_where_the_last_commit_was(case):
    journal, records = case.new(), chained(4)
    commit(journal, records[:2])
    second = case.reopen(journal)
    commit(second, records[2:])

    assert list(second.records()) == records


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("a hole", lambda records: records[3:]),
        ("a repeat", lambda records: records[1:]),
        ("a hole inside", lambda records: [records[2], records[4]]),
        ("the wrong order", lambda records: [records[3], records[2]]),
        ("another chain", lambda records: [seal(2, "tick", 5, "f" * 64, {}, {})]),
    ],
)
def test_records_that_do_not_continue_the_chain_are_refused_and_leave_nothing(case, name, wrong):
    journal, records = case.new(), chained(5)
    commit(journal, records[:2])
    before = journal.latest_state()

    with pytest.raises(ReplayMismatch):
        commit(journal, wrong(records))

    assert list(journal.records()) == records[:2]
    assert journal.latest_state() == before
    commit(journal, records[2:])
    assert list(case.reopen(journal).records()) == records


def test_a_first_record_that_does_not_begin_at_the_beginning_is_refused(case):
    for wrong in (chained(3)[1:], [seal(0, "tick", 0, "f" * 64, {}, {})]):
        journal = case.new()
        with pytest.raises(ReplayMismatch):
            commit(journal, wrong)
        assert list(journal.records()) == []


def test_a_state_that_is_not_the_end_of_its_records_is_refused_and_leaves_nothing(case):
    journal, records = case.new(), chained(3)

    for state in (state_after(records[:1]), replace(state_after(records), prev_digest="f" * 64)):
        with pytest.raises(ReplayMismatch, match="state"):
            commit(journal, records, state)

    assert list(journal.records()) == []
    assert journal.latest_state() is None


def test_a_state_that_cannot_be_encoded_leaves_nothing(case):
    journal, records = case.new(), chained(2)

    with pytest.raises(TypeError):
        commit(journal, records, state_after(records, object()))

    assert list(journal.records()) == []
    commit(journal, records)
    assert list(journal.records()) == records


@pytest.mark.parametrize("progress", [float("nan"), -0.1, 1.1, 50.0])
def test_progress_is_a_share_of_the_whole(case, progress):
    journal = case.new()

    with pytest.raises(InvariantError, match="progress"):
        commit(journal, chained(1), progress=progress)

    assert list(journal.records()) == []


def test_two_runs_do_not_see_each_other(case):
    one, other, records = case.new(), case.new(), chained(3)
    commit(one, records)
    commit(other, records[:1])

    assert list(one.records()) == records
    assert list(other.records()) == records[:1]


def test_large_and_odd_contents_come_back_byte_for_byte(case):
    journal = case.new()
    covered = {"text": "λ–\U0001f4c8 \x00 \u2028 " * 5000, "empty": "", "deep": [[[]]]}
    record = seal(0, "span", -5, GENESIS, covered, {})
    commit(journal, [record])

    assert list(journal.records()) == [record]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=8))
def test_however_records_are_batched_and_whenever_it_is_reopened_the_chain_is_the_same(case, batches):
    journal, records, done = case.new(), chained(sum(count for count, _ in batches)), 0
    for count, reopened in batches:
        if reopened:
            journal = case.reopen(journal)
        upto = records[: done + count]
        commit(journal, upto[done:], state_after(upto))
        done += count

    assert list(journal.records()) == records
    assert not batches or journal.latest_state() == (done, codec.plain(state_after(records)))
