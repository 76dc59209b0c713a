"""Recordings: the newest answer known at an instant, never a later one; append only; changes are detected."""

import json
from shutil import copy
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.core.past import Recording
from pitboss.store.database import open_database
from pitboss.store.recordings import StoredRecording, StoredRecordings, canonical, read_lines, write_line

AT = 1_748_736_000_000
EMPTY = "{}"


def recorded(
    at: int = AT, result: str = "twelve", arguments: str = EMPTY, tool: str = "now", failed: bool = False
) -> StoredRecording:
    return StoredRecording(Recording("time", tool, arguments, at, result, failed), "d" * 64)


@pytest.fixture
def stored(bench):
    return StoredRecordings(bench.database)


def test_the_newest_answer_by_an_instant_is_found_and_none_from_after_it(stored):
    stored.add([recorded(AT + 20, "later"), recorded(AT, "first"), recorded(AT + 10, "second", failed=True)])

    def latest(by: int) -> str | None:
        recording = stored.latest("time", "now", EMPTY, by)
        return None if recording is None else recording.result

    assert [latest(AT + by) for by in (-1, 0, 9, 10, 19, 20, 10**9)] == [
        None,
        "first",
        "first",
        "second",
        "second",
        "later",
        "later",
    ]
    assert stored.latest("time", "now", EMPTY, AT + 10) == recorded(AT + 10, "second", failed=True).recording


@settings(max_examples=15)
@given(st.lists(st.integers(0, 50), unique=True, max_size=12), st.integers(0, 60))
def test_for_any_times_the_answer_is_the_last_that_is_not_after(empty_file, times, by):
    with TemporaryDirectory() as folder, open_database(copy(empty_file, f"{folder}/pitboss.db")) as database:
        stored = StoredRecordings(database)
        stored.add([recorded(AT + at, str(at)) for at in times])
        recording = stored.latest("time", "now", EMPTY, AT + by)
        known = [at for at in times if at <= by]

    assert (recording and recording.result) == (str(max(known)) if known else None)


def test_other_arguments_servers_and_tools_have_answers_of_their_own(stored):
    one, other_arguments = canonical({"symbol": "BTC", "n": 1}), canonical({"n": 2, "symbol": "BTC"})
    stored.add(
        [
            recorded(arguments=one, result="one"),
            recorded(arguments=other_arguments, result="two"),
            recorded(tool="then"),
        ]
    )

    assert stored.latest("time", "now", one, AT).result == "one"
    assert stored.latest("time", "now", other_arguments, AT).result == "two"
    assert stored.latest("time", "now", EMPTY, AT) is None
    assert stored.latest("clock", "now", one, AT) is None
    assert (stored.count("time", "now", AT), stored.count("time", "now", AT - 1)) == (2, 0)


def test_the_same_answer_at_the_same_time_is_kept_once_and_another_one_refused_whole(stored):
    assert stored.add([recorded(), recorded(AT + 1)]) == 2
    assert stored.add([recorded(), recorded(AT + 2)]) == 1

    with pytest.raises(UserError, match="another result of now is recorded for 2025-06-01"):
        stored.add([recorded(AT + 3), recorded(result="thirteen")])
    assert stored.count("time", "now", AT + 9) == 3


@pytest.mark.parametrize("change", ["result = 'x'", "known_at = known_at - 1", "failed = NOT failed"])
def test_a_changed_recording_is_found_out(bench, stored, change):
    stored.add([recorded()])
    with bench.database.write() as connection:
        connection.execute(text(f"UPDATE recordings SET {change}"))

    with pytest.raises(ReplayMismatch, match="recordings"):
        stored.latest("time", "now", EMPTY, AT)


def test_the_digest_covers_what_was_known_by_then_of_the_tools_that_are_asked_for(stored):
    stored.add([recorded(), recorded(tool="then")])
    before = stored.digest({"time": ["now"]}, AT + 5)

    stored.add([recorded(AT + 6), recorded(AT + 1, tool="then")])
    assert stored.digest({"time": ["now"]}, AT + 5) == before
    assert stored.digest({"time": ["now", "then"]}, AT + 5) != before
    every = stored.digest(None, AT + 5)
    stored.add([recorded(AT + 5)])
    assert stored.digest({"time": ["now"]}, AT + 5) != before
    assert stored.digest(None, AT + 5) != every


def test_what_was_written_as_lines_is_read_back_the_same(stored):
    many = [recorded(AT + at, f"täst {at}", canonical({"n": at, "x": "ü"})) for at in range(600)]
    stored.add(many)
    lines = [write_line(kept) for kept in stored.of("time", "now")]

    assert len(lines) == 600
    assert sorted(read_lines(lines, "time", "now"), key=lambda kept: kept.recording.known_at) == many
    assert StoredRecordings(stored._database).add(read_lines(lines, "time", "now")) == 0


def test_arguments_are_one_question_however_they_are_written():
    line = '{"arguments": {"b": 1.0, "a": "x"}, "known_at": %d, "result": "r"}'
    (kept,) = read_lines([line % AT], "time", "now")

    assert kept.recording == Recording("time", "now", canonical({"a": "x", "b": 1}), AT, "r")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"known_at": None}, "known_at"),
        ({"known_at": "tomorrow"}, "line 2"),
        ({"known_at": True}, "known_at"),
        ({"result": 5}, "result must be text"),
        ({"arguments": []}, "arguments must be"),
        ({"failed": "no"}, "failed must be"),
        ({"server": "clock"}, "is of server 'clock', not time"),
        ({"resullt": "x"}, "unknown field 'resullt'"),
    ],
)
def test_a_line_that_is_wrong_is_named(change, message):
    good = {"arguments": {}, "known_at": "2025-06-01T00:00:00Z", "result": "r"}
    lines = [json.dumps(good), json.dumps({**good, **change})]

    with pytest.raises(UserError) as refusal:
        list(read_lines(lines, "time", "now"))
    assert refusal.value.message.startswith("line 2: ")
    assert message in refusal.value.message


@pytest.mark.parametrize("line", ["[]", "{", "5", "[" * 100_000, '{"a": NaN}'])
def test_what_is_no_json_object_is_named_too(line):
    with pytest.raises(UserError, match="line 1: is not a JSON object"):
        list(read_lines([line], "time", "now"))


def test_text_that_no_database_takes_is_made_storable(stored):
    stored.add([recorded(result="a\0b\ud800c")])

    assert stored.latest("time", "now", EMPTY, AT).result == "ab?c"
