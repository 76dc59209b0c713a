"""Restores the display of a live run without reading its whole history: from totals that are stored now and then, and the records since.

The totals that are stored are always older than the newest entries of the display, so that counting on from them gives the same display
as counting all records does.
"""

from collections.abc import Callable, Iterable

from pitboss.core.snapshot import Record
from pitboss.live.board import MOST_ENTRIES, Board, BoardTotals
from pitboss.store.board_totals import read_totals, write_totals
from pitboss.store.database import Database

EVERY = 200
"""How many records there are between two totals."""


class StoredBoard:
    """Keeps the totals of a board stored while its run goes on."""

    def __init__(self, database: Database, run_id: str, board: Board) -> None:
        self._database = database
        self._run_id = run_id
        self._board = board
        self._next_totals: BoardTotals | None = None

    def restore(self, records: Callable[[int], Iterable[Record]]) -> None:
        """Bring the board to the newest record. `records` gives those from a number on."""
        stored = read_totals(self._database, self._run_id)
        if stored is not None:
            self._board.begin_with(stored)
        for record in records(self._board.next_seq):
            self._board.add(record)
            self._capture()
        if self._next_totals is not None and self._is_old(self._next_totals):
            self._store(self._next_totals)

    def committed(self) -> None:
        """Store totals if they are due: called after a record was added to the board."""
        self._capture()
        if self._next_totals is not None and self._is_old(self._next_totals):
            self._store(self._next_totals)

    def _capture(self) -> None:
        board = self._board
        if board.next_seq % EVERY == 0 and (self._next_totals is None or self._is_old(self._next_totals)):
            self._next_totals = board.totals()

    def _is_old(self, totals: BoardTotals) -> bool:
        return self._board.next_seq - totals["next_seq"] >= MOST_ENTRIES

    def _store(self, totals: BoardTotals) -> None:
        write_totals(self._database, self._run_id, totals)
        self._next_totals = None
