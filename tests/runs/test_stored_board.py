"""The display of a resumed run: the same as from all records, with a bounded number of them read."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.instant import HOUR_MS
from pitboss.core.snapshot import GENESIS, Record, seal
from pitboss.live.board import MOST_ENTRIES, Board
from pitboss.runs.stored_board import EVERY, StoredBoard
from pitboss.store.database import Database, open_database

VERDICT = {"detail": "", "order_id": None, "duplicate": False}
NUMBERS = itertools.count()
RECEIPT = {"at": 0, "symbol": "BTC", "order_id": ""}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with open_database(tmp_path_factory.mktemp("board") / "pitboss.db") as opened:
        yield opened


def tick(outcome: str, flags: list[str], cost: str | None, command: int) -> tuple[str, dict[str, Any], dict[str, Any]]:
    verdicts = [{**VERDICT, "outcome": outcome, "code": "R3"}] if outcome else []
    receipts = [{**RECEIPT, "kind": "command", "facts": {"number": command, "command": "pause"}}] if command else []
    receipts += [{**RECEIPT, "kind": "filled", "facts": {"action": outcome}}] if outcome else []
    body = {"proposals": [], "verdicts": verdicts, "receipts": receipts, "flags": flags, "text": outcome}
    return "tick", {**body, "after": {"equity": cost}}, {"cost_usd": cost}


def missed_span(slots: int) -> tuple[str, dict[str, Any], dict[str, Any]]:
    return "span", {"missed": slots, "until_at": 1, "receipts": []}, {"cost_usd": "0"}


BODIES = st.one_of(
    st.builds(
        tick,
        st.sampled_from(["", "allowed", "refused"]),
        st.sampled_from([[], ["paused"], ["model_error"]]),
        st.sampled_from(["0", "0.25", "0.1", None]),
        st.integers(0, 9),
    ),
    st.builds(missed_span, st.integers(1, 3)),
)


def sealed_records(bodies: list[tuple[str, dict[str, Any], dict[str, Any]]]) -> list[Record]:
    records: list[Record] = []
    for seq, (kind, body, extra) in enumerate(bodies):
        prev = records[-1].digest if records else GENESIS
        records.append(seal(seq, kind, seq * HOUR_MS, prev, body, extra))  # pyright: ignore[reportArgumentType]
    return records


def board_figures(board: Board) -> Any:
    return board.totals(), board.newest(), [board.paid_on(day) for day in range(40)]


def restored_figures(records: list[Record]) -> Any:
    board = Board()
    board.restore(records)
    return board_figures(board)


@given(st.lists(BODIES, min_size=1, max_size=40), st.integers(0, 40))
@settings(max_examples=100, deadline=None)
def test_a_board_that_counts_on_from_totals_counts_the_same(bodies: Any, cut: int) -> None:
    records = sealed_records(bodies)
    first, second = Board(), Board()
    first.restore(records[:cut])
    second.begin_with(first.totals())
    second.restore(records[cut:])
    assert second.totals() == restored_figures(records)[0]


@given(st.lists(BODIES, min_size=1, max_size=6), st.lists(st.integers(1, 170), min_size=1, max_size=6))
@settings(max_examples=10, deadline=None)
def test_a_restart_shows_the_same_as_all_records_do_and_reads_few(
    database: Database, bodies: Any, lives: list[int]
) -> None:
    run_id = f"r{next(NUMBERS)}"
    records = sealed_records([bodies[number % len(bodies)] for number in range(sum(lives))])
    done = 0
    for life in lives:
        read = list[int]()

        def stored(start: int, until: int = done, read: list[int] = read) -> Iterator[Record]:
            for record in records[start:until]:
                read.append(record.seq)
                yield record

        board = Board()
        keeper = StoredBoard(database, run_id, board)
        keeper.restore(stored)
        assert board_figures(board) == restored_figures(records[:done])
        assert len(read) <= EVERY + MOST_ENTRIES
        for record in records[done : done + life]:
            board.add(record)
            keeper.committed()
        done += life
