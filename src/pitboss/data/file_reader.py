"""Reads files of unknown origin into raw columns. Knows formats, not meanings: `table` says what the columns are.

Text formats are read as text, so that no library guesses a type from the first hundred rows. A zip file holds one CSV, as
Binance publishes klines, funding and open interest: it is checked against a `.CHECKSUM` file beside it. Older files of that
kind have no heading and get the usual one.

A compressed file (.gz, zip, parquet, feather) may be a thousand times larger than it looks. It is unpacked in memory, piece
by piece, up to `MOST_UNPACKED` bytes, never to disk, and refused before it is read if it has more than `MOST_CELLS` cells.
"""

import codecs
import gzip
import hashlib
import io
import re
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import HOUR_MS, MINUTE_MS
from pitboss.data.staging import UNREADABLE, first_line, silent_stderr
from pitboss.data.time_columns import to_instants

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
_GZIPPED = ("csv", "jsonl", "json")
READABLE = "parquet, CSV, CSV.gz, feather, JSON lines, zip with one CSV"
MOST_UNPACKED = 256 * 2**20
"""Bytes that a .gz file or a zip may unpack to: a month of one-minute klines has about five million."""
MOST_CELLS = 50_000_000
"""Cells of a compressed file. Each takes at least 16 bytes in memory, however little of the file it takes."""
MOST_JSON_VALUES = 10_000_000
"""The same for compressed JSON, whose values take more."""
MOST_COLUMNS = 10_000
MOST_ZIP_ENTRIES = 100
SMALLER = "import it in smaller files, or unpack it first"
_PIECE = 2**20
_BLANK_LINES = (b"\n\n", b"\n\r\n")
_KLINES = (
    "open_time", "open", "high", "low", "close", "volume", "close_time", "quote_volume", "count",
    "taker_buy_volume", "taker_buy_quote_volume", "ignore",
)  # fmt: skip
_FUNDING = ("calc_time", "funding_interval_hours", "last_funding_rate")
_TIME_FIRST = re.compile(rb"\s*\"?\d{9,}")


class BadZip(Exception):
    """Why a zip file cannot be used."""


class TooLarge(Exception):
    """A compressed file unpacks to more than is read."""


def format_of(path: Path) -> str | None:
    """The format that a file's name stands for, or None."""
    name = path.name.lower()
    file_format = _FORMATS.get(Path(name.removesuffix(".gz")).suffix)
    return file_format if not name.endswith(".gz") or file_format in _GZIPPED else None


def stem_of(path: Path) -> str:
    """The name without format and compression: `BTC` of `BTC.csv.gz`."""
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return Path(name).stem


def read(path: Path) -> pl.DataFrame | Any:
    """A table, or the plain value of a `.json` file that is not a list of rows."""
    return read_hashed(path)[0]


def read_hashed(path: Path) -> tuple[pl.DataFrame | Any, str]:
    """As `read`, with the SHA-256 of the bytes that were read."""
    file_format = format_of(path)
    if file_format is None:
        raise UserError(f"{path}: unknown kind of file", f"readable are {READABLE}")
    try:
        content = path.read_bytes()
        table = _read(path, file_format, content)
    except UserError:
        raise
    except TooLarge as error:
        raise UserError(f"{path}: {error}", SMALLER) from None
    except (*UNREADABLE, EOFError, TypeError, zlib.error) as error:
        raise UserError(f"{path} cannot be read as {file_format} ({first_line(error)})") from None
    if isinstance(table, pl.DataFrame) and table.is_empty():
        raise _empty(path)
    return table, hashlib.sha256(content).hexdigest()


def _read(path: Path, file_format: str, content: bytes) -> pl.DataFrame | Any:
    if file_format == "feather":
        with silent_stderr():
            _check_cells(pl.scan_ipc(content))
            return pl.read_ipc(content)
    if file_format == "parquet":
        with silent_stderr():
            _check_cells(pl.scan_parquet(content, hive_partitioning=False, glob=False))
            return pl.read_parquet(content, hive_partitioning=False, glob=False)
    if file_format == "zip":
        return _read_zip(path, content)
    if path.name.lower().endswith(".gz"):
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            content = unpack(file.read)
        if file_format == "csv":
            return _read_csv(path, content, most_cells=MOST_CELLS)
        _require(sum(map(content.count, (b"[", b"{", b","))), MOST_JSON_VALUES, "values")
    if file_format == "csv":
        return _read_csv(path, content)
    content = content.removeprefix(codecs.BOM_UTF8)
    if not content.strip():
        raise _empty(path)
    if file_format == "jsonl":
        lines = enumerate(content.splitlines(), 1)
        return _table(path, [_line(path, number, line) for number, line in lines if line.strip()])
    value = orjson.loads(content)
    is_rows = isinstance(value, list) and all(isinstance(row, dict) and "universe" not in row for row in value)
    return _table(path, value) if is_rows else value


