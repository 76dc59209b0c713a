"""Studies: what was asked for, kept once for all their runs, and how far those are. The runs themselves are `runs.py`.

A study is named by what it asks for, so asking for the same again finds it. Its document lies among the facts; which runs
belong to it is said by the runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from pitboss.core import codec
from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.core.instant import Instant
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.lifecycle import Status
from pitboss.store.run import Run, read_run
from pitboss.store.runs import Runs
from pitboss.store.schema import facts, runs

T = TypeVar("T")
PREFIX = "study/"
MARK = "study"
"""Where the parameters of a run say which trial of its study it is."""
MOST_RUNS = 1_000_000


@dataclass(frozen=True, slots=True)
class StudyLine:
    """A study in a list: its document, how many of its runs are where, when the first and the last were made."""

    id: str
    document: Mapping[str, Any]
    counts: Mapping[Status, int]
    first_at: Instant | None
    last_at: Instant | None


@dataclass(frozen=True, slots=True)
class RunLine:
    """How far one run of a study is."""

    id: str
    status: Status
    progress: float


@dataclass(frozen=True, slots=True)
class StudyRun:
    """One run of a study as far as tables and comparisons need it: everything but what was asked for and the baselines.

    Reading a whole run takes several times as long, and a study has thousands. What it came to stays as it is stored until
    somebody asks: a thousand documents that are held at once cost more in housekeeping than in reading.
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
        """What it came to, read anew each time."""
        return None if self.body is None else codec.loads(self.body)


class AlreadyThere(UserError):
    """Somebody else has made the same runs at the same moment."""


@contextmanager
def once() -> Iterator[None]:
    """For adding runs whose ids follow from what they are: whoever comes second hears of it as `AlreadyThere`."""
    try:
        yield
    except IntegrityError as error:
        raise AlreadyThere("these runs were made by somebody else meanwhile", "give the command again") from error


class Studies:
    """The studies in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, study_id: str, document: Mapping[str, Any]) -> None:
        """Keep what a study asks for, unless it is there already: its name says that it is the same."""
        with self._database.write() as connection:
            self._database.alone(connection, f"{PREFIX}{study_id}")
            if rows.fetch(connection, facts, {"key": f"{PREFIX}{study_id}"}, lock=True) is None:
                rows.add(
                    connection, facts, {"key": f"{PREFIX}{study_id}", "value": codec.dumps(dict(document)).decode()}
                )

    def find(self, prefix: str) -> str:
        """The whole id of the one study whose id starts like this."""
        query = select(facts.c.key).where(facts.c.key.startswith(f"{PREFIX}{prefix}", autoescape=True)).limit(6)
        with self._database.read() as connection:
            found = [key.removeprefix(PREFIX) for key in connection.execute(query).scalars()]
        if prefix in found:
            return prefix
        if len(found) == 1 and prefix:
            return found[0]
        if found and prefix:
            raise UserError(f"more than one study starts with {prefix!r}: {', '.join(found)}", "give more of the id")
        raise UserError(f"there is no study {prefix!r}", "`pitboss study list` names them")

    def document(self, study_id: str) -> dict[str, Any]:
        """What a study asks for."""
        with self._database.read() as connection:
            row = rows.fetch(connection, facts, {"key": f"{PREFIX}{study_id}"})
        if row is None:
            raise UserError(f"there is no study {study_id!r}", "`pitboss study list` names them")
        rows.require_intact(facts, row)
        return codec.loads(row["value"])

    def list(self) -> Sequence[StudyLine]:
        """All studies, the newest first."""
        kept = rows.raw(facts).where(facts.c.key.startswith(PREFIX, autoescape=True))
        counted = (
            select(
                runs.c.study_id, runs.c.status, func.count(), func.min(runs.c.created_at), func.max(runs.c.created_at)
            )
            .where(runs.c.study_id.is_not(None))
            .group_by(runs.c.study_id, runs.c.status)
        )
        with self._database.read() as connection:
            found = rows.fetch_all(connection, kept)
            groups: Any = connection.execute(counted).all()
        counts: dict[str, dict[Status, int]] = {}
        first: dict[str, Instant] = {}
        last: dict[str, Instant] = {}
        for study_id, status, count, begun, ended in groups:
            counts.setdefault(study_id, {})[status] = int(count)
            first[study_id] = min(begun, first.get(study_id, begun))
            last[study_id] = max(ended, last.get(study_id, ended))
        lines: list[StudyLine] = []
        for row in found:
            rows.require_intact(facts, row)
            study_id = row["key"].removeprefix(PREFIX)
            document = codec.loads(row["value"])
            lines.append(
                StudyLine(study_id, document, counts.get(study_id, {}), first.get(study_id), last.get(study_id))
            )
        return sorted(lines, key=lambda line: (-(line.last_at or 0), line.id))

    def progress(self, study_id: str) -> Sequence[RunLine]:
        """How far the runs of a study are. Cheap: made to be asked again and again, so nothing of them is verified."""
        query = select(runs.c.id, runs.c.status, runs.c.progress).where(runs.c.study_id == study_id).order_by(runs.c.id)
        with self._database.read() as connection:
            found: Any = connection.execute(query)
            return [RunLine(run_id, status, float(done)) for run_id, status, done in found]


def parts(
    stored: Runs,
    study_id: str,
    status: Status | None = None,
    model: str | None = None,
    point: Mapping[str, str] | None = None,
) -> list[StudyRun]:
    """The runs of a study in the order of its trials, those that fit all that is given. Damaged rows are left out."""
    found = [_part(row) for row in _sound(stored, study_id, status, model, point)]
    return _in_order([(part.mark, part) for part in found], point)


def whole_runs(
    stored: Runs,
    study_id: str,
    status: Status | None = None,
    model: str | None = None,
    point: Mapping[str, str] | None = None,
) -> list[Run]:
    """The same with everything that is known of each run."""
    found = [read_run(row) for row in _sound(stored, study_id, status, model, point)]
    return _in_order([(run.params.get(MARK) or {}, run) for run in found], point)


def metrics_of_skill(stored: Runs, skill: str, besides: str) -> list[Mapping[str, Any]]:
    """What all finished runs of a skill came to, in other studies than this one or in none."""
    _, found = stored.stored(MOST_RUNS, "complete", skill=skill, besides=besides)
    return [codec.loads(row["metrics"]) for row in found if row["metrics"] is not None and rows.intact(runs, row)]


def _in_order(found: Sequence[tuple[Mapping[str, Any], T]], point: Mapping[str, str] | None) -> list[T]:
    wanted = (point or {}).items()
    chosen = [(mark.get("trial", 0), mark.get("repeat", 0), one) for mark, one in found if wanted <= _at(mark)]
    return [one for _, _, one in sorted(chosen, key=lambda one: one[:2])]


def _at(mark: Mapping[str, Any]) -> Any:
    return mark.get("point", {}).items()


def _sound(
    stored: Runs, study_id: str, status: Status | None, model: str | None, point: Mapping[str, str] | None
) -> list[dict[str, Any]]:
    """Rows that are what was written. Where a point is asked for, only those in whose parameters its values are written
    down somewhere: parameters are canonical bytes, so no other row can fit, and most need not be read at all."""
    more: dict[str, Any] = {} if model is None else {"model": model}
    _, found = stored.stored(MOST_RUNS, status, study_id=study_id, **more)
    written = [codec.dumps({name: value})[1:-1] for name, value in (point or {}).items()]
    fitting = [row for row in found if all(words in row["params"] for words in written)]
    return [row for row in fitting if rows.intact(runs, row)]


def _part(row: Mapping[str, Any]) -> StudyRun:
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
