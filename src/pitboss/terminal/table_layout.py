"""Fits a table into the width of a window: columns of sentences wrap between words, and if that is not enough, columns are left out.

A word is broken only in a column of sentences if it is as long as an address or a path, and where it does not fit into a table of two
columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

GAP = 2
"""Spaces between two columns."""
LEAST_SENTENCE = 12
"""Sentences are not squeezed into fewer characters than this; a column is left out before that."""
LONG_WORD = 30
"""A longer word among sentences is an address, a path or a list without spaces, and may be broken."""
LEAST_COLUMNS = 2


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The columns that are shown, each with its width, and those that are left out."""

    widths: dict[int, int]
    left_out: tuple[int, ...]


def fit_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    folds: Sequence[int] = (),
    drop: Sequence[int] = (),
) -> TableLayout:
    """The layout of a table in a window of a width.

    `folds` are the columns of sentences. `drop` are the columns that are left out first, in that order; then those at the right
    follow, down to two.
    """
    columns = range(len(headings))
    cells = {index: [headings[index], *(row[index] for row in rows)] for index in columns}
    full = {index: max(map(cell_len, cells[index])) for index in columns}
    words = {
        index: max((cell_len(word) for cell in cells[index] for word in cell.split()), default=0) for index in columns
    }
    least = {index: _least(cells[index], index in folds, full[index], words[index]) for index in columns}
    kept = list(columns)
    left_out: list[int] = []
    for index in [*drop, *(index for index in reversed(columns) if index and index not in drop)]:
        if _total(kept, least) <= width or len(kept) <= LEAST_COLUMNS:
            break
        kept.remove(index)
        left_out.append(index)
    widths = {index: least[index] for index in kept}
    _shrink(widths, _total(kept, widths) - width)
    for wanted in (words, full):
        _grow(widths, wanted, width - _total(kept, widths))
    return TableLayout(widths, tuple(sorted(left_out)))


def _least(cells: Sequence[str], folds: bool, full: int, longest_word: int) -> int:
    """The width below which a column would have to break a word. Headings may wrap in every column."""
    heading, *rest = cells
    words = max((cell_len(word) for word in heading.split()), default=0)
    if not folds:
        return max([words, *map(cell_len, rest)])
    return min(full, max(words, min(longest_word, LONG_WORD), LEAST_SENTENCE))


def _total(kept: Sequence[int], widths: dict[int, int]) -> int:
    return sum(widths[index] for index in kept) + GAP * (len(kept) - 1)


def _shrink(widths: dict[int, int], excess: int) -> None:
    """Take from the widest columns; words have to be broken then."""
    for _ in range(excess):
        widest = max(widths, key=lambda index: widths[index])
        widths[widest] = max(1, widths[widest] - 1)


def _grow(widths: dict[int, int], wanted: dict[int, int], spare: int) -> None:
    """Give equal shares of the spare width to the columns that want more."""
    while spare > 0 and (hungry := [index for index in widths if widths[index] < wanted[index]]):
        for index in hungry[:spare]:
            widths[index] += 1
        spare -= len(hungry[:spare])
