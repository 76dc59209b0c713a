"""Zip files with one CSV inside, as Binance publishes klines, funding and open interest: bounded, and checked.

A `.CHECKSUM` file beside a zip is held against it. What is inside is unpacked in memory up to a bound and never written
anywhere, so neither a bomb nor a strange name inside can do harm. Older files have no heading; they get the usual one.
"""

import hashlib
import io
import re
import zipfile
import zlib
from pathlib import Path

import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import HOUR_MS, MINUTE_MS
from pitboss.data.time_columns import to_instants

MOST_BYTES = 256 * 2**20
"""Of the zip and of the CSV inside: a month of one-minute klines has about five million."""
MOST_ENTRIES = 100
_KLINES = (
    "open_time", "open", "high", "low", "close", "volume", "close_time", "quote_volume", "count",
    "taker_buy_volume", "taker_buy_quote_volume", "ignore",
)  # fmt: skip
_FUNDING = ("calc_time", "funding_interval_hours", "last_funding_rate")
_NUMBER = re.compile(rb"\s*\"?\d{9,}")


def read_zipped(path: Path, content: bytes) -> pl.DataFrame:
    """The table inside a zip file whose bytes these are."""
    _check(path, content)
    text = _inside(path, content)
    if not text.strip():
        raise UserError(f"{path}: the file is empty", "a file needs at least one row")
    if _NUMBER.match(text):  # no heading: a time comes first
        frame = pl.read_csv(text, infer_schema=False, has_header=False)
        names = next((names for names in (_KLINES, _FUNDING) if len(names) == frame.width), None)
        if names is None:
            raise UserError(f"{path}: {frame.width} columns without names", "klines have 12, funding has 3")
        frame.columns = list(names)
    else:
        frame = pl.read_csv(text, infer_schema=False)
    if "calc_time" in frame.columns:
        # stamped some milliseconds after the hour it belongs to, as downloads have it too
        times = to_instants(frame["calc_time"])
        hours = times // HOUR_MS * HOUR_MS
        frame = frame.with_columns(pl.when(times - hours < MINUTE_MS).then(hours).otherwise(times).alias("calc_time"))
    return frame


def _check(path: Path, content: bytes) -> None:
    if len(content) > MOST_BYTES:
        raise UserError(f"{path}: larger than {MOST_BYTES >> 20} MB", "unpack it and import the CSV inside")
    beside = path.with_name(f"{path.name}.CHECKSUM")
    if not beside.is_file():
        return
    try:
        with beside.open("rb") as file:
            wanted = file.read(256).decode("ascii", "replace").split()
    except OSError as error:
        raise UserError(f"{beside} cannot be read ({error.strerror or error})") from None
    if not wanted or wanted[0].lower() != hashlib.sha256(content).hexdigest():
        raise UserError(f"{path} does not match its checksum in {beside.name}", "download it again")


def _inside(path: Path, content: bytes) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            every = archive.infolist()
            tables = [one for one in every if one.filename.lower().endswith(".csv") and not one.is_dir()]
            if len(tables) != 1 or len(every) > MOST_ENTRIES:
                raise UserError(f"{path}: not a zip with one CSV inside", "unpack it and import its files")
            if tables[0].file_size > MOST_BYTES:
                raise _too_much(path)
            with archive.open(tables[0]) as file:
                text = file.read(MOST_BYTES + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        raise UserError(f"{path} is not a whole zip file ({str(error)[:80]})", "download it again") from None
    if len(text) > MOST_BYTES:  # more than it says
        raise _too_much(path)
    return text


def _too_much(path: Path) -> UserError:
    return UserError(f"{path}: the CSV inside is larger than {MOST_BYTES >> 20} MB", "import it in smaller files")
