"""The heartbeat of the watchdog: one row of `facts` that says when it last looked, at which deployments, and what it cannot do."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from pitboss.core.instant import Instant
from pitboss.store.database import Database
from pitboss.store.fact import read_fact, write_fact

KEY = "watchdog/beat"


@dataclass(frozen=True, slots=True)
class WatchdogBeat:
    """The newest heartbeat. `problems` says by deployment why the watchdog could not act for it."""

    name: str
    watched: tuple[str, ...]
    silent_ms: int
    flatten: bool = False
    problems: Mapping[str, str] = field(default_factory=dict[str, str])
    build: str = ""
    at: Instant = 0
    """Set by the database when it is written."""


def write_beat(database: Database, beat: WatchdogBeat) -> None:
    """Store a heartbeat in place of the one before."""
    with database.write() as connection:
        write_fact(connection, KEY, {**asdict(beat), "at": database.now(connection)})


def read_beat(database: Database) -> tuple[WatchdogBeat | None, int]:
    """The newest heartbeat, None if there never was one, and its age in milliseconds."""
    with database.read() as connection:
        content, now = read_fact(connection, KEY), database.now(connection)
    if content is None:
        return None, 0
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
