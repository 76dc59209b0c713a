"""Runs: what was asked for, how far it is, how it ended. What happened in between is the journal's.

Whoever works on a run first claims it and passes the epoch it got to every later write; a claim by someone else makes
those writes fail. What a person may ask for (list, show, cancel, delete) needs no lease.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypedDict, Unpack, cast

from sqlalchemy import Connection, Select, delete, func, select

from pitboss.core import codec
from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.core.instant import Instant, iso
from pitboss.core.money import text
from pitboss.store import rows
from pitboss.store.database import Database
from pitboss.store.lifecycle import ACTIVE, LeaseLost, Status, require_move
from pitboss.store.schema import records, run_states, runs


@dataclass(frozen=True, slots=True)
class Run:
    """One run as it stands. `progress` is the share done, 0 to 1.

    `saved_usd` is what answers that others had paid for would have cost, `wasted_usd` what was paid for and not used.
    """

    id: str
    skill_id: str
    skill_version: int
    status: Status
    model: str
    params: Mapping[str, Any]
    data_digest: str | None
    progress: float
    error_text: str | None
    metrics: Mapping[str, Any] | None
    baselines: Mapping[str, Any] | None
    digest: str | None
    cost_usd: Decimal
    saved_usd: Decimal
    wasted_usd: Decimal
    wall_s: float
    ticks: int
    report: str | None
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    heartbeat_at: Instant | None
    lease_epoch: int
    cancel_requested: bool


class Figures(TypedDict, total=False):
    """What a run has come to so far; what is left out stays as it is."""

    cost_usd: Decimal
    saved_usd: Decimal
    wasted_usd: Decimal
    wall_s: float
    ticks: int


@dataclass(frozen=True, slots=True)
class Listing:
    """Runs that can be read, and the ids of those whose rows are not what was written. Both newest first."""

    runs: Sequence[Run]
    damaged: Sequence[str]


class Runs:
    """The runs in a database."""

    def __init__(self, database: Database, now: Callable[[], Instant], new_id: Callable[[], str]) -> None:
        self._database = database
        self._now = now
        self._new_id = new_id

    def create(
        self,
        skill_id: str,
        skill_version: int,
        model: str,
        params: Mapping[str, Any],
        data_digest: str | None = None,
    ) -> str:
        """Queue a run. `params` holds everything that is needed to start it again from nothing."""
        run_id = self._new_id()
        row: dict[str, object] = {
            "id": run_id,
            "skill_id": skill_id,
            "skill_version": skill_version,
            "status": "queued",
            "model": model,
            "params": codec.dumps(params),
            "data_digest": data_digest,
            "progress": 0.0,
            "error_text": None,
            "metrics": None,
            "baselines": None,
            "digest": None,
            "cost_usd": "0",
            "saved_usd": "0",
            "wasted_usd": "0",
            "wall_s": 0.0,
            "ticks": 0,
            "report": None,
            "created_at": self._now(),
            "started_at": None,
            "finished_at": None,
            "heartbeat_at": None,
            "lease_epoch": 0,
            "cancel_requested": False,
        }
        with self._database.write() as connection:
            rows.add(connection, runs, row)
        return run_id

    def find(self, prefix: str) -> str:
        """The whole id of the one run whose id starts like this."""
        with self._database.read() as connection:
            starts = func.substr(runs.c.id, 1, len(prefix)) == prefix
            found = connection.execute(select(runs.c.id).where(starts).order_by(runs.c.id).limit(6)).scalars().all()
            if prefix in found:
                return prefix
            if len(found) == 1 and prefix:
                return found[0]
            if found and prefix:
                listed = ", ".join(found[:5]) + (", …" if len(found) > 5 else "")
                raise UserError(f"more than one run starts with {prefix!r}: {listed}", "give more of the id")
            newest = select(runs.c.id, runs.c.status).order_by(runs.c.created_at.desc(), runs.c.id).limit(3)
            latest = [f"{row.id} ({row.status})" for row in connection.execute(newest)]
        raise UserError(
            f"there is no run {prefix!r}",
            f"the latest are {', '.join(latest)}" if latest else "there are no runs here yet",
        )

    def get(self, prefix: str) -> Run:
        """The run with this id or the start of it."""
        with self._database.read() as connection:
            row = rows.fetch(connection, runs, {"id": prefix})
        if row is None:
            run_id = self.find(prefix)
            with self._database.read() as connection:
                row = self._row(connection, run_id)
        return _run(row)

    def having(self, run_id: str) -> Run | None:
        """The run with exactly this id, or None."""
        with self._database.read() as connection:
            row = rows.fetch(connection, runs, {"id": run_id})
        return None if row is None else _run(row)

    def list(self, limit: int = 100, status: Status | None = None) -> Sequence[Run]:
        """Runs, newest first. Raises `ReplayMismatch` if one of them was damaged."""
        found = self.look(limit, status)
        if found.damaged:
            raise ReplayMismatch(f"the row of run {found.damaged[0]} was changed after it was written")
        return found.runs

    def look(self, limit: int = 100, status: Status | None = None) -> Listing:
        """Runs, newest first, around those that were damaged."""
        try:
            with self._database.read() as connection:
                found = rows.fetch_all(connection, _newest(rows.raw(runs), limit, status))
            ids = [row["id"] for row in found]
        except UserError:  # perhaps text in one row that the driver cannot read
            with self._database.read() as connection:
                ids = connection.execute(_newest(select(runs.c.id), limit, status)).scalars().all()
            found = [row for run_id in ids if (row := self._readable(run_id)) is not None]
        sound = {row["id"]: _run(row) for row in found if rows.intact(runs, row)}
        damaged = [run_id for run_id in ids if run_id not in sound]
        return Listing([sound[run_id] for run_id in ids if run_id in sound], damaged)

    def claim(
        self, run_id: str, stale_before: Instant | None = None, into: Literal["loading", "running"] = "loading"
    ) -> int:
        """Take a run to work on it, and get the lease epoch that every write must carry.

        A run that is being worked on is taken too, and its worker's next write fails; with `stale_before`, only if its
        last sign of life is older than that. A run that ended in error or was cancelled is resumed this way. `into` is
        `running` for a worker that has loaded everything before it claims.
        """
        with self._database.write() as connection:
            row = self._row(connection, run_id, lock=True)
            if row["status"] == "complete":
                raise UserError(f"run {run_id} is complete", "start a new one; there is nothing left to resume")
            alive_at = row["heartbeat_at"]
            if (
                stale_before is not None
                and row["status"] in ACTIVE
                and alive_at is not None
                and alive_at >= stale_before
            ):
                raise UserError(
                    f"run {run_id} is being worked on (last sign of life {iso(alive_at)})", "wait for it, or cancel it"
                )
            now = self._now()
            epoch = row["lease_epoch"] + 1
            changes: dict[str, object] = {
                "status": into,
                "lease_epoch": epoch,
                "started_at": row["started_at"] or now,
                "heartbeat_at": now,
                "finished_at": None,
                "error_text": None,
            }
            if stale_before is None:  # a person takes it, after whoever asked for it to stop
                changes["cancel_requested"] = False
            rows.change(connection, runs, row, changes)
            return epoch

    def set_status(self, run_id: str, status: Status, epoch: int, **figures: Unpack[Figures]) -> None:
        """Move a run on. `complete` and `error` have their own methods, which say more."""
        ended: dict[str, object] = {"finished_at": self._now()} if status == "cancelled" else {}
        self._work(run_id, epoch, {"status": status, **ended, **_stored(figures)})

    def heartbeat(self, run_id: str, epoch: int) -> None:
        """Say that the worker is alive. A commit of the journal says it too."""
        self._work(run_id, epoch, {})

    def note(self, run_id: str, epoch: int, *, data_digest: str | None = None, **figures: Unpack[Figures]) -> None:
        """Keep what is known by now; what is not given stays as it is."""
        known: dict[str, object] = {} if data_digest is None else {"data_digest": data_digest}
        self._work(run_id, epoch, {**known, **_stored(figures)})

    def finish(
        self,
        run_id: str,
        epoch: int,
        *,
        digest: str,
        metrics: Mapping[str, Any],
        baselines: Mapping[str, Any],
        report: str | None = None,
        **figures: Unpack[Figures],
    ) -> None:
        """Complete a run whose metrics were computed."""
        changes = {
            "status": "complete",
            "digest": digest,
            "metrics": codec.dumps(metrics),
            "baselines": codec.dumps(baselines),
            "progress": 1.0,
            "finished_at": self._now(),
        }
        written: dict[str, object] = {} if report is None else {"report": report}
        self._work(run_id, epoch, {**changes, **written, **_stored(figures)})

    def fail(self, run_id: str, epoch: int, error_text: str, **figures: Unpack[Figures]) -> None:
        """End a run in error. Everything committed stays, and it can be resumed."""
        changes = {"status": "error", "error_text": error_text, "finished_at": self._now()}
        self._work(run_id, epoch, {**changes, **_stored(figures)})

    def set_report(self, run_id: str, report: str) -> None:
        """Remember where the last report of a run was written."""
        with self._database.write() as connection:
            rows.change(connection, runs, self._row(connection, run_id, lock=True), {"report": report})

    def request_cancel(self, run_id: str) -> Status:
        """Ask for a run to stop, and say what it is now. One that nobody works on yet is cancelled at once."""
        with self._database.write() as connection:
            row = self._row(connection, run_id, lock=True)
            if row["status"] in ACTIVE:
                rows.change(connection, runs, row, {"cancel_requested": True})
                return row["status"]
            if row["status"] == "queued":
                changes = {"status": "cancelled", "cancel_requested": True, "finished_at": self._now()}
                rows.change(connection, runs, row, changes)
                return "cancelled"
        raise UserError(f"run {run_id} has already ended ({row['status']})")

    def cancel_requested(self, run_id: str) -> bool:
        """Whether somebody asked for the run to stop. Cheap: made to be asked between ticks."""
        query = select(runs.c.cancel_requested).where(runs.c.id == run_id)
        with self._database.read() as connection:
            return bool(connection.execute(query).scalar())

    def delete(self, run_id: str, *, force: bool = False) -> None:
        """Remove a run and all its records. One that is being worked on only with `force`."""
        with self._database.write() as connection:
            row = self._row(connection, run_id, lock=True)
            if row["status"] in ACTIVE and not force:
                raise UserError(f"run {run_id} is {row['status']}", "cancel it first")
            connection.execute(delete(records).where(records.c.run_id == run_id))
            connection.execute(delete(run_states).where(run_states.c.run_id == run_id))
            connection.execute(delete(runs).where(runs.c.id == run_id))

    def _work(self, run_id: str, epoch: int, changes: Mapping[str, object]) -> None:
        """A worker's write: under its lease, along the legal moves."""
        with self._database.write() as connection:
            row = rows.fetch(connection, runs, {"id": run_id}, lock=True)
            if row is None or row["lease_epoch"] != epoch:
                raise LeaseLost(run_id)
            require_move(run_id, row["status"], cast("Status", changes.get("status", row["status"])))
            rows.change(connection, runs, row, {"heartbeat_at": self._now(), **changes})

    def _readable(self, run_id: str) -> dict[str, Any] | None:
        try:
            with self._database.read() as connection:
                return rows.fetch(connection, runs, {"id": run_id})
        except UserError:
            return None

    def _row(self, connection: Connection, run_id: str, *, lock: bool = False) -> dict[str, Any]:
        row = rows.fetch(connection, runs, {"id": run_id}, lock=lock)
        if row is None:
            raise UserError(f"there is no run {run_id!r}")
        return row


def _newest(query: Select[Any], limit: int, status: Status | None) -> Select[Any]:
    chosen = query if status is None else query.where(runs.c.status == status)
    return chosen.order_by(runs.c.created_at.desc(), runs.c.id).limit(limit)


def _stored(figures: Figures) -> dict[str, object]:
    """Figures as the columns hold them."""
    kept = {name: text(value) if isinstance(value, Decimal) else value for name, value in figures.items()}
    return kept | {"wall_s": float(figures["wall_s"])} if "wall_s" in figures else kept


def _run(row: Mapping[str, Any]) -> Run:
    values = {name: row[name] for name in rows.sealed_columns(runs)}
    try:
        for name in ("params", "metrics", "baselines"):
            values[name] = None if values[name] is None else codec.loads(values[name])
        for name in ("cost_usd", "saved_usd", "wasted_usd"):
            values[name] = Decimal(values[name])
    except (ValueError, TypeError, ArithmeticError):
        raise ReplayMismatch(f"the row of run {row['id']} was changed after it was written") from None
    values["cancel_requested"] = bool(values["cancel_requested"])
    return Run(**values)