def unpack(read_bytes: Callable[[int], bytes]) -> bytes:
    """Everything that can be read of a compressed file, at most `MOST_UNPACKED` bytes; `TooLarge` before more is unpacked."""
    pieces, size = list[bytes](), 0
    while piece := read_bytes(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > MOST_UNPACKED:
            raise TooLarge(f"it unpacks to more than {MOST_UNPACKED >> 20} MB")
    return b"".join(pieces)


def _read_csv(path: Path, content: bytes, has_header: bool = True, most_cells: int = sys.maxsize) -> pl.DataFrame:
    if not content.strip():
        raise _empty(path)
    if content.endswith(_BLANK_LINES):
        content = content.rstrip(b"\r\n")
    columns = content.count(b",", 0, content.find(b"\n") % (len(content) + 1)) + 1
    _require(columns, MOST_COLUMNS, "columns")
    _require(columns * content.count(b"\n"), most_cells, "values")  # a line may be shorter than the heading
    return pl.read_csv(content, infer_schema=False, has_header=has_header)


def _check_cells(frame: pl.LazyFrame) -> None:
    """Refuse a table that is too large by what its file says of itself, without reading its values."""
    columns = len(frame.collect_schema())
    _require(columns, MOST_COLUMNS, "columns")
    _require(columns * frame.select(pl.len()).collect().item(), MOST_CELLS, "values")


def _require(count: int, most: int, unit: str) -> None:
    if count > most:
        raise TooLarge(f"it has {count:,} {unit}; at most {most:,} are read")


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


def _empty(path: Path) -> UserError:
    return UserError(f"{path}: the file is empty", "a file needs at least one row")


def _read_zip(path: Path, content: bytes) -> pl.DataFrame:
    if len(content) > MOST_UNPACKED:
        raise TooLarge(f"larger than {MOST_UNPACKED >> 20} MB")
    _verify_checksum(path, content)
    try:
        text = zipped_csv(content)
    except BadZip as error:
        raise UserError(f"{path}: {error}", "download it again, or unpack it and import its files") from None
    if _TIME_FIRST.match(text):  # no heading
        frame = _read_csv(path, text, has_header=False, most_cells=MOST_CELLS)
        names = next((names for names in (_KLINES, _FUNDING) if len(names) == frame.width), None)
        if names is None:
            raise UserError(f"{path}: {frame.width} columns without names", "klines have 12, funding has 3")
        frame.columns = list(names)
    else:
        frame = _read_csv(path, text, most_cells=MOST_CELLS)
    if "calc_time" in frame.columns:
        # stamped some milliseconds after the hour; downloads round it down in the same way
        times = to_instants(frame["calc_time"])
        hours = times // HOUR_MS * HOUR_MS
        frame = frame.with_columns(pl.when(times - hours < MINUTE_MS).then(hours).otherwise(times).alias("calc_time"))
    return frame


def _verify_checksum(path: Path, content: bytes) -> None:
    checksum_file = path.with_name(f"{path.name}.CHECKSUM")
    if not checksum_file.is_file():
        return
    try:
        with checksum_file.open("rb") as file:
            fields = file.read(256).decode("ascii", "replace").split()
    except OSError as error:
        raise UserError(f"{checksum_file} cannot be read ({error.strerror or error})") from None
    if not fields or fields[0].lower() != hashlib.sha256(content).hexdigest():
        raise UserError(f"{path} does not match its checksum in {checksum_file.name}", "download it again")


def zipped_csv(content: bytes) -> bytes:
    """The bytes of the only CSV in a zip file, unpacked up to a bound."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            tables = [entry for entry in entries if entry.filename.lower().endswith(".csv") and not entry.is_dir()]
            if len(tables) != 1 or len(entries) > MOST_ZIP_ENTRIES:
                raise BadZip("not a zip with one CSV inside")
            with archive.open(tables[0]) as file:
                text = unpack(file.read)
    except TooLarge:
        raise BadZip(f"the CSV inside is larger than {MOST_UNPACKED >> 20} MB") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        raise BadZip(f"not a whole zip file ({str(error)[:80]})") from None
    return text
