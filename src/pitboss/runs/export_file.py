"""Write an export of a run (`runs/export.py`) as JSON lines, CSV or Parquet.

A table holds the same values as the JSON lines: amounts as texts of exact decimals, times as ISO-8601 UTC, a list or an object as one
cell of JSON. In Parquet a column of whole numbers, or of truth values, keeps its type.
"""

import csv
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TextIO

from pitboss.core import codec, money
from pitboss.core.errors import UserError

FileFormat = Literal["jsonl", "csv", "parquet"]
Rows = Iterable[dict[str, Any]]
_SUFFIXES: dict[str, FileFormat] = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}


def format_of(path: Path | None, chosen: FileFormat | None) -> FileFormat:
    """The chosen format, else the one that the name of the file says, else JSON lines."""
    return chosen or (_SUFFIXES.get(path.suffix.lower(), "jsonl") if path is not None else "jsonl")


def write_text(rows: Rows, form: FileFormat, file: TextIO) -> int:
    """Write rows as JSON lines or CSV; returns how many there were. JSON lines are written as they come."""
    if form == "parquet":
        raise UserError("Parquet cannot be printed", "name a file with --out")
    if form == "jsonl":
        count = 0
        for row in rows:
            file.write(codec.dumps(row).decode() + "\n")
            count += 1
        return count
    table = list(rows)
    names = _columns(table)
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_csv_cell(row.get(name)) for name in names] for row in table)
    return len(table)


def write_file(rows: Rows, form: FileFormat, path: Path) -> int:
    """Write rows to a file, in place of what it held; returns how many there were."""
    if not path.name:
        raise UserError(f"{path} is a folder", "name a file with --out")
    part = path.with_name(f".{path.name}.part")
    try:
        if form == "parquet":
            count = _write_parquet(list(rows), part)
        else:
            with part.open("w", encoding="utf-8", newline="") as file:
                count = write_text(rows, form, file)
        os.replace(part, path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}", "name another file with --out") from None
    finally:
        with suppress(OSError):
            part.unlink()
    return count


def _write_parquet(rows: Sequence[dict[str, Any]], path: Path) -> int:
    import polars as pl

    columns = {name: _typed([row.get(name) for row in rows]) for name in _columns(rows)}
    table = pl.DataFrame([pl.Series(name, values) for name, values in columns.items()])
    with path.open("wb") as file:  # an error of the library about a path has no text of the system
        table.write_parquet(file)
    return len(rows)


def _columns(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The names of all fields, in the order of first use."""
    return list(dict.fromkeys(name for row in rows for name in row))


def _typed(values: Sequence[Any]) -> list[Any]:
    """The values of a column: as they are if all are whole numbers or all are truth values, else texts."""
    if {type(value) for value in values if value is not None} in ({int}, {bool}):
        return list(values)
    return [None if value is None else _text(value) for value in values]


def _csv_cell(value: Any) -> str:
    return "" if value is None else _text(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return money.text(value) if isinstance(value, Decimal) else codec.dumps(value).decode()
