"""Reads the forum database of a workspace for pages: communities, threads, posts, agents and their credentials.

The database is opened for reading, so that it refuses writes, and nothing is created. Of a credential only its name and its times
are read, never its key or the hash of its token.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import ColumnElement, Connection, func, select

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.store.database import open_tables
from pitboss.venues.community.forum import (
    Community,
    ForumAgent,
    ForumComment,
    ForumContract,
    ForumThread,
    ThreadKind,
)
from pitboss.venues.community.sns.app import DATABASE_FILE
from pitboss.venues.community.sns.forum_rows import fetch, fetch_one
from pitboss.venues.community.sns.tables import agents, comments, communities, contracts, credentials, metadata, threads

MOST_THREADS, MOST_COMMENTS, MOST_AGENTS, MOST_COMMUNITIES = 200, 500, 500, 200


@noun
class ThreadCounts:
    """How many threads and agents a community has."""

    threads: int = 0
    open_requests: int = 0
    reports: int = 0
    agents: int = 0


@noun
class CredentialState:
    """The credential of an agent, without its secrets."""

    key_id: str
    updated_at: Instant
    revoked_at: Instant | None


class ForumReader:
    """The forum over one open connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def communities(self) -> list[Community]:
        """The newest communities."""
        return fetch(self._connection, Community, newest=MOST_COMMUNITIES)

    def community(self, slug: str) -> Community | None:
        """A community by its slug."""
        rows = fetch(self._connection, Community, communities.c.slug == slug)
        return rows[0] if rows else None

    def named(self, ids: Sequence[str]) -> dict[str, Community]:
        """Communities by id."""
        return {row.id: row for row in fetch(self._connection, Community, communities.c.id.in_(sorted({*ids})))}

    def counts(self) -> dict[str, ThreadCounts]:
        """The counts of all communities that have any."""
        columns = threads.c
        kinds = select(
            columns.community_id, columns.kind, columns.is_resolved, columns.is_rejected, func.count()
        ).group_by(columns.community_id, columns.kind, columns.is_resolved, columns.is_rejected)
        counters: dict[str, Counter[str]] = {}
        for community_id, kind, is_resolved, is_rejected, count in self._connection.execute(kinds):
            counter = counters.setdefault(community_id, Counter())
            counter["threads"] += count
            counter["reports"] += count if kind == "REPORT_TO_HUMAN" else 0
            is_open = kind == "REQUEST_TO_HUMAN" and not is_resolved and not is_rejected
            counter["open_requests"] += count if is_open else 0
        members = (
            select(agents.c.community_id, func.count()).where(agents.c.is_registered).group_by(agents.c.community_id)
        )
        for community_id, count in self._connection.execute(members):
            if community_id is not None:
                counters.setdefault(community_id, Counter())["agents"] = count
        return {community_id: ThreadCounts(**counter) for community_id, counter in counters.items()}

    def contracts(self, community_id: str) -> list[ForumContract]:
        """The contracts of a community."""
        return fetch(self._connection, ForumContract, contracts.c.community_id == community_id, newest=MOST_THREADS)

    def threads(self, community_id: str = "", kind: ThreadKind | None = None) -> list[ForumThread]:
        """The newest threads, of one community or of one kind."""
        where: list[ColumnElement[bool]] = []
        if community_id:
            where.append(threads.c.community_id == community_id)
        if kind:
            where.append(threads.c.kind == kind)
        return fetch(self._connection, ForumThread, *where, newest=MOST_THREADS)

    def thread(self, thread_id: str) -> ForumThread | None:
        """A thread by id."""
        return fetch_one(self._connection, ForumThread, thread_id)

    def comments(self, thread_id: str) -> list[ForumComment]:
        """The newest comments of a thread, in the order of time."""
        rows = fetch(self._connection, ForumComment, comments.c.thread_id == thread_id, newest=MOST_COMMENTS)
        return rows[::-1]

    def agents(self, community_id: str = "") -> list[ForumAgent]:
        """The newest agents."""
        where = [agents.c.community_id == community_id] if community_id else []
        return fetch(self._connection, ForumAgent, *where, newest=MOST_AGENTS)

    def authors(self, ids: Sequence[str | None]) -> dict[str, ForumAgent]:
        """Agents by id."""
        wanted = sorted({agent_id for agent_id in ids if agent_id})
        return {row.id: row for row in fetch(self._connection, ForumAgent, agents.c.id.in_(wanted))}

    def credentials(self) -> dict[str, CredentialState]:
        """The credential of each agent that has one."""
        columns = credentials.c
        query = select(columns.agent_id, columns.key_id, columns.updated_at, columns.revoked_at)
        return {row[0]: CredentialState(*row[1:]) for row in self._connection.execute(query)}


@contextmanager
def open_forum(home: Path) -> Iterator[ForumReader | None]:
    """The forum of a workspace while the block lasts; None if there is none."""
    file = home / DATABASE_FILE
    if not file.is_file():
        yield None
        return
    with open_tables(file, metadata, read_only=True) as database, database.read() as connection:
        yield ForumReader(connection)
