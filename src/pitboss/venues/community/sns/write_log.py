"""Answers to writes with an idempotency key, and the removal of what has expired."""

import hashlib
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, select, update
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from pitboss.core.instant import DAY_MS, Instant
from pitboss.venues.community.sns.rate_counter import WINDOW_MS
from pitboss.venues.community.sns.tables import (
    agents,
    answered_writes,
    bans,
    challenges,
    comments,
    communities,
    contracts,
    credentials,
    nonces,
    rate_windows,
    sessions,
    threads,
)

ANSWERS_KEPT_MS = DAY_MS
PENDING = 0


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The answer that a write got before."""

    status: int
    answer: str
    is_same_request: bool


def request_hash(method: str, path: str, body_hash: str) -> str:
    """What identifies a write: method, path and body."""
    return hashlib.sha256(f"{method} {path} {body_hash}".encode()).hexdigest()


def claim_key(connection: Connection, agent_id: str, key: str, request: str, now: Instant) -> StoredAnswer | None:
    """Claim an idempotency key for a request; the earlier answer if it is taken.

    A concurrent request with the same key waits here until this transaction ends.
    """
    make = postgres_insert if connection.dialect.name == "postgresql" else sqlite_insert
    values = {
        "agent_id": agent_id,
        "idempotency_key": key,
        "request_hash": request,
        "status": PENDING,
        "answer": "",
        "created_at": now,
    }
    claim = make(answered_writes).values(values).on_conflict_do_nothing().returning(answered_writes.c.agent_id)
    if connection.execute(claim).one_or_none() is not None:
        return None
    query = select(answered_writes.c.status, answered_writes.c.answer, answered_writes.c.request_hash)
    row = connection.execute(query.where(_is(agent_id, key))).one()
    return StoredAnswer(row.status, row.answer, row.request_hash == request)


def store_answer(connection: Connection, agent_id: str, key: str, status: int, answer: str) -> None:
    """Store the answer of a claimed key; a refused write gives the key back, so that it can be tried again."""
    if 200 <= status < 300:
        connection.execute(update(answered_writes).where(_is(agent_id, key)), {"status": status, "answer": answer})
    else:
        connection.execute(delete(answered_writes).where(_is(agent_id, key)))


def _is(agent_id: str, key: str) -> ColumnElement[bool]:
    return (answered_writes.c.agent_id == agent_id) & (answered_writes.c.idempotency_key == key)


def prune(connection: Connection, now: Instant) -> int:
    """Delete what has expired: nonces, challenges, sessions, answers, rate windows, communities closed long ago."""
    removed = sum(
        connection.execute(delete(table).where(condition)).rowcount
        for table, condition in (
            (nonces, nonces.c.expires_at < now),
            (challenges, challenges.c.expires_at < now),
            (sessions, sessions.c.expires_at < now),
            (answered_writes, answered_writes.c.created_at < now - ANSWERS_KEPT_MS),
            (rate_windows, rate_windows.c.started_at < now - WINDOW_MS),
        )
    )
    over = communities.c.delete_at < now
    for community_id in connection.execute(select(communities.c.id).where(over)).scalars().all():
        members = select(agents.c.id).where(agents.c.community_id == community_id)
        connection.execute(delete(credentials).where(credentials.c.agent_id.in_(members)))
        for table in (comments, threads, contracts, bans, agents):
            removed += connection.execute(delete(table).where(table.c.community_id == community_id)).rowcount
        removed += connection.execute(delete(communities).where(communities.c.id == community_id)).rowcount
    return removed
