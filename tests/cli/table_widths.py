"""Checks that the tables of commands fit into windows of 80 and 120 columns without breaking a word."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from pitboss.terminal import screen
from pitboss.terminal.table_layout import LONG_WORD, fit_table

WIDTHS = (80, 120)


def table_lines(width: int, headings: Sequence[str], rows: Sequence[Sequence[str]], **options: Any) -> list[str]:
    """The lines of a table in a window of a width."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(screen, "OUT", Console(file=out, width=width, force_terminal=True, color_system=None))
        PUT_TABLE(headings, rows, **options)
    return out.getvalue().splitlines()


def check_fits(width: int, headings: Sequence[str], rows: Sequence[Sequence[str]], **options: Any) -> None:
    """Every line fits; every word of a column that is shown is there, except words that are wider than their column."""
    lines = table_lines(width, headings, rows, **options)
    assert all(cell_len(line) <= width for line in lines), lines
    layout = fit_table(headings, rows, width, options.get("folds", ()), options.get("drop", ()))
    words = {word for line in lines for word in line.split()}
    for index, column in layout.widths.items():
        for row in rows:
            assert {word for word in row[index].split() if cell_len(word) <= column} <= words, (width, headings, row)
            if len(layout.widths) > 2:
                most = LONG_WORD if index in options.get("folds", ()) else width
                assert all(cell_len(word) <= column for word in row[index].split() if cell_len(word) <= most)


@contextmanager
def checked_tables() -> Iterator[list[Sequence[str]]]:
    """Every table that is printed in the block is checked; gives the headings of each."""
    seen: list[Sequence[str]] = []

    def put(headings: Sequence[str], rows: Any, *given: Any, **options: Any) -> None:
        cells = [tuple(row) for row in rows]
        options |= dict(zip(("right", "folds", "title", "drop"), given, strict=False))
        assert not any("_" in heading for heading in headings), headings
        for width in WIDTHS:
            check_fits(width, headings, cells, **options)
        seen.append(headings)
        PUT_TABLE(headings, cells, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(screen, "put_table", put)
        yield seen


PUT_TABLE = screen.put_table
