"""Runs: their parameters, progress and results. The records of a run are in `journal.py`.

A process that executes a run first claims it and passes the epoch of the claim to every later write; a later claim makes
those writes fail. Commands of the user (list, show, cancel, delete) need no lease. How workers find runs, and what happens to
the runs of lost workers, is in `queue.py`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack, cast

from sqlalchemy import Connection, delete, func, select

from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, iso
from pitboss.core.suggestion import did_you_mean, nearest_id
from pitboss.store import budgets, events, spend
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.fact import keys_with
from pitboss.store.lifecycle import ACTIVE, ENDED, LeaseLost, Status, being_executed, require_move
from pitboss.store.run import Figures, Run, figure_columns, new_run_row, no_run, read_run, require_run_row
from pitboss.store.run_filter import RunFilter, filtered, newest
from pitboss.store.schema import approval_requests, deployments, facts, records, run_events, run_states, runs

_LAST = re.compile(r"last(?:~(\d{1,6}))?")


def is_relative(name: str) -> bool:
    """Whether a name stands for a run by its place among the newest: `last`, `last~1`, `last~2`, …"""
    return _LAST.fullmatch(name) is not None


COMPARED_IDS = 1_000
"""How many of the latest ids a mistyped one is compared with."""


@dataclass(frozen=True, slots=True)
class RunListing:
    """Readable runs, and the ids of those whose rows were changed after they were written. Both newest first."""

    runs: Sequence[Run]
    damaged: Sequence[str]


class Runs:
    """The runs in a database. `now` is the clock for `created_at`; all other times are the database's.

    With `owner` they are the runs of one owner: those of others do not exist for it.
    """

    def __init__(
        self, database: Database, now: Callable[[], Instant], new_id: Callable[[], str], owner: str | None = None
    ) -> None:
        self._database = database
        self._now = now
        self._new_id = new_id
        self._owner = owner

    def owned_by(self, owner: str) -> "Runs":
        """The runs of one owner."""
        return Runs(self._database, self._now, self._new_id, owner)

    def create(
        self,
        skill_id: str,
        skill_version: int,
        model: str,
        params: Mapping[str, Any],
        data_digest: str | None = None,
        limit: budgets.RunLimit | None = None,
    ) -> str:
        """Store a new run, which the caller will claim. `params` holds everything needed to start it again from nothing.

        With `limit` its cost is reserved from today's budget, or `BudgetExceeded` is raised and nothing is stored.
        """
        run_id = self._new_id()
        row = new_run_row(run_id, skill_id, skill_version, model, params, data_digest)
        row |= {"created_at": self._now()} | ({} if self._owner is None else {"owner": self._owner})
        with self._database.write() as connection:
            rows.add(connection, runs, row)
            if limit is not None:
                budgets.reserve_rest(connection, self._database, str(row["owner"]), run_id, limit)
        return run_id

    def find(self, prefix: str) -> str:
        """The full id of the only run whose id starts with this prefix.

        `last` is the newest run that belongs to no study, `last~N` the one N places before it.
        """
        if match := _LAST.fullmatch(prefix):
            return self._newest_id(prefix, int(match[1] or 0))
        with self._database.read() as connection:
            starts = func.substr(runs.c.id, 1, len(prefix)) == prefix
            matches = self._bounded(select(runs.c.id).where(starts)).order_by(runs.c.id).limit(6)
            ids = connection.execute(matches).scalars().all()
            if prefix in ids:
                return prefix
            if len(ids) == 1 and prefix:
                return ids[0]
            if ids and prefix:
                listed = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
                raise UserError(f"more than one run starts with {prefix!r}: {listed}", "give more of the id")
            latest_first = self._bounded(select(runs.c.id, runs.c.status)).order_by(runs.c.created_at.desc(), runs.c.id)
            latest = connection.execute(latest_first.limit(COMPARED_IDS)).all()
        listed = ", ".join(f"{row.id} ({row.status})" for row in latest[:3])
        hint = f"the latest are {listed}" if latest else f"there are no runs in {self._database.location}"
        similar = nearest_id(prefix, [row.id for row in latest])
        raise UserError(f"there is no run {prefix!r}", did_you_mean(similar, hint))

    def _newest_id(self, name: str, place: int) -> str:
        """The id of the run at a place among those that belong to no study, newest first."""
        newest_first = newest(self._bounded(select(runs.c.id)), 1, None, {"single": True}).offset(place)
        with self._database.read() as connection:
            run_id = connection.execute(newest_first).scalar()
        if run_id is not None:
            return run_id
        count = sum(self.count(single=True).values())
        hint = f"the oldest is last~{count - 1}" if count else f"there are no single runs in {self._database.location}"
        raise UserError(f"there is no run {name!r}", hint)

    def get(self, prefix: str) -> Run:
        """The run that `find` finds."""
        with self._database.read() as connection:
            row = self._fetch(connection, prefix)
        if row is None:
            run_id = self.find(prefix)
            with self._database.read() as connection:
                row = require_run_row(connection, run_id)
        return read_run(row)

    def get_or_none(self, run_id: str) -> Run | None:
        """The run with exactly this id, or None."""
        with self._database.read() as connection:
            row = self._fetch(connection, run_id)
        return None if row is None else read_run(row)

    def listing(self, limit: int = 100, status: Status | None = None, **filters: Unpack[RunFilter]) -> RunListing:
        """Runs, newest first; damaged ones by id only."""
        ids, stored = self.raw_rows(limit, status, **filters)
        intact = {row["id"]: read_run(row) for row in stored if rows.intact(runs, row)}
        damaged = [run_id for run_id in ids if run_id not in intact]
        return RunListing([intact[run_id] for run_id in ids if run_id in intact], damaged)

    def raw_rows(
        self, limit: int = 100, status: Status | None = None, **filters: Unpack[RunFilter]
    ) -> tuple[Sequence[str], Sequence[dict[str, Any]]]:
        """Ids and rows of runs, newest first, as stored: nothing is parsed, and no seal is checked. A row that the driver
        cannot read is only among the ids.
        """
        return self._rows(lambda query: newest(query, limit, status, filters))

    def newest_by_skill(self) -> dict[str, Run]:
        """The newest run of every skill that has one, by the id of the skill; damaged runs are left out."""
        order = (runs.c.created_at.desc(), runs.c.id.desc())
        place = func.row_number().over(partition_by=runs.c.skill_id, order_by=order).label("place")
        places = self._bounded(select(runs.c.id, place)).subquery()
        newest_ids = select(places.c.id).where(places.c.place == 1)
        _, stored = self._rows(lambda query: query.where(runs.c.id.in_(newest_ids)))
        return {row["skill_id"]: read_run(row) for row in stored if rows.intact(runs, row)}

    def _rows(self, chosen: Callable[[Any], Any]) -> tuple[Sequence[str], Sequence[dict[str, Any]]]:
        """Ids and rows of the runs that a query chooses; a row that the driver cannot read is only among the ids."""
        try:
            with self._database.read() as connection:
                stored = rows.fetch_all(connection, chosen(self._bounded(rows.raw(runs))))
            return [row["id"] for row in stored], stored
        except UserError:  # one row may have text that the driver cannot read
            with self._database.read() as connection:
                ids = connection.execute(chosen(self._bounded(select(runs.c.id)))).scalars().all()
            return ids, [row for run_id in ids if (row := self._readable(run_id)) is not None]

    def count(self, **filters: Unpack[RunFilter]) -> dict[Status, int]:
        """How many runs there are, by status."""
        query = filtered(self._bounded(select(runs.c.status, func.count())), filters).group_by(runs.c.status)
        with self._database.read() as connection:
            counts: Any = connection.execute(query)
            return {status: int(number) for status, number in counts}

    def claim(
        self,
        run_id: str,
        stale_after_ms: int | None = None,
        into: Literal["loading", "running"] = "loading",
        limit: budgets.RunLimit | None = None,
        expected_epoch: int | None = None,
    ) -> int:
        """Claim a run; returns the lease epoch under which every write is made.

        An active run is claimed too, and the next write of its worker fails; with `stale_after_ms` only if it had no
        heartbeat for that long, with `expected_epoch` only if nobody has claimed it since that epoch. A run that ended in error or was cancelled is resumed this way, and a queued one leaves the
        queue. `into` is `running` for a process that has loaded everything before the claim. With `limit` the rest of its cost
        is reserved from today's budget, or `BudgetExceeded` is raised and the run is not claimed.
        """
        with self._database.write() as connection:
            row = self._require(connection, run_id)
            if row["status"] == "complete":
                raise UserError(f"run {run_id} is complete", "start a new one; there is nothing left to resume")
            if expected_epoch not in (None, row["lease_epoch"]):
                raise being_executed(run_id, "another process")
            now, alive_at = self._database.now(connection), row["heartbeat_at"]
            if (
                stale_after_ms is not None
                and row["status"] in ACTIVE
                and alive_at is not None
                and now - alive_at <= stale_after_ms
            ):
                raise UserError(
                    f"run {run_id} is being worked on (last heartbeat {iso(alive_at)})", "wait for it, or cancel it"
                )
            epoch = row["lease_epoch"] + 1
            changes: dict[str, object] = {
                "status": into,
                "metrics": None,  # those of a live run that was stopped are outdated by its next record
                "lease_epoch": epoch,
                "started_at": row["started_at"] or now,
                "heartbeat_at": now,
                "finished_at": None,
                "error_text": None,
                "queued_at": None,
                "requeues": 0,
                "worker": None,
            }
            if stale_after_ms is None:  # a command of the user, later than the cancel request
                changes["cancel_requested"] = False
            rows.change(connection, runs, row, changes)
            events.append(connection, run_id, epoch, "taken", now, None)
            budgets.settle_before(connection, run_id, epoch)
            if limit is not None:
                budgets.reserve_rest(connection, self._database, row["owner"], run_id, limit)
            return epoch

    def set_status(self, run_id: str, status: Status, epoch: int, **figures: Unpack[Figures]) -> None:
        """Change the status of a run. For `complete` and `error` there are `finish` and `fail`."""
        self._write(run_id, epoch, {"status": status, **figure_columns(figures)})

    def heartbeat(self, run_id: str, epoch: int) -> None:
        """Write a heartbeat. A commit of the journal counts as one too."""
        self._write(run_id, epoch, {})

    def note(
        self,
        run_id: str,
        epoch: int,
        *,
        metrics: Mapping[str, Any] | None = None,
        **figures: Unpack[Figures],
    ) -> None:
        """Store figures of a run; columns that are not given stay unchanged."""
        changes: dict[str, object] = {} if metrics is None else {"metrics": codec.dumps(metrics)}
        self._write(run_id, epoch, {**changes, **figure_columns(figures)})

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
        """Complete a run with its metrics."""
        changes = {
            "status": "complete",
            "digest": digest,
            "metrics": codec.dumps(metrics),
            "baselines": codec.dumps(baselines),
            "progress": 1.0,
        }
        report_column: dict[str, object] = {} if report is None else {"report": report}
        self._write(run_id, epoch, {**changes, **report_column, **figure_columns(figures)})

    def fail(self, run_id: str, epoch: int, error_text: str, **figures: Unpack[Figures]) -> None:
        """End a run in error. Everything committed stays, and it can be resumed."""
        # Text columns of Postgres do not accept a NUL character.
        changes = {"status": "error", "error_text": error_text.replace("\0", "")}
        self._write(run_id, epoch, {**changes, **figure_columns(figures)})

    def set_report(self, run_id: str, report: str) -> None:
        """Store the path of the last report of a run."""
        with self._database.write() as connection:
            rows.change(connection, runs, self._require(connection, run_id), {"report": report})

    def request_cancel(self, run_id: str) -> Status:
        """Request a cancel; returns the status. A queued run is cancelled at once."""
        with self._database.write() as connection:
            row = self._require(connection, run_id)
            _refuse_deployed(connection, run_id, "`pitboss command {} pause` pauses it, `stop` ends it")
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
        """Whether a cancel is requested. Cheap: meant to be called between ticks."""
        query = self._bounded(select(runs.c.cancel_requested).where(runs.c.id == run_id))
        with self._database.read() as connection:
            return bool(connection.execute(query).scalar())

    def delete(self, run_id: str, *, force: bool = False) -> None:
        """Delete a run and all its records; an active run only with `force`, that of a deployment only if it is stopped."""
        with self._database.write() as connection:
            row = self._require(connection, run_id)
            _refuse_deployed(connection, run_id, "`pitboss command {} stop` ends it; then its run can be deleted")
            if row["status"] in ACTIVE and not force:
                raise UserError(f"run {run_id} is {row['status']}", "cancel it first")
            budgets.settle_all(connection, run_id)
            remove(connection, self._database, [run_id])

    def _write(self, run_id: str, epoch: int, changes: Mapping[str, object]) -> None:
        """A write under a lease, with an allowed status transition.

        Safe to repeat when the reply to it was lost: an end that was written is not written twice.
        """
        with self._database.write() as connection:
            row = self._fetch(connection, run_id, lock=True)
            if row is not None and row["lease_epoch"] == epoch:
                after = cast("Status", changes.get("status", row["status"]))
                if after in ENDED and _same_end(row, changes):
                    return
                require_move(run_id, row["status"], after)
                now = self._database.now(connection)
                end: dict[str, object] = {"finished_at": now} if after in ENDED else {}
                rows.change(connection, runs, row, {"heartbeat_at": now, **end, **changes})
                if after in ENDED:
                    detail = str(changes.get("digest") or changes.get("error_text") or "")
                    kind = cast("events.Kind", after)
                    events.append(connection, run_id, epoch, kind, now, row["worker"], detail)
                    budgets.settle_all(connection, run_id)
                return
        events.append_refusal(self._database, run_id, epoch, str(changes.get("status", "note")))
        raise LeaseLost(run_id)

    def _bounded(self, query: Any) -> Any:
        """The query for the rows of the owner only."""
        return query if self._owner is None else query.where(runs.c.owner == self._owner)

    def _fetch(self, connection: Connection, run_id: str, *, lock: bool = False) -> dict[str, Any] | None:
        """The row of a run; None for one of another owner."""
        key = {"id": run_id} if self._owner is None else {"id": run_id, "owner": self._owner}
        return rows.fetch(connection, runs, key, lock=lock)

    def _require(self, connection: Connection, run_id: str) -> dict[str, Any]:
        """The row of a run, excluding other writers, or `UserError`."""
        row = self._fetch(connection, run_id, lock=True)
        if row is None:
            raise no_run(run_id)
        return row

    def _readable(self, run_id: str) -> dict[str, Any] | None:
        try:
            with self._database.read() as connection:
                return rows.fetch(connection, runs, {"id": run_id})
        except UserError:
            return None


def remove(connection: Connection, database: Database, ids: Sequence[str]) -> None:
    """Delete runs with their records, states, events and requests for approval. Replies stay, and their cost is added to the totals."""
    spend.add_to_totals(connection, database, ids)
    for table in (records, run_states, run_events, approval_requests):
        connection.execute(delete(table).where(table.c.run_id.in_(ids)))
    for run_id in ids:
        for prefix in ("doubt", "guess", "board"):
            connection.execute(delete(facts).where(keys_with(f"{prefix}/{run_id}/")))
    connection.execute(delete(runs).where(runs.c.id.in_(ids)))


def _same_end(row: Mapping[str, Any], changes: Mapping[str, object]) -> bool:
    return all(row[name] == changes[name] for name in ("status", "digest", "error_text") if name in changes)


def _refuse_deployed(connection: Connection, run_id: str, hint: str) -> None:
    """Refuse what would take the run away from its deployment. `hint` names the command to it."""
    query = select(deployments.c.id).where(deployments.c.run_id == run_id, deployments.c.state != "stopped")
    deployment_id = connection.execute(query).scalar()
    if deployment_id is not None:
        raise UserError(f"run {run_id} belongs to a deployment", hint.format(deployment_id))
