"""Alarms of deployments: what a person has to read at once. One row of `facts` for each deployment, with its newest alarm.

An alarm is unread until a person acknowledges it or resumes the deployment. While one is unread a further one does not replace it, so
the time that a person has counts from the first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, select

from pitboss.core import codec
from pitboss.core.instant import MINUTE_MS, Instant
from pitboss.store.database import Database
from pitboss.store.fact import read_fact, write_fact
from pitboss.store.schema import facts

UNREAD_MS = MINUTE_MS
"""An alarm that stays unread for longer halts its deployment."""


@dataclass(frozen=True, slots=True)
class DeploymentAlarm:
    """One alarm. `read_at` and `read_by` say when and by whom it was acknowledged."""

    text: str
    raised_at: Instant
    read_at: Instant | None = None
    read_by: str = ""


def raise_alarm(database: Database, deployment_id: str, text: str) -> DeploymentAlarm:
    """Store an alarm, unless one is unread; returns the one that is unread now."""
    with database.write() as connection:
        stored = _stored(connection, deployment_id, lock=True)
        if stored is not None and stored.read_at is None:
            return stored
        alarm = DeploymentAlarm(text, database.now(connection))
        write_fact(connection, _key(deployment_id), asdict(alarm))
        return alarm


def mark_read(connection: Connection, deployment_id: str, user_name: str, now: Instant) -> None:
    """Store that a person has read the alarm; does nothing where none is unread."""
    stored = _stored(connection, deployment_id, lock=True)
    if stored is not None and stored.read_at is None:
        read = DeploymentAlarm(stored.text, stored.raised_at, now, user_name)
        write_fact(connection, _key(deployment_id), asdict(read))


def newest_alarm(database: Database, deployment_id: str) -> DeploymentAlarm | None:
    """The newest alarm of a deployment, read or not."""
    with database.read() as connection:
        return _stored(connection, deployment_id)


def overdue_alarms(database: Database, deployment_ids: Sequence[str]) -> Mapping[str, str]:
    """The texts of alarms that were unread for too long, by deployment. One cheap query: meant for polling."""
    ids = {_key(each): each for each in deployment_ids}
    query = select(facts.c.key, facts.c.value).where(facts.c.key.in_(ids))
    with database.read() as connection:
        alarms = [(ids[key], DeploymentAlarm(**codec.loads(value))) for key, value in connection.execute(query)]
        now = database.now(connection) if alarms else 0
    return {each: alarm.text for each, alarm in alarms if alarm.read_at is None and now - alarm.raised_at > UNREAD_MS}


def _stored(connection: Connection, deployment_id: str, lock: bool = False) -> DeploymentAlarm | None:
    content = read_fact(connection, _key(deployment_id), lock)
    return None if content is None else DeploymentAlarm(**content)


def _key(deployment_id: str) -> str:
    return f"deployment/{deployment_id}/alarm"
