"""The seal of a row: what it is taken over, and that no update launders a changed byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from pitboss.core.errors import InvariantError, ReplayMismatch
from pitboss.store import schema
from pitboss.store import sealed_rows as rows

VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=20),
    st.binary(max_size=20),
)


def kinds(values):
    """Tells 1 from 1.0 and 0.0 from -0.0, which `==` does not."""
    return [(type(value).__name__, repr(value)) for value in values]


@given(st.lists(VALUES, max_size=6), st.lists(VALUES, max_size=6))
def test_two_rows_have_the_same_seal_only_if_they_hold_the_same_values(one, other):
    same = rows.seal("t", map(rows.encode, one)) == rows.seal("t", map(rows.encode, other))

    assert same == (kinds(one) == kinds(other))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((None,), ("",)),
        ((1,), ("1",)),
        (("ab", "c"), ("a", "bc")),
        ((b"a",), ("a",)),
        ((1,), (1.0,)),
        ((1, 23), (12, 3)),
    ],
)
def test_values_that_look_alike_have_different_seals(first, second):
    assert rows.seal("t", map(rows.encode, first)) != rows.seal("t", map(rows.encode, second))


def test_rows_of_different_tables_have_different_seals():
    assert rows.seal("t", [rows.encode(1)]) != rows.seal("u", [rows.encode(1)])


def test_a_boolean_is_sealed_as_the_number_that_sqlite_gives_back():
    assert rows.encode(True) == rows.encode(1)


def test_a_value_that_no_column_holds_is_refused():
    with pytest.raises(TypeError, match="list are not stored"):
        rows.encode([1])


def test_every_table_has_a_seal_and_every_other_column_is_under_it():
    for table in schema.metadata.tables.values():
        assert not table.c[schema.SEAL].nullable
        own = {schema.SEAL} | (
            {"id"} if table.name in ("run_events", "audit_log") else set()
        )  # a number that the database gives
        assert set(rows.sealed_columns(table)) == {column.name for column in table.columns} - own


def test_an_update_refuses_a_row_that_was_changed_behind_its_seal(bench):
    run_id, epoch = bench.running()
    with bench.database.write() as connection:
        connection.execute(text("UPDATE runs SET model = 'another'"))

    with pytest.raises(ReplayMismatch, match=f"runs was changed after it was written .id {run_id}"):
        bench.runs.heartbeat(run_id, epoch)


def test_an_update_of_a_row_that_moved_on_meanwhile_fails(bench):
    run_id = bench.queued()
    with bench.database.read() as connection:
        old = rows.fetch(connection, schema.runs, {"id": run_id})
    bench.runs.claim(run_id)

    with pytest.raises(InvariantError, match="changed concurrently"), bench.database.write() as connection:
        rows.change(connection, schema.runs, old, {"status": "cancelled"})

    assert bench.runs.get(run_id).status == "loading"
