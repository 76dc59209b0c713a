"""Deployments and their commands: which agents run live, in which state, and what they were told to do.

The state of a deployment changes in the transaction that acknowledges the command which changes it, or in the one that records
a halt; so a process that is killed around a halt finds the deployment halted. The lease that lets one process work on a
deployment is that of its run (`runs.py`); this module starts nothing and waits for nothing.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, or_, select, tuple_

from pitboss.core.deployment import READS_ALARM, Command, DeploymentState, Mode, OpenCommand, state_after
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.suggestion import did_you_mean, nearest_id
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.deployment_alarms import mark_read
from pitboss.store.lifecycle import ACTIVE
from pitboss.store.schema import LOCAL, deployment_commands, deployments, runs

LISTED = 500
MAX_REASON_CHARS = 500


@dataclass(frozen=True, slots=True)
class Deployment:
    """A skill version that runs live, with its mode and account. `run_id` is the run that holds its records."""

    id: str
    run_id: str
    skill: str
    skill_version: int
    venue: str
    mode: Mode
    account: str
    state: DeploymentState
    code: str
    reason: str
    created_at: Instant
    changed_at: Instant
    owner: str = LOCAL


@dataclass(frozen=True, slots=True)
class SentCommand:
    """A command as stored; `acked_at` and `state` are None until a process has acknowledged it."""

    deployment_id: str
    number: int
    id: str
    command: Command
    reason: str
    user_name: str
    sent_at: Instant
    acked_at: Instant | None
    state: DeploymentState | None
    note: str


class Deployments:
    """The deployments in a database. With `owner` they are those of one owner: others do not exist for it."""

    def __init__(
        self, database: Database, now: Callable[[], Instant], new_id: Callable[[], str], owner: str | None = None
    ) -> None:
        self._database = database
        self._now = now
        self._new_id = new_id
        self._owner = owner

    def owned_by(self, owner: str) -> "Deployments":
        """The deployments of one owner."""
        return Deployments(self._database, self._now, self._new_id, owner)

    def create(
        self,
        run_id: str,
        skill: str,
        skill_version: int,
        venue: str,
        mode: Mode,
        account: str = "",
        account_names: Collection[str] = (),
    ) -> Deployment:
        """Store a new deployment. An account of a venue, whatever its names, has at most one that is not stopped and sends orders."""
        now = self._now()
        deployment = Deployment(
            self._new_id(), run_id, skill, skill_version, venue, mode, account, "running", "", "", now, now,
            self._owner or LOCAL,
        )  # fmt: skip
        with self._database.write() as connection:
            if mode == "live" and account:
                names = sorted({account, *account_names})
                self._database.lock_name(connection, f"deployment/{venue}/{names[0]}")
                other = select(deployments.c.id).where(
                    deployments.c.venue == venue,
                    deployments.c.account.in_(names),
                    deployments.c.mode == "live",
                    deployments.c.state != "stopped",
                )
                other_id = connection.execute(other).scalar()
                if other_id is not None:
                    raise UserError(
                        f"deployment {other_id} already trades on account {account!r}",
                        "two agents on one account share its margin and cancel each other's orders: stop that one first",
                    )
            rows.add(connection, deployments, _row(deployment))
        return deployment

    def get(self, prefix: str) -> Deployment:
        """The deployment with this id, or the only one whose id starts with it; also by the id of its run."""
        starts = or_(func.substr(deployments.c.id, 1, len(prefix)) == prefix, deployments.c.run_id == prefix)
        listed = self._fetch(self._all().where(starts).order_by(deployments.c.id).limit(6))
        exact = [deployment for deployment in listed if prefix in (deployment.id, deployment.run_id)]
        if exact:
            return exact[0]
        if not prefix or not listed:
            latest = self.listing(100)
            newest = ", ".join(f"{each.id} ({each.state})" for each in latest[:3])
            hint = f"the latest are {newest}" if newest else "`pitboss deploy SKILL --mode paper` makes one"
            similar = nearest_id(prefix, [each.id for each in latest])
            raise UserError(f"there is no deployment {prefix!r}", did_you_mean(similar, hint))
        if len(listed) > 1:
            ids = ", ".join(deployment.id for deployment in listed[:5])
            raise UserError(f"more than one deployment starts with {prefix!r}: {ids}", "give more of the id")
        return listed[0]

    def of_run(self, run_id: str) -> Deployment | None:
        """The deployment whose records a run holds."""
        listed = self._fetch(self._all().where(deployments.c.run_id == run_id))
        return listed[0] if listed else None

    def listing(self, limit: int = LISTED, state: DeploymentState | None = None) -> Sequence[Deployment]:
        """Deployments, newest first."""
        query = self._all() if state is None else self._all().where(deployments.c.state == state)
        return self._fetch(query.order_by(deployments.c.created_at.desc(), deployments.c.id).limit(limit))

    def trials(self, venue: str, skill: str = "", page: int = LISTED) -> Iterator[Deployment]:
        """All deployments of a venue that send no orders, newest first, read in pages; with `skill` those of one name."""
        order = deployments.c.created_at, deployments.c.id
        query = self._all().where(deployments.c.venue == venue, deployments.c.mode != "live")
        query = query.where(deployments.c.skill == skill) if skill else query
        page_query = query
        while True:
            listed = self._fetch(page_query.order_by(*(column.desc() for column in order)).limit(page))
            yield from listed
            if len(listed) < page:
                return
            page_query = query.where(tuple_(*order) < tuple_(listed[-1].created_at, listed[-1].id))

    def unattended(self, stale_ms: int) -> Sequence[Deployment]:
        """All deployments that are not stopped and that no process works on: no heartbeat for `stale_ms`. Oldest first."""
        with self._database.read() as connection:
            silent_before = self._database.now(connection) - stale_ms
        active = runs.c.status.in_(sorted(ACTIVE)) & (runs.c.heartbeat_at >= silent_before)
        attended = select(runs.c.id).where(active)
        query = self._all().where(deployments.c.state != "stopped", deployments.c.run_id.not_in(attended))
        return self._fetch(query.order_by(deployments.c.created_at, deployments.c.id))

    def heartbeats(self, mode: Mode | None = None) -> tuple[Instant, Sequence[tuple[Deployment, Instant | None]]]:
        """All deployments of a mode (None: of any) that are not stopped, each with its last heartbeat; and the current time."""
        query = self._all().where(deployments.c.state != "stopped")
        query = query if mode is None else query.where(deployments.c.mode == mode)
        listed = self._fetch(query.order_by(deployments.c.created_at, deployments.c.id))
        beats = select(runs.c.id, runs.c.heartbeat_at).where(runs.c.id.in_([each.run_id for each in listed]))
        with self._database.read() as connection:
            stored: Any = connection.execute(beats).all()
            now = self._database.now(connection)
        by_run: dict[str, Instant | None] = dict(stored)
        return now, [(each, by_run.get(each.run_id)) for each in listed]

    def halted(self, deployment_ids: Sequence[str]) -> Mapping[str, str]:
        """Which of these deployments are halted, with the code of the cause. One cheap query: meant for polling."""
        columns = deployments.c
        query = select(columns.id, columns.code).where(columns.id.in_(deployment_ids), columns.state == "halted")
        with self._database.read() as connection:
            stored: Any = connection.execute(query).all()
        return dict(stored)

    def state_and_lease(self, deployment_id: str) -> tuple[DeploymentState, str, int]:
        """The stored state and its code, and the lease under which its run is worked on. Asked before every open."""
        query = (
            select(deployments.c.state, deployments.c.code, runs.c.lease_epoch)
            .join(runs, runs.c.id == deployments.c.run_id)
            .where(deployments.c.id == deployment_id)
        )
        with self._database.read() as connection:
            stored: Any = connection.execute(query).one_or_none()
        if stored is None:
            raise UserError(f"there is no deployment {deployment_id!r}", "list them with `pitboss deployments list`")
        return tuple(stored)

    # Commands -------------------------------------------------------------------------------------------------------

    def send(self, deployment_id: str, command: Command, reason: str, user_name: str) -> SentCommand:
        """Store a command for the process that works on the deployment. An impossible one is refused here."""
        reason = " ".join(reason.split())[:MAX_REASON_CHARS]
        with self._database.write() as connection:
            row = self._require(connection, deployment_id)
            state_after(row["state"], command, reason)
            last = select(func.max(deployment_commands.c.number)).where(
                deployment_commands.c.deployment_id == deployment_id
            )
            number = (connection.execute(last).scalar() or 0) + 1
            values: dict[str, Any] = {
                "deployment_id": deployment_id,
                "number": number,
                "id": self._new_id(),
                "command": command,
                "reason": reason,
                "user_name": user_name,
                "sent_at": self._database.now(connection),
                "acked_at": None,
                "state": None,
                "note": "",
            }
            rows.add(connection, deployment_commands, values)
            if command in READS_ALARM:
                mark_read(connection, deployment_id, user_name, values["sent_at"])
        return SentCommand(**values)

    def open_commands(self, deployment_ids: Sequence[str]) -> Sequence[OpenCommand]:
        """The commands to these deployments that are not acknowledged, oldest first. One cheap query: meant for polling."""
        columns = deployment_commands.c
        names = ("id", "deployment_id", "number", "command", "reason", "user_name")
        query = select(*(columns[name] for name in names)).where(
            columns.acked_at.is_(None), columns.deployment_id.in_(deployment_ids)
        )
        with self._database.read() as connection:
            stored: Any = connection.execute(query.order_by(columns.deployment_id, columns.number)).all()
        return [OpenCommand(*row) for row in stored]

    def acknowledge(self, command: OpenCommand, note: str = "") -> SentCommand:
        """Apply a command to the state of its deployment and acknowledge it, in one transaction. Once: a second time
        returns what was stored.
        """
        with self._database.write() as connection:
            row = self._require(connection, command.deployment_id)
            key = {"deployment_id": command.deployment_id, "number": command.number}
            stored = rows.fetch(connection, deployment_commands, key, lock=True)
            if stored is None or stored["acked_at"] is not None:
                return _sent({} if stored is None else stored)
            now = self._database.now(connection)
            try:
                state = state_after(row["state"], command.command, command.reason)
            except UserError as error:  # the state has changed since the command was sent
                state, note = row["state"], error.message
            if state != row["state"]:
                is_running = state == "running"
                changes = {
                    "state": state,
                    "code": "" if is_running else command.command,
                    "reason": "" if is_running else command.reason,
                    "changed_at": now,
                }
                rows.change(connection, deployments, row, changes)
            changes = {"acked_at": now, "state": state, "note": note}
            rows.change(connection, deployment_commands, stored, changes)
            return _sent({**stored, **changes}, sealed=False)

    def commands(self, deployment_id: str, limit: int = LISTED) -> Sequence[SentCommand]:
        """The commands to a deployment, newest first."""
        query = rows.raw(deployment_commands).where(deployment_commands.c.deployment_id == deployment_id)
        with self._database.read() as connection:
            self._require(connection, deployment_id, lock=False)
            stored = rows.fetch_all(connection, query.order_by(deployment_commands.c.number.desc()).limit(limit))
        return [_sent(row) for row in stored]

    def command(self, command_id: str) -> SentCommand:
        """One command by its id."""
        with self._database.read() as connection:
            row = rows.fetch(connection, deployment_commands, {"id": command_id})
        if row is None:
            raise UserError(f"there is no command {command_id!r}", "list them with `pitboss deployments show`")
        return _sent(row)

    # Changes by the process that works on it ------------------------------------------------------------------------

    def halt(self, deployment_id: str, code: str, reason: str) -> Deployment:
        """Record a halt. The first reason stays; a stopped deployment stays stopped."""
        return self._set(deployment_id, "halted", code, reason, unless=("halted", "stopped"))

    def pause(self, deployment_id: str, code: str, reason: str) -> Deployment:
        """Record a pause that no person asked for, such as after an outage of the model."""
        return self._set(deployment_id, "paused", code, reason, unless=("paused", "halted", "stopped"))

    def stop(self, deployment_id: str, code: str, reason: str) -> Deployment:
        """Record the end of a deployment."""
        return self._set(deployment_id, "stopped", code, reason, unless=("stopped",))

    def _set(
        self, deployment_id: str, state: DeploymentState, code: str, reason: str, unless: tuple[DeploymentState, ...]
    ) -> Deployment:
        with self._database.write() as connection:
            row = self._require(connection, deployment_id)
            if row["state"] in unless:
                return _deployment(row)
            changes = {
                "state": state,
                "code": code,
                "reason": reason[:MAX_REASON_CHARS],
                "changed_at": self._database.now(connection),
            }
            rows.change(connection, deployments, row, changes)
            return _deployment({**row, **changes}, sealed=False)

    def _require(self, connection: Connection, deployment_id: str, lock: bool = True) -> dict[str, Any]:
        row = rows.fetch(connection, deployments, {"id": deployment_id}, lock=lock)
        if row is None or (self._owner is not None and row["owner"] != self._owner):
            raise UserError(f"there is no deployment {deployment_id!r}", "list them with `pitboss deployments list`")
        return row

    def _all(self) -> Any:
        query = rows.raw(deployments)
        return query if self._owner is None else query.where(deployments.c.owner == self._owner)

    def _fetch(self, query: Any) -> Sequence[Deployment]:
        with self._database.read() as connection:
            return [_deployment(row) for row in rows.fetch_all(connection, query)]


def _row(deployment: Deployment) -> dict[str, Any]:
    return {name: getattr(deployment, name) for name in rows.sealed_columns(deployments)}


def _deployment(row: Mapping[str, Any], sealed: bool = True) -> Deployment:
    if sealed:
        rows.require_intact(deployments, row)
    return Deployment(**{name: row[name] for name in rows.sealed_columns(deployments)})


def _sent(row: Mapping[str, Any], sealed: bool = True) -> SentCommand:
    if not row:
        raise UserError("the command does not exist", "list them with `pitboss deployments show`")
    if sealed:
        rows.require_intact(deployment_commands, row)
    return SentCommand(**{name: row[name] for name in rows.sealed_columns(deployment_commands)})
