"""Sealed rows: reading, inserting and changing a row together with its `row_sha256`.

A row is read as the driver returns it, without conversions, so that the hash covers the stored values. A row is never changed
without a check: an update must not give a new seal to a row that was tampered with.
"""

import hashlib
import struct
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from sqlalchemy import Connection, Insert, Select, Table, Update, bindparam, insert, select, type_coerce, update
from sqlalchemy.engine import Dialect
from sqlalchemy.types import NULLTYPE

from pitboss.core.errors import InvariantError, ReplayMismatch
from pitboss.store.schema import SEAL

_sha256 = hashlib.sha256
_DOUBLE = struct.Struct(">d").pack


@cache
def sealed_columns(table: Table) -> tuple[str, ...]:
    """The columns that the seal covers, in this order: all but the seal itself and an id assigned by the database."""
    own = table.autoincrement_column
    return tuple(column.name for column in table.columns if column.name != SEAL and column is not own)


def encode(value: object) -> bytes:
    """One value with a type mark and its length; for bytes their SHA-256, so that a long document is hashed only once.

    Lengths make the encoding unambiguous; the mark distinguishes NULL from empty text and `1` from `"1"`.
    """
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
        return b"T%d:" % len(data) + data
    if isinstance(value, bytes):
        return b"B%d:" % len(value) + _sha256(value).digest()
    if value is None:
        return b"N"
    if isinstance(value, int):  # a boolean is 0 or 1 in one database and false or true in the other
        return b"I%d;" % value
    if isinstance(value, float):
        return b"F" + _DOUBLE(value)
    raise TypeError(f"values of type {type(value).__name__} are not stored")


def seal(table_name: str, encoded: Iterable[bytes]) -> str:
    """SHA-256 over the table's name and the encoded values in column order."""
    return _sha256(table_name.encode() + b"\0" + b"".join(encoded)).hexdigest()


def seal_of(table: Table, row: Mapping[str, Any]) -> str:
    """The seal that this row should carry."""
    return seal(table.name, [encode(row[name]) for name in sealed_columns(table)])


def intact(table: Table, row: Mapping[str, Any]) -> bool:
    """Whether the row is unchanged since it was written."""
    return seal_of(table, row) == row[SEAL]


def require_intact(table: Table, row: Mapping[str, Any]) -> None:
    """Raise `ReplayMismatch` if the row was changed after it was written."""
    if not intact(table, row):
        raise ReplayMismatch(f"a row of {table.name} was changed after it was written ({_name(table, row)})")


@cache
def raw(table: Table) -> Select[*tuple[Any, ...]]:
    """SELECT of all columns, with the values as the driver returns them."""
    columns: list[Any] = [type_coerce(column, NULLTYPE).label(column.name) for column in table.columns]
    return select(*columns)


def fetch_all(connection: Connection, query: Select[*tuple[Any, ...]]) -> list[dict[str, Any]]:
    """The rows of a `raw` query."""
    result = connection.execute(query)
    names = list(map(str, result.keys()))
    return [dict(zip(names, row, strict=True)) for row in result]


def fetch(
    connection: Connection, table: Table, key: Mapping[str, object], *, lock: bool = False
) -> dict[str, Any] | None:
    """The row with this key, or None. `lock` excludes other writers (SQLite locks the whole file anyway)."""
    row = connection.execute(_by_key(table, tuple(key), lock), dict(key)).mappings().first()
    return None if row is None else {str(name): value for name, value in row.items()}


def add(connection: Connection, table: Table, row: Mapping[str, object]) -> None:
    """Insert a row with its seal."""
    connection.execute(insert(table), {**row, SEAL: seal_of(table, row)})


def insert_unless_there(dialect: Dialect, table: Table) -> Insert:
    """An INSERT that does nothing if the key exists. Imports only the dialect in use."""
    if dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as postgres_insert

        return postgres_insert(table).on_conflict_do_nothing()
    from sqlalchemy.dialects.sqlite import insert as sqlite_insert

    return sqlite_insert(table).on_conflict_do_nothing()


def change(connection: Connection, table: Table, row: Mapping[str, Any], changes: Mapping[str, object]) -> None:
    """Change a row that was read in this transaction, and renew its seal."""
    require_intact(table, row)
    after = {**row, **changes}
    after[SEAL] = seal_of(table, after)
    values = {name: after[name] for name in [*changes, SEAL]}
    finds = {f"old_{name}": row[name] for name in [*_key(table), SEAL]}
    if connection.execute(_swap(table), values | finds).rowcount != 1:
        raise InvariantError(f"a row of {table.name} changed concurrently ({_name(table, row)})")


# Statements are built once: building one takes longer than executing it.


@cache
def _by_key(table: Table, key: tuple[str, ...], lock: bool) -> Select[*tuple[Any, ...]]:
    query = raw(table).where(*[table.c[name] == bindparam(name) for name in key])
    return query.with_for_update() if lock else query


@cache
def _swap(table: Table) -> Update:
    """An UPDATE that also matches the old seal, which makes it a compare-and-swap on the whole row."""
    return update(table).where(*[table.c[name] == bindparam(f"old_{name}") for name in [*_key(table), SEAL]])


@cache
def _key(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.primary_key.columns)


def _name(table: Table, row: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {row[key]}" for key in _key(table))
