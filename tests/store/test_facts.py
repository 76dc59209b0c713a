"""Facts: one value under a key, the first write wins, and keys are listed by prefix."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from sqlalchemy import select

from pitboss.store.fact import keys_with, read_fact, write_fact
from pitboss.store.schema import facts
from pitboss.store.uncertain_charges import UncertainCharges


def test_processes_that_write_the_same_new_key_at_once_all_succeed(bench):
    def write(number):
        with bench.database.write() as connection:
            write_fact(connection, f"key {number // 8}", number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(80)))

    with bench.database.read() as connection:
        assert {read_fact(connection, f"key {number}") // 8 for number in range(10)} == set(range(10))


@pytest.mark.parametrize(
    ("key", "is_there"),
    [("doubt/ab/1", True), ("doubt/AB/1", False), ("doubt/abc/1", False), ("doubt/a", False), ("guess/ab/1", False)],
)
def test_keys_are_compared_by_their_bytes(bench, key, is_there):
    with bench.database.write() as connection:
        write_fact(connection, key, 1)
        keys = connection.execute(select(facts.c.key).where(keys_with("doubt/ab/"))).scalars().all()

    assert keys == ([key] if is_there else [])


def test_runs_whose_ids_differ_in_case_alone_have_charges_of_their_own(bench):
    UncertainCharges(bench.database, "ab", 1).note(Decimal(1))

    assert UncertainCharges(bench.database, "AB", 1).before_usd == 0


def test_keys_are_found_without_reading_all_of_them(file_bench):
    with file_bench.database.read() as connection:
        query = str(select(facts.c.key).where(keys_with("doubt/ab/")).compile(compile_kwargs={"literal_binds": True}))
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}").all()

    assert [row[-1].split()[0] for row in plan] == ["SEARCH"]
