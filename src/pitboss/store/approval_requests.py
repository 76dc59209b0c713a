"""Requests for a person's approval of one action of a run, such as a transaction above a limit.

An approval is good for one execution of exactly the action that its key names, in the run that asked, until it expires. A row
is one request; it is never reopened, so that the history of decisions stays.

    pending    waits for a decision
    approved   may be executed once
    denied     must not be executed; asking again changes nothing until the denial expires
    used       was executed, or was about to be

A request that has expired counts as never decided, whatever its state: the action has to be asked for again.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, func, select

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.run import no_run
from pitboss.store.schema import LOCAL, approval_requests, runs

ApprovalState = Literal["pending", "approved", "denied", "used"]
LASTS_MS = 24 * 3_600_000
"""How long a request waits for a decision, and how long a decision holds."""
LISTED = 200


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """One request. `number` counts those for the same action of a run; only the last of them counts.

    `content` is canonical JSON of the action, in the venue's form, for the person who decides.
    """

    id: str
    key: str
    run_id: str
    number: int
    venue: str
    agent: str
    content: bytes
    asked_at: Instant
    times_asked: int
    state: ApprovalState
    decided_at: Instant | None
    expires_at: Instant
    owner: str = LOCAL

    def is_expired(self, at: Instant) -> bool:
        """Whether it no longer counts at an instant. What was used stays used."""
        return self.state != "used" and at >= self.expires_at


class ApprovalRequests:
    """The requests in a database. `now` is the clock for their timestamps and for their expiry.

    A request belongs to the owner of its run. With `owner` they are the requests of one owner: those of others do not exist.
    """

    def __init__(self, database: Database, now: Callable[[], Instant], owner: str | None = None) -> None:
        self._database = database
        self._now = now
        self._owner = owner

    def owned_by(self, owner: str) -> "ApprovalRequests":
        """The requests of one owner."""
        return ApprovalRequests(self._database, self._now, owner)

    def ask(
        self, key: str, run_id: str, venue: str, agent: str, content: bytes, lasts_ms: int = LASTS_MS
    ) -> ApprovalRequest:
        """Ask for an approval of the action with this key; returns the request that counts now.

        While an earlier request for the same action counts, it is returned with its state and only counted. After it was
        used, or has expired, a new one is made.
        """
        with self._database.write() as connection:
            now, row = self._now(), self._last(connection, key, run_id)
            last = None if row is None else _request(row)
            if row is not None and last is not None and last.state != "used" and not last.is_expired(now):
                changes = {"times_asked": last.times_asked + 1}
                rows.change(connection, approval_requests, row, changes)
                return _request({**row, **changes}, sealed=False)
            number = 1 if last is None else last.number + 1
            values: dict[str, Any] = {
                "id": hashlib.sha256(f"{run_id}\n{key}\n{number}".encode()).hexdigest()[:32],
                "key": key,
                "run_id": run_id,
                "number": number,
                "venue": venue,
                "agent": agent,
                "content": content,
                "asked_at": now,
                "times_asked": 1,
                "state": "pending",
                "decided_at": None,
                "expires_at": now + lasts_ms,
                "owner": self._owner_of(connection, run_id),
            }
            rows.add(connection, approval_requests, values)
            return ApprovalRequest(**values)

    def approved(self, run_id: str) -> tuple[str, ...]:
        """The keys of the actions of a run that may be executed now, sorted."""
        now = self._now()
        query = self._all().where(approval_requests.c.run_id == run_id, approval_requests.c.state == "approved")
        return tuple(sorted({request.key for request in self._fetch(query) if not request.is_expired(now)}))

    def use(self, key: str, run_id: str) -> bool:
        """Take the approval of an action just before it is executed. Of several callers one gets True."""
        with self._database.write() as connection:
            row = self._last(connection, key, run_id)
            request = None if row is None else _request(row)
            if row is None or request is None or request.state != "approved" or request.is_expired(self._now()):
                return False
            rows.change(connection, approval_requests, row, {"state": "used"})
            return True

    def decide(self, prefix: str, approve: bool) -> ApprovalRequest:
        """Approve or deny a request by its id or the beginning of it. An approval that is not used yet can be withdrawn."""
        listed = self.find(prefix)
        request_id = listed.id
        with self._database.write() as connection:
            row = self._last(connection, listed.key, listed.run_id)
            now, request = self._now(), None if row is None else _request(row)
            if row is None or request is None or request.number != listed.number:
                raise UserError(f"request {request_id} has expired", "list the requests for the newer one")
            if request.state != "pending" and not (request.state == "approved" and not approve):
                raise UserError(f"request {request_id} is already {request.state}", "list all requests with --all")
            if request.is_expired(now):
                raise UserError(f"request {request_id} has expired", "approve the next one, if the agent asks again")
            lasts_ms = request.expires_at - (request.asked_at if request.decided_at is None else request.decided_at)
            changes = {
                "state": "approved" if approve else "denied",
                "decided_at": now,
                "expires_at": now + lasts_ms,
            }
            rows.change(connection, approval_requests, row, changes)
            return _request({**row, **changes}, sealed=False)

    def find(self, prefix: str) -> ApprovalRequest:
        """The only request whose id begins with this."""
        starts = func.substr(approval_requests.c.id, 1, len(prefix)) == prefix
        requests = self._fetch(self._all().where(starts).order_by(approval_requests.c.id).limit(6))
        if not prefix or not requests:
            raise UserError(f"there is no request {prefix!r}", "list the requests for their ids")
        if len(requests) > 1:
            listed = ", ".join(request.id for request in requests[:5]) + (", …" if len(requests) > 5 else "")
            raise UserError(f"more than one request starts with {prefix!r}: {listed}", "give more of the id")
        return requests[0]

    def listing(
        self, venue: str = "", run_id: str = "", every: bool = False, limit: int = LISTED
    ) -> Sequence[ApprovalRequest]:
        """Requests, newest first: those that wait for a decision, or `every` one."""
        query = self._all()
        for name, value in (("venue", venue), ("run_id", run_id)):
            if value:
                query = query.where(approval_requests.c[name] == value)
        if not every:
            query = query.where(approval_requests.c.state == "pending", approval_requests.c.expires_at > self._now())
        return self._fetch(query.order_by(approval_requests.c.asked_at.desc(), approval_requests.c.id).limit(limit))

    def _last(self, connection: Connection, key: str, run_id: str) -> dict[str, Any] | None:
        """The last request for an action, for a change in this transaction: other changes of it wait."""
        self._database.lock_name(connection, f"approval request/{run_id}/{key}")
        columns = approval_requests.c
        query = self._all().where(columns.run_id == run_id, columns.key == key)
        page = rows.fetch_all(connection, query.order_by(columns.number.desc()).limit(1))
        return page[0] if page else None

    def _all(self) -> Any:
        query = rows.raw(approval_requests)
        return query if self._owner is None else query.where(approval_requests.c.owner == self._owner)

    def _owner_of(self, connection: Connection, run_id: str) -> str:
        """The owner of a run; a run of another owner does not exist, and gets no request."""
        owner = connection.execute(select(runs.c.owner).where(runs.c.id == run_id)).scalar()
        if self._owner is not None and owner != self._owner:
            raise no_run(run_id)
        return LOCAL if owner is None else str(owner)

    def _fetch(self, query: Any) -> Sequence[ApprovalRequest]:
        with self._database.read() as connection:
            return tuple(_request(row) for row in rows.fetch_all(connection, query))


def _request(row: Mapping[str, Any], sealed: bool = True) -> ApprovalRequest:
    if sealed:
        rows.require_intact(approval_requests, row)
    return ApprovalRequest(**{name: row[name] for name in rows.sealed_columns(approval_requests)})
