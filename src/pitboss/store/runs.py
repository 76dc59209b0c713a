"""Runs: what was asked for, how far it is, how it ended. What happened in between is the journal's.

Whoever works on a run first claims it and passes the epoch it got to every later write; a claim by someone else makes
those writes fail. What a person may ask for (list, show, cancel, delete) needs no lease. How workers find runs to work on,
and what becomes of those whose worker is lost, is `queue.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, Unpack, cast

from sqlalchemy import Connection, delete, func, or_, select

from pitboss.core import codec
from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.core.instant import Instant, iso
from pitboss.store import budgets, events, spend
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.lifecycle import ACTIVE, ENDED, LeaseLost, Status, require_move
from pitboss.store.run import Figures, Run, fresh, open_row, read_run, stored
from pitboss.store.schema import facts, records, run_events, run_states, runs, skills

__all__ = ["Figures", "Run", "RunListing", "Runs"]


@dataclass(frozen=True, slots=True)
class RunListing:
    """Runs that can be read, and the ids of those whose rows are not what was written. Both newest first."""

    runs: Sequence[Run]
    damaged: Sequence[str]


class RunFilter(TypedDict, total=False):
    """Which runs: those that fit all that is given."""

    owner: str
    study_id: str
    model: str
    skill: str
    besides: str
    """Not those of this study."""


class Runs:
    """The runs in a database. `now` says when a run was asked for; everything later is in the database's time."""

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
        """Keep a run that whoever made it will claim. `params` holds everything needed to start it again from nothing."""
        run_id = self._new_id()
        row = fresh(run_id, skill_id, skill_version, model, params, data_digest) | {"created_at": self._now()}
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
                row = open_row(connection, run_id)
        return read_run(row)

    def having(self, run_id: str) -> Run | None:
        """The run with exactly this id, or None."""
        with self._database.read() as connection:
            row = rows.fetch(connection, runs, {"id": run_id})
        return None if row is None else read_run(row)

    def list(self, limit: int = 100, status: Status | None = None, **where: Unpack[RunFilter]) -> Sequence[Run]:
        """Runs, newest first. Raises `ReplayMismatch` if one of them was damaged."""
        found = self.look(limit, status, **where)
        if found.damaged:
            raise ReplayMismatch(f"the row of run {found.damaged[0]} was changed after it was written")
        return found.runs

    def look(self, limit: int = 100, status: Status | None = None, **where: Unpack[RunFilter]) -> RunListing:
        """Runs, newest first, around those that were damaged."""
        ids, found = self.stored(limit, status, **where)
        sound = {row["id"]: read_run(row) for row in found if rows.intact(runs, row)}
        damaged = [run_id for run_id in ids if run_id not in sound]
        return RunListing([sound[run_id] for run_id in ids if run_id in sound], damaged)

    def stored(
        self, limit: int = 100, status: Status | None = None, **where: Unpack[RunFilter]
    ) -> tuple[Sequence[str], Sequence[dict[str, Any]]]:
        """Ids and rows of runs, newest first, just as they lie there: nothing is read out of them, and no seal is checked.
        A row that the driver cannot read is only among the ids."""
        try:
            with self._database.read() as connection:
                found = rows.fetch_all(connection, _newest(rows.raw(runs), limit, status, where))
            return [row["id"] for row in found], found
        except UserError:  # perhaps text in one row that the driver cannot read
            with self._database.read() as connection:
                ids = connection.execute(_newest(select(runs.c.id), limit, status, where)).scalars().all()
            return ids, [row for run_id in ids if (row := self._readable(run_id)) is not None]

    def count(self, **where: Unpack[RunFilter]) -> dict[Status, int]:
        """How many runs there are, by status."""
        query = _chosen(select(runs.c.status, func.count()), where).group_by(runs.c.status)
        with self._database.read() as connection:
            found: Any = connection.execute(query)
            return {status: int(number) for status, number in found}

    def claim(
        self, run_id: str, stale_after_ms: int | None = None, into: Literal["loading", "running"] = "loading"
    ) -> int:
        """Take a run to work on it, and get the lease epoch that every write must carry.

        A run that is being worked on is taken too, and its worker's next write fails; with `stale_after_ms`, only if it
        has given no sign of life for so long. A run that ended in error or was cancelled is resumed this way, and one that
        waits for a worker is out of the queue. `into` is `running` for one who has loaded everything before the claim.
        """
        with self._database.write() as connection:
            row = open_row(connection, run_id, lock=True)
            if row["status"] == "complete":
                raise UserError(f"run {run_id} is complete", "start a new one; there is nothing left to resume")
            now, alive_at = self._database.now(connection), row["heartbeat_at"]
            if (
                stale_after_ms is not None
                and row["status"] in ACTIVE
                and alive_at is not None
                and now - alive_at <= stale_after_ms
            ):
                raise UserError(
                    f"run {run_id} is being worked on (last sign of life {iso(alive_at)})", "wait for it, or cancel it"
                )
            epoch = row["lease_epoch"] + 1
            changes: dict[str, object] = {
                "status": into,
                "lease_epoch": epoch,
                "started_at": row["started_at"] or now,
                "heartbeat_at": now,
                "finished_at": None,
                "error_text": None,
                "queued_at": None,
                "requeues": 0,
                "worker": None,
            }
            if stale_after_ms is None:  # a person takes it, after whoever asked for it to stop
                changes["cancel_requested"] = False
            rows.change(connection, runs, row, changes)
            events.append(connection, run_id, epoch, "taken", now, None)
            budgets.settle_before(connection, run_id, epoch)
            return epoch

    def set_status(self, run_id: str, status: Status, epoch: int, **figures: Unpack[Figures]) -> None:
        """Move a run on. `complete` and `error` have their own methods, which say more."""
        self._work(run_id, epoch, {"status": status, **stored(figures)})

    def heartbeat(self, run_id: str, epoch: int) -> None:
        """Say that the worker is alive. A commit of the journal says it too."""
        self._work(run_id, epoch, {})

    def note(self, run_id: str, epoch: int, *, data_digest: str | None = None, **figures: Unpack[Figures]) -> None:
        """Keep what is known by now; what is not given stays as it is."""
        known: dict[str, object] = {} if data_digest is None else {"data_digest": data_digest}
        self._work(run_id, epoch, {**known, **stored(figures)})

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
        }
        written: dict[str, object] = {} if report is None else {"report": report}
        self._work(run_id, epoch, {**changes, **written, **stored(figures)})

    def fail(self, run_id: str, epoch: int, error_text: str, **figures: Unpack[Figures]) -> None:
        """End a run in error. Everything committed stays, and it can be resumed."""
        changes = {"status": "error", "error_text": error_text.replace("\0", "")}  # which no text of Postgres takes
        self._work(run_id, epoch, {**changes, **stored(figures)})

    def set_report(self, run_id: str, report: str) -> None:
        """Remember where the last report of a run was written."""
        with self._database.write() as connection:
            rows.change(connection, runs, open_row(connection, run_id, lock=True), {"report": report})

    def request_cancel(self, run_id: str) -> Status:
        """Ask for a run to stop, and say what it is now. One that nobody works on yet is cancelled at once."""
        with self._database.write() as connection:
            row = open_row(connection, run_id, lock=True)
            now, epoch = self._database.now(connection), row["lease_epoch"]
            if row["status"] in ACTIVE:
                rows.change(connection, runs, row, {"cancel_requested": True})
                events.append(connection, run_id, epoch, "cancel", now, None)
                return row["status"]
            if row["status"] == "queued":
                changes = {"status": "cancelled", "cancel_requested": True, "finished_at": now}
                rows.change(connection, runs, row, changes)
                events.append(connection, run_id, epoch, "cancelled", now, None)
                budgets.settle_all(connection, run_id)
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
            row = open_row(connection, run_id, lock=True)
            if row["status"] in ACTIVE and not force:
                raise UserError(f"run {run_id} is {row['status']}", "cancel it first")
            budgets.settle_all(connection, run_id)
            remove(connection, self._database, [run_id])

    def _work(self, run_id: str, epoch: int, changes: Mapping[str, object]) -> None:
        """A worker's write: under its lease, along the legal moves.

        Safe to do again when the answer to it was lost: an end that was written is not written twice.
        """
        with self._database.write() as connection:
            row = rows.fetch(connection, runs, {"id": run_id}, lock=True)
            if row is not None and row["lease_epoch"] == epoch:
                after = cast("Status", changes.get("status", row["status"]))
                if after in ENDED and _same_end(row, changes):
                    return
                require_move(run_id, row["status"], after)
                now = self._database.now(connection)
                ended: dict[str, object] = {"finished_at": now} if after in ENDED else {}
                rows.change(connection, runs, row, {"heartbeat_at": now, **ended, **changes})
                if after in ENDED:
                    detail = str(changes.get("digest") or changes.get("error_text") or "")
                    kind = cast("events.Kind", after)
                    events.append(connection, run_id, epoch, kind, now, row["worker"], detail)
                    budgets.settle_all(connection, run_id)
                return
        events.refuse(self._database, run_id, epoch, str(changes.get("status", "note")))
        raise LeaseLost(run_id)

    def _readable(self, run_id: str) -> dict[str, Any] | None:
        try:
            with self._database.read() as connection:
                return rows.fetch(connection, runs, {"id": run_id})
        except UserError:
            return None


