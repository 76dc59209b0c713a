"""Requests are counted exactly within a process, and processes know of each other's after a second."""

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from sqlalchemy import func, select

from pitboss.store.database import Database, open_tables
from pitboss.venues.community.sns.rate_counter import SHARE_EVERY_MS, WINDOW_MS, RateCounter
from pitboss.venues.community.sns.tables import metadata, rate_windows

NOW = 1_767_225_600_000
LIMIT = {"address:a": 10}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_tables(tmp_path / "community.db", metadata) as one:
        yield one


def test_a_limit_is_exact_within_a_process_and_a_new_minute_begins_anew(database: Database) -> None:
    counter = RateCounter(database)
    assert [counter.is_over(LIMIT, NOW + number) for number in range(12)] == [False] * 10 + [True] * 2
    assert not counter.is_over({"address:b": 10}, NOW)
    assert counter.is_over({**LIMIT, "address:b": 10}, NOW)
    assert not counter.is_over(LIMIT, NOW + WINDOW_MS)


def test_a_caller_over_its_limit_adds_no_rows_by_new_credentials(database: Database) -> None:
    counter = RateCounter(database)
    answers = [counter.is_over({**LIMIT, f"credential:{number}": 600}, NOW + 10 * number) for number in range(500)]
    assert answers == [False] * 10 + [True] * 490
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(rate_windows)).scalar_one() == 11


def test_processes_know_of_each_others_requests_after_a_second(database: Database) -> None:
    one, two = RateCounter(database), RateCounter(database)
    assert not any(counter.is_over(LIMIT, NOW + number) for number in range(8) for counter in (one, two))
    later = NOW + SHARE_EVERY_MS
    one.is_over(LIMIT, later)
    two.is_over(LIMIT, later)  # adds its own and reads the sum
    assert two.is_over(LIMIT, later)
    one.is_over(LIMIT, later + SHARE_EVERY_MS)
    assert one.is_over(LIMIT, later + SHARE_EVERY_MS)


def test_no_request_of_many_threads_is_lost(database: Database) -> None:
    counter = RateCounter(database)
    limit = {"address:a": 400}
    results: list[bool] = []

    def ask(start: int) -> None:
        results.extend(counter.is_over(limit, NOW + start + 37 * number) for number in range(100))

    threads = [Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [False] * 400
    assert counter.is_over(limit, NOW + 3_700)
