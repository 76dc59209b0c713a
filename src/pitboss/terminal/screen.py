"""Output to the terminal: results on standard output, everything else on standard error.

Sentences are never cut or wrapped, so that they can be searched and copied; only tables depend on the window's width.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pitboss.bootstrap.redact import REDACTOR
from pitboss.core import money
from pitboss.terminal.table_layout import GAP, fit_table

OUT = Console(highlight=False, emoji=False)
ERR = Console(stderr=True, highlight=False, emoji=False)
WIDE = 1_000
"""Assumed width when the output is not a terminal, so that nothing is wrapped."""


def put(text: str = "", style: str = "") -> None:
    """Print a line of the result."""
    OUT.print(Text(text, style=style), soft_wrap=True)


def put_json(document: object) -> None:
    """Print the result as one JSON document."""
    data = orjson.dumps(document, default=_plain, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)
    sys.stdout.write(data.decode() + "\n")


def put_line(document: object) -> None:
    """Print one JSON object on a line and flush it, for programs that read the output as it comes."""
    data = orjson.dumps(document, default=_plain, option=orjson.OPT_NON_STR_KEYS)
    sys.stdout.write(REDACTOR.redact(data.decode()) + "\n")
    sys.stdout.flush()


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return money.text(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no place in a JSON document")


def put_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: Sequence[int] = (),
    folds: Sequence[int] = (),
    title: str = "",
    drop: Sequence[int] = (),
) -> None:
    """Print a table. `right` are the right-aligned columns, `folds` those with sentences, which wrap if the window is narrow.

    In a window that is too narrow columns are left out, those of `drop` first, and their names are printed below.
    """
    console = OUT if OUT.is_terminal else Console(width=WIDE, highlight=False, emoji=False)
    cells = [tuple(row) for row in rows]
    layout = fit_table(headings, cells, console.width, folds, drop)
    table = Table(title=title or None, title_justify="left", title_style="bold", header_style="bold", box=None)
    table.show_edge, table.pad_edge, table.padding = False, False, (0, GAP, 0, 0)
    table.show_header = any(headings)
    for index, width in layout.widths.items():
        side = "right" if index in right else "left"
        table.add_column(headings[index], justify=side, overflow="fold", width=width)
    for row in cells:
        table.add_row(*(Text(row[index]) for index in layout.widths))
    console.print(table)
    if layout.left_out:
        names = ", ".join(headings[index] for index in layout.left_out)
        console.print(Text(f"not shown in this width: {names}", "dim"))


def note(text: str) -> None:
    """Print a note on standard error."""
    ERR.print(Text(REDACTOR.redact(text)), soft_wrap=True)


def complain(message: str, hint: str = "") -> None:
    """Print an error and how to fix it."""
    ERR.print(Text.assemble(("error: ", "bold red"), REDACTOR.redact(message)), soft_wrap=True)
    if hint:
        ERR.print(Text.assemble(("hint: ", "bold"), REDACTOR.redact(hint)), soft_wrap=True)
