"""Reads recorded predict data from files into columns for a replay: price updates, surfaces, rounds.

Prices are in the protocol's billionths. A bar gives the price of its open at that instant; an on-chain update counts
from the block that contains it. Rows are sorted; two rows with the same time but different values are rejected with
their row number.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.market import Floats, Ints
from pitboss.data.excerpt import display
from pitboss.data.file_reader import READABLE, read
from pitboss.data.table import TIMES, RowCheck, Table, numbers_of, read_times
from pitboss.venues.predict.rounds import Agreement, compare
from pitboss.venues.predict.svi import FLOAT, Svi

LEAST_PRICE, MOST_PRICE = 1 / FLOAT, 1e9
PUSHED = ("onchain_timestamp",)
_PRICE_TIMES = ("block_timestamp_s", "updated_at_s", "start", *TIMES)
_SPOTS = ("spot", "price_usd", "price", "open", "o", "value")
_ASSETS = ("asset", "symbol", "coin", "underlying", "underlying_asset")
_SURFACE = ("a", "b", "rho", "m", "sigma")
_ONE_ASSET = "keep the rows of one of"
"""What to do about surfaces of several assets: no option selects one."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Prices:
    """Price updates, oldest first, unique times. The forward equals the spot unless the file has one."""

    at: Ints
    spot: Ints
    forward: Ints

    def __len__(self) -> int:
        return len(self.at)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Surfaces:
    """Surface updates, oldest first. `market_id` is the oracle of each."""

    at: Ints
    market_id: tuple[str, ...]
    columns: tuple[Floats, ...]

    def __len__(self) -> int:
        return len(self.at)

    def svi(self, row: int) -> Svi:
        """Return the surface of one row."""
        return Svi(*(float(column[row]) for column in self.columns))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rounds:
    """Up/down rounds by start and length. `up_price` is 1 or 0 if the outcome is recorded."""

    start_at: Ints
    duration_s: Ints
    up_price: Floats

    def __len__(self) -> int:
        return len(self.start_at)


def read_prices(path: Path, asset: str | None = None) -> Prices:
    """Read the price updates of a file: bars, updates of an oracle, or rows of the protocol's indexer."""
    table = _table(path, asset)
    pushed = table.find(*PUSHED) is not None
    times, check = read_times(table, PUSHED if pushed else _PRICE_TIMES)
    spot = _prices(table, check, "the price", _SPOTS, pushed)
    forward = _prices(table, check, "forward", ("forward",), pushed) if table.find("forward") else spot
    check.raise_first()
    frame = _ordered(table, {"at": times, "spot": spot, "forward": forward}, ("at",))
    return Prices(*(frame[name].to_numpy() for name in ("at", "spot", "forward")))


def read_surfaces(path: Path) -> Surfaces:
    """Read the surfaces of a file with rows of the protocol's indexer: magnitudes in billionths with sign flags."""
    table = _table(path, None, _ONE_ASSET)
    times, check = read_times(table, (*PUSHED, *TIMES))
    columns = {name: _numbers(table, check, name, (name,)) for name in _SURFACE}
    for name in ("a", "b", "sigma"):
        check.refuse(columns[name] < 0, _row_message(columns[name], f"{name} is {{}}, below zero"))
    for name in ("rho", "m"):
        columns[name] = columns[name] * np.where(_flags(table, check, f"{name}_negative"), -1.0, 1.0)
    rho = columns["rho"]
    check.refuse(np.abs(rho) > FLOAT, _row_message(rho / FLOAT, "rho is {}, outside −1 and 1"))
    ids = table.frame[table.need("the oracle's id", "oracle_id", "market_id")].cast(pl.String)
    check.refuse(ids.is_null().to_numpy(), lambda row: "the oracle's id is missing")
    check.raise_first()
    scaled = {name: pl.Series(column / FLOAT) for name, column in columns.items()}
    frame = _ordered(table, {"at": times, "id": ids, **scaled}, ("at", "id"))
    return Surfaces(
        frame["at"].to_numpy(), tuple(frame["id"].to_list()), tuple(frame[name].to_numpy() for name in _SURFACE)
    )


def write_surfaces_until(path: Path, at: int, copy: Path) -> None:
    """Write a copy of a file of surfaces without the rows after an instant."""
    table = _table(path, None, _ONE_ASSET)
    times, check = read_times(table, (*PUSHED, *TIMES))
    check.raise_first()
    table.frame.filter(times <= at).write_parquet(copy)


