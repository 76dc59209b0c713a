"""Changes of the caps of a deployment: who asked for which, and from when they are in effect.

A row holds all caps after the change. In effect is the one with the highest number that is due and not cancelled; before the first
change the caps of the skill are. So a raise needs no process that activates it: it is pending until its time has come. At most one is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.schema import deployment_caps, deployments

MAX_REASON_CHARS = 500


@dataclass(frozen=True, slots=True)
class CapsChange:
    """One change. `caps` are all caps after it."""

    deployment_id: str
    number: int
    caps: Mapping[str, Any]
    reason: str
    user_name: str
    asked_at: Instant
    effective_at: Instant
    cancelled_at: Instant | None
    cancelled_by: str


@dataclass(frozen=True, slots=True)
class CapsState:
    """The change that is in effect, the one that is pending, and the number of the newest change; 0 if there was none."""

    current: CapsChange | None
    pending: CapsChange | None
    newest: int


def caps_state(database: Database, deployment_id: str) -> CapsState:
    """What is stored about the caps of a deployment at this moment."""
    with database.read() as connection:
        return _state(connection, deployment_id, database.now(connection))


def caps_numbers(database: Database, deployment_ids: Sequence[str]) -> Mapping[str, int]:
    """The number of the change that is in effect, by deployment; none for the caps of the skill. Meant for polling."""
    columns = deployment_caps.c
    with database.read() as connection:
        query = (
            select(columns.deployment_id, func.max(columns.number))
            .where(columns.deployment_id.in_(deployment_ids), columns.cancelled_at.is_(None))
            .where(columns.effective_at <= database.now(connection))
            .group_by(columns.deployment_id)
        )
        stored: Any = connection.execute(query).all()
    return dict(stored)


def caps_changes(database: Database, deployment_id: str, after: int, until: int) -> Sequence[CapsChange]:
    """The changes that came into effect, with numbers above `after` and up to `until`, oldest first."""
    columns = deployment_caps.c
    query = rows.raw(deployment_caps).where(
        columns.deployment_id == deployment_id,
        columns.number > after,
        columns.number <= until,
        columns.cancelled_at.is_(None),
    )
    with database.read() as connection:
        return [_change(row) for row in rows.fetch_all(connection, query.order_by(columns.number))]


def add_changes(
    database: Database,
    deployment_id: str,
    newest: int,
    changes: Sequence[tuple[Mapping[str, Any], int]],
    reason: str,
    user_name: str,
) -> bool:
    """Store changes, each as all caps after it and its delay in milliseconds, and cancel what is pending. Returns False, and
    stores nothing, if `newest` is no longer the number of the newest change: then they were made from caps that are outdated.
    """
    reason = " ".join(reason.split())[:MAX_REASON_CHARS]
    with database.write() as connection:
        stored = rows.fetch(connection, deployments, {"id": deployment_id}, lock=True)
        if stored is None or stored["state"] == "stopped":
            raise UserError("the deployment is stopped", "deploy the skill again")
        now = database.now(connection)
        if _state(connection, deployment_id, now).newest != newest:
            return False
        _cancel(connection, deployment_id, user_name, now)
        for number, (caps, delay_ms) in enumerate(changes, newest + 1):
            row = {
                "deployment_id": deployment_id,
                "number": number,
                "caps": codec.dumps(codec.number_fragments(dict(caps))).decode(),
                "reason": reason,
                "user_name": user_name,
                "asked_at": now,
                "effective_at": now + delay_ms,
                "cancelled_at": None,
                "cancelled_by": "",
            }
            rows.add(connection, deployment_caps, row)
    return True


def cancel_pending(database: Database, deployment_id: str, user_name: str) -> bool:
    """Cancel the change that is pending; returns whether there was one."""
    with database.write() as connection:
        rows.fetch(connection, deployments, {"id": deployment_id}, lock=True)
        return _cancel(connection, deployment_id, user_name, database.now(connection))


def _cancel(connection: Connection, deployment_id: str, user_name: str, now: Instant) -> bool:
    columns = deployment_caps.c
    query = rows.raw(deployment_caps).where(
        columns.deployment_id == deployment_id, columns.cancelled_at.is_(None), columns.effective_at > now
    )
    pending = rows.fetch_all(connection, query)
    for row in pending:
        rows.change(connection, deployment_caps, row, {"cancelled_at": now, "cancelled_by": user_name})
    return bool(pending)


def _state(connection: Connection, deployment_id: str, now: Instant) -> CapsState:
    columns = deployment_caps.c
    of_deployment = rows.raw(deployment_caps).where(columns.deployment_id == deployment_id)
    newest_first = of_deployment.order_by(columns.number.desc()).limit(1)
    newest = rows.fetch_all(connection, newest_first)
    standing = newest_first.where(columns.cancelled_at.is_(None))
    current = rows.fetch_all(connection, standing.where(columns.effective_at <= now))
    pending = rows.fetch_all(connection, standing.where(columns.effective_at > now))
    return CapsState(
        _change(current[0]) if current else None,
        _change(pending[0]) if pending else None,
        newest[0]["number"] if newest else 0,
    )


def _change(row: Mapping[str, Any]) -> CapsChange:
    rows.require_intact(deployment_caps, row)
    values = {name: row[name] for name in rows.sealed_columns(deployment_caps)}
    return CapsChange(**{**values, "caps": codec.loads(values["caps"])})
