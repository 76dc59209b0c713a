"""Files of strangers → raw columns. Knows formats, not meanings: `table` says what the columns are.

Text formats come back as text, so that no library guesses a type from the first hundred rows.
"""

import gzip
import hashlib
import io
import zlib
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from pitboss.core.errors import UserError
from pitboss.data.staging import UNREADABLE, first_line, silent_stderr
from pitboss.data.zip_files import read_zipped

_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".feather": "feather",
    ".arrow": "feather",
    ".ipc": "feather",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".zip": "zip",
}
_ZIPPED = ("csv", "jsonl", "json")
READABLE = "parquet, CSV, CSV.gz, feather, JSON lines, zip with one CSV"
MOST_UNPACKED = 4 * 2**30
"""Bytes that a .gz file may unpack to: more is not data but a mistake, or meant to hurt."""


def format_of(path: Path) -> str | None:
    """The format a file's name promises, or None."""
    name = path.name.lower()
    zipped = name.endswith(".gz")
    found = _FORMATS.get(Path(name.removesuffix(".gz")).suffix)
    return found if found and (not zipped or found in _ZIPPED) else None


def stem_of(path: Path) -> str:
    """The name without format and compression: `BTC` of `BTC.csv.gz`."""
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return Path(name).stem


def read(path: Path) -> pl.DataFrame | Any:
    """A table, or the plain value of a `.json` file that is not a list of rows."""
    return read_hashed(path)[0]


def read_hashed(path: Path) -> tuple[pl.DataFrame | Any, str]:
    """As `read`, with the SHA-256 of the very bytes that were read."""
    found = format_of(path)
    if found is None:
        raise UserError(f"{path}: unknown kind of file", f"readable are {READABLE}")
    try:
        content = path.read_bytes()
        table = _read(path, found, content)
    except UserError:
        raise
    except (*UNREADABLE, EOFError, TypeError, zlib.error) as error:
        raise UserError(f"{path} cannot be read as {found} ({first_line(error)})") from None
    if isinstance(table, pl.DataFrame) and table.is_empty():
        raise UserError(f"{path}: the file is empty", "a file needs at least one row")
    return table, hashlib.sha256(content).hexdigest()


def _read(path: Path, found: str, content: bytes) -> pl.DataFrame | Any:
    if found in ("parquet", "feather"):
        with silent_stderr():
            return (
                pl.read_ipc(content)
                if found == "feather"
                else pl.read_parquet(content, hive_partitioning=False, glob=False)
            )
    if found == "zip":
        return read_zipped(path, content)
    if path.name.lower().endswith(".gz"):
        content = _unpacked(path, content)
    if not content.strip():
        raise UserError(f"{path}: the file is empty", "a file needs at least one row")
    if found == "csv":
        return pl.read_csv(content, infer_schema=False)
    if found == "jsonl":
        return _table(
            path, [_line(path, number, line) for number, line in enumerate(content.splitlines(), 1) if line.strip()]
        )
    value = orjson.loads(content)
    rows = isinstance(value, list) and value and all(isinstance(row, dict) and "universe" not in row for row in value)
    return _table(path, value) if rows or value == [] else value


def _unpacked(path: Path, content: bytes) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        text = file.read(MOST_UNPACKED + 1)
    if len(text) > MOST_UNPACKED:
        raise UserError(f"{path}: unpacks to more than {MOST_UNPACKED >> 30} GB", "import it in smaller files")
    return text


def _line(path: Path, number: int, line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise UserError(f"{path}: line {number} is not valid JSON ({first_line(error)})") from None


def _table(path: Path, rows: list[Any]) -> pl.DataFrame | Any:
    if len(rows) == 1 and isinstance(rows[0], dict) and "universe" in rows[0]:
        return rows[0]
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise UserError(f"{path}: row {number} is not an object with named values")
    return pl.DataFrame(rows, infer_schema_length=None, strict=False)
