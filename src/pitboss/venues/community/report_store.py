"""The reports that became GitHub issues, or are to become some, in a small database of their own: `community/reports.sqlite`.

It is not the database of runs: that one belongs to the platform, which knows no venue, and its schema changes by migrations. A
file of its own is opened by the same code as the tables of the forum server, and works with a workspace on Postgres too.

    intent    nothing was sent to GitHub, or GitHub certainly has not carried it out
    sending   a request may have been carried out; GitHub must be searched before another one
    created   the issue exists and its number is stored; the post is not marked as issued yet
    issued    all is done
    failed    GitHub refused for good; the note says why
"""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import BigInteger, Column, Integer, MetaData, Row, String, Table, Text, select, update
from sqlalchemy.exc import IntegrityError

from pitboss.core import codec
from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.store.database import open_tables
from pitboss.venues.community.issue_text import SharedPost

ReportState = Literal["intent", "sending", "created", "issued", "failed"]
metadata = MetaData()
reports = Table(
    "community_reports",
    metadata,
    Column("post_id", String(200), primary_key=True),
    Column("state", String(8), nullable=False, index=True),
    Column("post", Text, nullable=False),
    # Unpredictable, so that nobody else can write an issue that passes for ours.
    Column("marker", String(64), nullable=False),
    Column("issue_number", Integer),
    Column("sent_at", BigInteger, nullable=False),
    Column("retry_at", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("note", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
)


@noun
class StoredReport:
    """One report and how far it is. `sent_at` is when the last request was sent, `retry_at` when the next may be."""

    post_id: str
    state: ReportState
    post: SharedPost
    marker: str
    issue_number: int | None
    sent_at: Instant
    retry_at: Instant
    attempts: int
    note: str


class ReportStore:
    """The reports of a workspace. Close it after use."""

    def __init__(self, file: Path, now: Callable[[], Instant]) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._database = open_tables(file, metadata)
        self._now = now

    def add(self, post: SharedPost, marker: str) -> StoredReport:
        """Store the intent to share a post; of one that is stored already, how far it is."""
        now = self._now()
        row = {
            "post_id": post.post_id,
            "state": "intent",
            "post": codec.dumps(asdict(post)).decode(),
            "marker": marker,
            "sent_at": 0,
            "retry_at": 0,
            "attempts": 0,
            "note": "",
            "created_at": now,
            "changed_at": now,
        }
        try:
            with self._database.write() as connection:
                connection.execute(reports.insert().values(row))
        except IntegrityError:
            pass
        return self.get(post.post_id)

    def get(self, post_id: str) -> StoredReport:
        """One report."""
        with self._database.read() as connection:
            return _report(connection.execute(select(reports).where(reports.c.post_id == post_id)).one())

    def unfinished(self) -> list[str]:
        """The ids of the posts that are not done, oldest first."""
        query = select(reports.c.post_id).where(reports.c.state.in_(("intent", "sending", "created")))
        with self._database.read() as connection:
            return list(connection.execute(query.order_by(reports.c.created_at, reports.c.post_id)).scalars())

    def change(self, post_id: str, **values: Any) -> StoredReport:
        """Store a step, durably, before the next one is taken."""
        with self._database.write() as connection:
            connection.execute(
                update(reports).where(reports.c.post_id == post_id).values(changed_at=self._now(), **values)
            )
        return self.get(post_id)

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _report(row: Row[*tuple[Any, ...]]) -> StoredReport:
    fields = dict(row._mapping)
    del fields["created_at"], fields["changed_at"]
    return StoredReport(**{**fields, "post": SharedPost(**codec.loads(fields["post"]))})
