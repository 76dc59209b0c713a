"""Studies that workers carry on by themselves: each batch of their runs is queued when the one before has ended.

One row of `facts` for each, from when it is queued until its last run has ended or it is cancelled. The definition of a study is in
`studies.py`; here is what a continuation needs besides.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import delete, select

from pitboss.store.database import Database
from pitboss.store.fact import keys_with, read_fact, write_fact
from pitboss.store.schema import facts

PREFIX = "queue/"


@dataclass(frozen=True, slots=True)
class QueuedStudy:
    """A study that is carried on. `limits` are fields of its base request that do not belong to its definition; `stopped` says why
    it is not carried on although it is not complete.
    """

    owner: str
    expected_runs: int
    limits: Mapping[str, Any]
    stopped: str = ""


def write_queued_study(database: Database, study_id: str, queued: QueuedStudy) -> None:
    """Store a study that is to be carried on, or why it no longer is."""
    with database.write() as connection:
        write_fact(connection, f"{PREFIX}{study_id}", asdict(queued))


def read_queued_study(database: Database, study_id: str) -> QueuedStudy | None:
    """The study if it is carried on; None for any other."""
    with database.read() as connection:
        content = read_fact(connection, f"{PREFIX}{study_id}")
    return None if content is None else QueuedStudy(**content)


def forget_queued_study(database: Database, study_id: str) -> None:
    """Delete the row of a study that is complete or cancelled."""
    if read_queued_study(database, study_id) is not None:
        with database.write() as connection:
            connection.execute(delete(facts).where(facts.c.key == f"{PREFIX}{study_id}"))


def queued_studies(database: Database) -> list[str]:
    """The ids of all studies that are carried on."""
    query = select(facts.c.key).where(keys_with(PREFIX)).order_by(facts.c.key)
    with database.read() as connection:
        return [key.removeprefix(PREFIX) for key in connection.execute(query).scalars()]
