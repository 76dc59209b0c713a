"""Studies: their definitions, stored once for all their runs, and the progress of those. The runs are in `runs.py`.

The id of a study follows from its definition and its owner, so the same study is found again. The runs refer to it by `study_id`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar, Unpack

from sqlalchemy import Table, func, select
from sqlalchemy.exc import IntegrityError

from pitboss.core import codec
from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.core.instant import Instant
from pitboss.core.suggestion import did_you_mean, nearest_id
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.lifecycle import Status
from pitboss.store.run import Run, read_run
from pitboss.store.run_filter import RunFilter, filtered
from pitboss.store.runs import Runs
from pitboss.store.schema import LOCAL, runs, studies

T = TypeVar("T")
MARK = "study"
"""The parameter of a run that holds its trial in the study."""
MAX_RUNS = 1_000_000


@dataclass(frozen=True, slots=True)
class StudyLine:
    """A study in a list: its definition, the number of its runs by status, and when the first and the last were created."""

    id: str
    document: Mapping[str, Any]
    counts: Mapping[Status, int]
    first_at: Instant | None
    last_at: Instant | None


@dataclass(frozen=True, slots=True)
class RunLine:
    """The progress of one run of a study."""

    id: str
    status: Status
    progress: float


@dataclass(frozen=True, slots=True)
class StudyRun:
    """One run of a study without its request and baselines: what tables and comparisons need.

    Reading a full run takes several times as long, and a study has thousands. The metrics stay encoded until they are read:
    garbage collection of a thousand decoded documents costs more than decoding them.
    """

    id: str
    status: Status
    model: str
    mark: Mapping[str, Any]
    from_at: Instant
    to_at: Instant
    body: bytes | None
    digest: str | None
    error_text: str | None
    report: str | None
    cost_usd: Decimal
    saved_usd: Decimal
    wall_s: float

    @property
    def metrics(self) -> Mapping[str, Any] | None:
        """The metrics, decoded at every access."""
        return None if self.body is None else codec.loads(self.body)


class RunsExist(UserError):
    """Another process has created the same runs at the same moment."""


@contextmanager
def unique_runs() -> Iterator[None]:
    """Raises `RunsExist` if another process has inserted runs with the same ids, which follow from their content."""
    try:
        yield
    except IntegrityError as error:
        raise RunsExist("another process has created these runs meanwhile", "give the command again") from error


class Studies:
    """The studies in a database. With `owner` they are the studies of one owner: those of others do not exist for it."""

    def __init__(self, database: Database, owner: str | None = None) -> None:
        self._database = database
        self._owner = owner

    def owned_by(self, owner: str) -> "Studies":
        """The studies of one owner."""
        return Studies(self._database, owner)

    def save(self, study_id: str, document: Mapping[str, Any]) -> None:
        """Store the definition of a study, unless it is stored already: the same id has the same definition."""
        with self._database.write() as connection:
            self._database.lock_name(connection, f"study/{study_id}")
            if rows.fetch(connection, studies, {"id": study_id}, lock=True) is None:
                content = codec.dumps(dict(document)).decode()
                row = {"id": study_id, "document": content, "owner": self._owner or LOCAL}
                rows.add(connection, studies, row)

    def find(self, prefix: str) -> str:
        """The full id of the only study whose id starts with this prefix."""
        starts = func.substr(studies.c.id, 1, len(prefix)) == prefix
        query = self._bounded(select(studies.c.id).where(starts), studies).order_by(studies.c.id).limit(6)
        with self._database.read() as connection:
            ids = list(connection.execute(query).scalars())
        if prefix in ids:
            return prefix
        if len(ids) == 1 and prefix:
            return ids[0]
        if ids and prefix:
            raise UserError(f"more than one study starts with {prefix!r}: {', '.join(ids)}", "give more of the id")
        with self._database.read() as connection:
            every = connection.execute(self._bounded(select(studies.c.id), studies)).scalars().all()
        hint = did_you_mean(nearest_id(prefix, every), "`pitboss study list` lists them")
        raise UserError(f"there is no study {prefix!r}", hint)

    def document(self, study_id: str) -> dict[str, Any]:
        """The definition of a study."""
        key = {"id": study_id} if self._owner is None else {"id": study_id, "owner": self._owner}
        with self._database.read() as connection:
            row = rows.fetch(connection, studies, key)
        if row is None:
            raise UserError(f"there is no study {study_id!r}", "`pitboss study list` lists them")
        rows.require_intact(studies, row)
        return codec.loads(row["document"])

    def list(self, status: Status | None = None, **filters: Unpack[RunFilter]) -> Sequence[StudyLine]:
        """All studies, the newest first. With a status or conditions, only the runs that fulfil them are counted."""
        definitions = self._bounded(rows.raw(studies), studies)
        counts_query = (
            select(
                runs.c.study_id, runs.c.status, func.count(), func.min(runs.c.created_at), func.max(runs.c.created_at)
            )
            .where(runs.c.study_id.is_not(None))
            .group_by(runs.c.study_id, runs.c.status)
        )
        counts_query = filtered(
            counts_query if status is None else counts_query.where(runs.c.status == status), filters
        )
        with self._database.read() as connection:
            stored = rows.fetch_all(connection, definitions)
            groups: Any = connection.execute(self._bounded(counts_query, runs)).all()
        counts: dict[str, dict[Status, int]] = {}
        first: dict[str, Instant] = {}
        last: dict[str, Instant] = {}
        for study_id, run_status, count, oldest, newest in groups:
            counts.setdefault(study_id, {})[run_status] = int(count)
            first[study_id] = min(oldest, first.get(study_id, oldest))
            last[study_id] = max(newest, last.get(study_id, newest))
        lines: list[StudyLine] = []
        for row in stored:
            rows.require_intact(studies, row)
            study_id = row["id"]
            document = codec.loads(row["document"])
            lines.append(
                StudyLine(study_id, document, counts.get(study_id, {}), first.get(study_id), last.get(study_id))
            )
        return sorted(lines, key=lambda line: (-(line.last_at or 0), line.id))

    def progress(self, study_id: str) -> Sequence[RunLine]:
        """The progress of the runs of a study. Cheap, for polling: no seal is verified."""
        query = select(runs.c.id, runs.c.status, runs.c.progress).where(runs.c.study_id == study_id).order_by(runs.c.id)
        with self._database.read() as connection:
            lines: Any = connection.execute(self._bounded(query, runs))
            return [RunLine(run_id, status, float(progress)) for run_id, status, progress in lines]

    def _bounded(self, query: Any, table: Table) -> Any:
        """The query for the rows of the owner only."""
        return query if self._owner is None else query.where(table.c.owner == self._owner)


def study_runs(
    run_store: Runs,
    study_id: str,
    status: Status | None = None,
    model: str | None = None,
    point: Mapping[str, str] | None = None,
) -> list[StudyRun]:
    """The runs of a study in the order of its trials, filtered by all given conditions. Damaged rows are left out."""
    selected = [_study_run(row) for row in _intact_rows(run_store, study_id, status, model, point)]
    return _in_order([(run.mark, run) for run in selected], point)


def full_runs(
    run_store: Runs,
    study_id: str,
    status: Status | None = None,
    model: str | None = None,
    point: Mapping[str, str] | None = None,
) -> list[Run]:
    """The same as full runs."""
    selected = [read_run(row) for row in _intact_rows(run_store, study_id, status, model, point)]
    return _in_order([(run.params.get(MARK) or {}, run) for run in selected], point)


def metrics_of_skill(run_store: Runs, skill: str, besides: str) -> list[Mapping[str, Any]]:
    """The metrics of all finished runs of a skill outside this study."""
    _, finished = run_store.raw_rows(MAX_RUNS, "complete", skill=skill, besides=besides)
    return [codec.loads(row["metrics"]) for row in finished if row["metrics"] is not None and rows.intact(runs, row)]


def _in_order(marked: Sequence[tuple[Mapping[str, Any], T]], point: Mapping[str, str] | None) -> list[T]:
    values = (point or {}).items()
    selected = [(mark.get("trial", 0), mark.get("repeat", 0), run) for mark, run in marked if values <= _point(mark)]
    return [run for _, _, run in sorted(selected, key=lambda item: item[:2])]


def _point(mark: Mapping[str, Any]) -> Any:
    return mark.get("point", {}).items()


def _intact_rows(
    run_store: Runs, study_id: str, status: Status | None, model: str | None, point: Mapping[str, str] | None
) -> list[dict[str, Any]]:
    """Undamaged rows. With a point, only those whose parameters contain its values: parameters are canonical bytes, so no
    other row can match, and most need not be decoded.
    """
    more: dict[str, Any] = {} if model is None else {"model": model}
    _, stored = run_store.raw_rows(MAX_RUNS, status, study_id=study_id, **more)
    fragments = [codec.dumps({name: value})[1:-1] for name, value in (point or {}).items()]
    matching = [row for row in stored if all(fragment in row["params"] for fragment in fragments)]
    return [row for row in matching if rows.intact(runs, row)]


def _study_run(row: Mapping[str, Any]) -> StudyRun:
    try:
        params = codec.loads(row["params"])
        return StudyRun(
            row["id"],
            row["status"],
            row["model"],
            params.get(MARK) or {},
            params["from_at"],
            params["to_at"],
            row["metrics"],
            row["digest"],
            row["error_text"],
            row["report"],
            Decimal(row["cost_usd"]),
            Decimal(row["saved_usd"]),
            row["wall_s"],
        )
    except (ValueError, TypeError, KeyError, ArithmeticError):
        raise ReplayMismatch(f"the row of run {row['id']} was changed after it was written") from None
