"""Rows of the forum's tables as nouns, and back. Which rows an event needs is in `forum_store.py`."""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Literal, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, delete, insert, select, update

from pitboss.venues.community.forum import (
    Ban,
    Community,
    ForumAgent,
    ForumComment,
    ForumContract,
    ForumRow,
    ForumThread,
)
from pitboss.venues.community.sns import tables

NounRow = TypeVar("NounRow", Community, ForumContract, ForumAgent, ForumThread, ForumComment, Ban)
Lock = Literal["none", "share", "update"]

TABLES: Mapping[type, Table] = {
    Community: tables.communities,
    ForumContract: tables.contracts,
    ForumAgent: tables.agents,
    ForumThread: tables.threads,
    ForumComment: tables.comments,
    Ban: tables.bans,
}
JSON_COLUMNS = ("abi", "source")


def fetch(
    connection: Connection,
    kind: type[NounRow],
    *where: ColumnElement[bool],
    lock: Lock = "none",
    newest: int | None = None,
) -> list[NounRow]:
    """The rows of a kind that meet conditions; with `newest` at most that many, the newest first.

    A lock is held until the transaction ends; SQLite, which has one writer at a time, needs none.
    """
    table = TABLES[kind]
    query = select(*(table.c[field.name] for field in fields(kind))).where(*where)
    if newest is not None:
        query = query.order_by(table.c.created_at.desc(), table.c.id.desc()).limit(newest)
    if lock != "none":
        query = query.order_by(table.c.id).with_for_update(read=lock == "share")
    rows = connection.execute(query)
    if kind is not ForumContract:
        return [kind(*row) for row in rows]
    return [_contract(kind, row) for row in rows.mappings()]


def fetch_one(connection: Connection, kind: type[NounRow], row_id: str | None, lock: Lock = "none") -> NounRow | None:
    """A row by id, if there is one."""
    if row_id is None:
        return None
    rows = fetch(connection, kind, TABLES[kind].c.id == row_id, lock=lock)
    return rows[0] if rows else None


def _contract(kind: Callable[..., NounRow], row: Mapping[Any, Any]) -> NounRow:
    values = {name: json.loads(value) if name in JSON_COLUMNS else value for name, value in row.items()}
    return kind(**values)


def write(connection: Connection, row: ForumRow, is_new: bool, community_id: str | None = None) -> None:
    """Insert or replace a row. A comment also stores the community of its thread."""
    table = TABLES[type(row)]
    values = {field.name: getattr(row, field.name) for field in fields(row)}
    values |= {name: json.dumps(values[name]) for name in JSON_COLUMNS if name in values}
    if isinstance(row, ForumComment) and is_new:
        values["community_id"] = community_id
    if is_new:
        connection.execute(insert(table), values)
    else:
        connection.execute(update(table).where(table.c.id == row.id), values)


def remove(connection: Connection, row: ForumRow) -> None:
    """Delete a row."""
    table = TABLES[type(row)]
    connection.execute(delete(table).where(table.c.id == row.id))
