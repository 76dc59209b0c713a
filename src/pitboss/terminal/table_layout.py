"""Fits a table into the width of a window: columns of sentences wrap between words, and if that is not enough, columns are left out.

A word is broken only if it alone is wider than the space for its column in a table of two columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

GAP = 2
"""Spaces between two columns."""
LEAST_SENTENCE = 12
"""Sentences are not squeezed into fewer characters than this; a column is left out before that."""
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
    full = {index: max([cell_len(headings[index]), *(cell_len(row[index]) for row in rows)]) for index in columns}
    least = {
        index: _least(headings[index], [row[index] for row in rows], index in folds, full[index]) for index in columns
    }
    kept = list(columns)
    left_out: list[int] = []
    for index in [*drop, *(index for index in reversed(columns) if index not in drop)]:
        if _total(kept, least) <= width or len(kept) <= LEAST_COLUMNS:
            break
        if index or index in drop:
            kept.remove(index)
            left_out.append(index)
    return TableLayout(_shared(kept, least, full, width), tuple(sorted(left_out)))


def _least(heading: str, cells: Sequence[str], folds: bool, full: int) -> int:
    """The width below which a column would have to break a word."""
    words = max([cell_len(word) for word in heading.split()], default=0)
    if not folds:
        return max([words, *(cell_len(cell) for cell in cells)])
    longest = max([cell_len(word) for cell in cells for word in cell.split()], default=0)
    return min(full, max(words, longest, LEAST_SENTENCE))


def _total(kept: Sequence[int], widths: dict[int, int]) -> int:
    return sum(widths[index] for index in kept) + GAP * (len(kept) - 1)


def _shared(kept: Sequence[int], least: dict[int, int], full: dict[int, int], width: int) -> dict[int, int]:
    """The widths of the columns: what they need, and equal shares of the rest for those that want more."""
    widths = {index: least[index] for index in kept}
    rest = width - _total(kept, widths)
    while rest < 0:  # words have to be broken: the widest columns give way
        widest = max(widths, key=lambda index: widths[index])
        if widths[widest] == 1:
            break
        widths[widest] -= 1
        rest += 1
    while rest > 0 and (hungry := [index for index in kept if widths[index] < full[index]]):
        for index in hungry[:rest]:
            widths[index] += 1
        rest -= min(rest, len(hungry))
    return widths
