"""The heartbeat of the watchdog: one row of `facts` that says when it last looked, at which deployments, and what it cannot do."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from pitboss.core import codec
from pitboss.core.instant import Instant
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.schema import facts

KEY = "watchdog/beat"


@dataclass(frozen=True, slots=True)
class WatchdogBeat:
    """The newest heartbeat. `problems` says by deployment why the watchdog could not act for it."""

    name: str
    watched: tuple[str, ...]
    silent_ms: int
    flatten: bool = False
    problems: Mapping[str, str] = field(default_factory=dict[str, str])
    at: Instant = 0
    """Set by the database when it is written."""


def write_beat(database: Database, beat: WatchdogBeat) -> None:
    """Store a heartbeat in place of the one before."""
    with database.write() as connection:
        value = codec.dumps({**asdict(beat), "at": database.now(connection)}).decode()
        row = rows.fetch(connection, facts, {"key": KEY}, lock=True)
        if row is None:
            rows.add(connection, facts, {"key": KEY, "value": value})
        else:
            rows.change(connection, facts, row, {"value": value})


def read_beat(database: Database) -> tuple[WatchdogBeat | None, int]:
    """The newest heartbeat, None if there never was one, and its age in milliseconds."""
    with database.read() as connection:
        row, now = rows.fetch(connection, facts, {"key": KEY}), database.now(connection)
    if row is None:
        return None, 0
    rows.require_intact(facts, row)
    content = codec.loads(row["value"])
    beat = WatchdogBeat(**{**content, "watched": tuple(content["watched"])})
    return beat, now - beat.at


def watch_problem(database: Database, deployment_id: str, most_age_ms: int) -> str:
    """Why no working watchdog looks after a deployment; empty if one does."""
    beat, age_ms = read_beat(database)
    if beat is None:
        return "there is no watchdog"
    if not -most_age_ms <= age_ms <= most_age_ms:
        return f"the watchdog wrote its last heartbeat {age_ms // 1_000} s ago"
    if deployment_id not in beat.watched:
        return "the watchdog does not watch this deployment"
    problem = beat.problems.get(deployment_id, "")
    return f"the watchdog could not act: {problem}" if problem else ""