def remove(connection: Connection, database: Database, ids: Sequence[str]) -> None:
    """Remove runs with all that is only theirs. Answers stay, and what they cost stays known."""
    spend.remember(connection, database, ids)
    for table in (records, run_states, run_events):
        connection.execute(delete(table).where(table.c.run_id.in_(ids)))
    for run_id in ids:
        connection.execute(delete(facts).where(facts.c.key.startswith(f"doubt/{run_id}/", autoescape=True)))
    connection.execute(delete(runs).where(runs.c.id.in_(ids)))


def _same_end(row: Mapping[str, Any], changes: Mapping[str, object]) -> bool:
    return all(row[name] == changes[name] for name in ("status", "digest", "error_text") if name in changes)


def _newest(query: Any, limit: int, status: Status | None, where: RunFilter) -> Any:
    chosen = query if status is None else query.where(runs.c.status == status)
    return _chosen(chosen, where).order_by(runs.c.created_at.desc(), runs.c.id).limit(limit)


def _chosen(query: Any, where: RunFilter) -> Any:
    for name, value in where.items():
        if name == "skill":
            named = select(skills.c.id).where(skills.c.name == value).scalar_subquery()
            query = query.where(runs.c.skill_id == named)
        elif name == "besides":
            query = query.where(or_(runs.c.study_id.is_(None), runs.c.study_id != value))
        elif value is not None:
            query = query.where(runs.c[name] == value)
    return query
