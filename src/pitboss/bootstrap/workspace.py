"""One workspace folder with everything a person has here: database, lake, reports."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pitboss.bootstrap.machine import SystemClock, new_id
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.data.lake import Lake
from pitboss.store.database import Database, open_database
from pitboss.store.runs import Runs
from pitboss.store.skills import Skills


@dataclass(frozen=True, slots=True)
class Workspace:
    """An open workspace. Close it (or use it as a context manager) to release the database."""

    settings: Settings
    home: Path
    lake: Lake
    database: Database
    runs: Runs
    skills: Skills
    now: Callable[[], Instant]

    def report_path(self, run_id: str) -> Path:
        """Where a run's report goes unless another place is named."""
        return self.home / "reports" / f"{run_id}.html"

    def close(self) -> None:
        """Release the database."""
        self.database.close()

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def open_lake(settings: Settings) -> Lake:
    """The lake alone, for commands that need no database."""
    return Lake(_folder(settings.home) / "lake")


def open_workspace(settings: Settings) -> Workspace:
    """Open a workspace, making its folder if needed."""
    home = _folder(settings.home)
    now = SystemClock().now
    database = open_database(settings.database_url or home / "pitboss.db", settings.sqlite_processes)
    return Workspace(
        settings, home, Lake(home / "lake"), database, Runs(database, now, new_id), Skills(database, now, new_id), now
    )


def look_into(settings: Settings) -> Workspace:
    """A workspace to look at: nothing of it is made, and its database refuses to be written."""
    home, now = settings.home, SystemClock().now
    database = open_database(settings.database_url or home / "pitboss.db", settings.sqlite_processes, looking=True)
    return Workspace(
        settings, home, Lake(home / "lake"), database, Runs(database, now, new_id), Skills(database, now, new_id), now
    )


def _folder(home: Path) -> Path:
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot use {home} as a workspace: {error.strerror}", "name another with --home") from None
    return home