def read_rounds(path: Path, asset: str | None = None) -> Rounds:
    """Read the rounds of a file: start, length in seconds, recorded price of UP (empty or between 0 and 1: no outcome)."""
    table = _table(path, asset)
    times, check = read_times(table, ("start", "start_at", "start_time", *TIMES))
    lengths = _numbers(table, check, "duration_s", ("duration_s",))
    check.refuse((lengths <= 0) | (lengths % 1 != 0) | (lengths > 1e9), _row_message(lengths, "a round of {} seconds"))
    column = table.frame[table.need("the price of UP", "up_price")]
    if column.dtype == pl.String:
        column = column.str.strip_chars().replace("", None)
    raw = numbers_of(column)
    unreadable = (raw.is_null() & column.is_not_null()).to_numpy()
    check.refuse(unreadable, lambda row: f"the price of UP is {display(column[row])}, not a number")
    up_price = raw.fill_null(float("nan")).to_numpy()
    check.refuse((up_price < 0) | (up_price > 1), _row_message(up_price, "the price of UP is {}, not between 0 and 1"))
    check.raise_first()
    columns = {"at": times, "s": pl.Series(lengths.astype(np.int64)), "up": pl.Series(up_price)}
    frame = _ordered(table, columns, ("at", "s"))
    return Rounds(*(frame[name].to_numpy() for name in ("at", "s", "up")))


def agreement(rounds: Rounds, prices: Prices, within_ms: int = 60_000) -> Agreement:
    """Compare the settlement by these prices with the recorded one."""
    spot = prices.spot / FLOAT
    return compare(rounds.start_at, rounds.duration_s, rounds.up_price, prices.at, spot, within_ms)


def _table(path: Path, asset: str | None, hint: str = "--asset, one of") -> Table:
    frame = read(path)
    if not isinstance(frame, pl.DataFrame):
        raise UserError(f"{path}: not a table of rows", f"readable are {READABLE}")
    table = Table(str(path), frame)
    column = table.find(*_ASSETS)
    if column is None or frame[column].dtype.is_nested():
        return table
    assets = frame[column].cast(pl.String)
    names = sorted(set(assets.drop_nulls().to_list()))
    if asset is None and len(names) <= 1:
        return table
    if asset is None or asset not in names:
        message = f"{path}: no rows of {asset!r}" if asset else f"{path}: rows of several assets"
        raise UserError(message, f"{hint} {', '.join(names[:12])}")
    selected = (assets == asset).fill_null(False).to_numpy()
    return Table(table.origin, frame.filter(selected), positions=np.flatnonzero(selected))


def _numbers(table: Table, check: RowCheck, label: str, names: Sequence[str]) -> Floats:
    column = table.frame[table.need(label, *names)]
    numbers = numbers_of(column).fill_null(float("nan")).to_numpy()
    check.refuse(
        ~np.isfinite(numbers),
        lambda row: (
            f"{label} is missing" if column[row] is None else f"{label} is {display(column[row])}, not a number"
        ),
    )
    return numbers


def _prices(table: Table, check: RowCheck, label: str, names: Sequence[str], pushed: bool) -> pl.Series:
    """Return prices in billionths: indexer rows already are, all others are in USD."""
    numbers = _numbers(table, check, label, names)
    usd = numbers / FLOAT if pushed else numbers
    check.refuse(
        ~((usd >= LEAST_PRICE) & (usd < MOST_PRICE)) & np.isfinite(usd), _row_message(usd, "{} is not a price")
    )
    if pushed and table.frame[table.need(label, *names)].dtype.is_integer():
        return table.frame[table.need(label, *names)].cast(pl.Int64, strict=False)
    bounded = np.where(np.isfinite(usd) & (np.abs(usd) < MOST_PRICE), usd, 0.0)
    return pl.Series(np.rint(bounded * FLOAT).astype(np.int64))


def _flags(table: Table, check: RowCheck, name: str) -> np.ndarray:
    column = table.frame[table.need(name, name)]
    values = [str(item).strip().lower() for item in column.to_list()]
    check.refuse(
        np.array([value not in ("true", "false", "1", "0") for value in values], dtype=bool),
        lambda row: f"{name} is {display(column[row])}, neither true nor false",
    )
    return np.array([value in ("true", "1") for value in values], dtype=bool)


def _ordered(table: Table, columns: dict[str, pl.Series], key: tuple[str, ...]) -> pl.DataFrame:
    """Sort by the key and drop equal rows. Two different rows with the same key are rejected."""
    frame = pl.DataFrame([column.alias(name) for name, column in columns.items()])
    frame = frame.with_row_index("_row").unique(subset=list(columns), keep="first").sort(*key, "_row")
    twice = frame.select(pl.struct(*key).is_duplicated()).to_series()
    if twice.any():
        row = int(frame.filter(twice)["_row"][1])
        number = table.row_number(row)
        raise UserError(f"{table.origin}: row {number}: another row has the same time and different values")
    return frame


def _row_message(values: Floats, form: str) -> Callable[[int], str]:
    return lambda row: form.format(values[row])
