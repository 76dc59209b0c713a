"""One workspace folder with everything a person has here: database, lake, reports."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pitboss.bootstrap.machine import SystemClock, environment, new_id
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.data.object_storage import SECRET, VARIABLES, Address, read_address
from pitboss.store.database import Database, open_database
from pitboss.store.runs import Runs
from pitboss.store.skills import Skills

if TYPE_CHECKING:  # the libraries for data take long to load, and many a command never looks at any
    from pitboss.data.lake import Lake
    from pitboss.data.remote_lake import RemoteLake

CACHE = "lake-cache"
PUSH = "lake"
"""What a run calls the push that it reads, where its data is in object storage."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """An open workspace. Close it (or use it as a context manager) to release the database."""

    settings: Settings
    home: Path
    find_lake: "Callable[[], Lake]"
    database: Database
    runs: Runs
    skills: Skills
    now: Callable[[], Instant]

    @property
    def lake(self) -> "Lake":
        """The data, the same at every call: of a lake in object storage that is one push."""
        return self.find_lake()

    def report_path(self, run_id: str) -> Path:
        """Where a run's report goes unless another place is named."""
        return self.home / "reports" / f"{run_id}.html"

    def pin(self) -> dict[str, str]:
        """Which push a run that begins now reads, to be kept with it; empty where the lake is a folder."""
        return {PUSH: cast("RemoteLake", self.lake).pin} if self.settings.lake else {}

    def lake_of(self, params: Mapping[str, Any]) -> "Lake":
        """The lake for a run with these parameters: the push that it began with, whatever was pushed since."""
        if not self.settings.lake:
            return self.lake
        pin = params.get(PUSH)
        return lake_of(self.settings, pin if isinstance(pin, str) else "")

    def close(self) -> None:
        """Release the database."""
        self.database.close()

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def open_lake(settings: Settings, writing: bool = False) -> "Lake":
    """The lake alone, for commands that need no database. `writing` refuses one that is only read before any work."""
    if writing and settings.lake:
        from pitboss.data.remote_lake import read_only_error

        raise read_only_error(str(read_address(settings.lake)))
    _folder(settings.home)
    return lake_of(settings)


def lake_of(settings: Settings, pin: str = "") -> "Lake":
    """The lake that settings name; nothing is made. `pin`: one push of it, where it is in object storage."""
    if not settings.lake:
        from pitboss.data.lake import Lake

        return Lake(settings.home / "lake")
    return _pinned(settings.lake, settings.home, pin) if pin else _remote(settings.lake, settings.home)


def _remote(lake: str, home: Path, pin: str = "") -> "RemoteLake":
    from pitboss.data.remote_lake import open_remote

    address = read_address(lake)
    return open_remote(address, lambda: lake_variables(address), home / CACHE, pin)


@lru_cache(maxsize=8)
def _pinned(lake: str, home: Path, pin: str) -> "RemoteLake":
    """One push never changes: the runs of a study share what is known of it."""
    return _remote(lake, home, pin)


def lake_variables(address: Address) -> dict[str, str]:
    """The variables that object storage at an address is opened with, as far as they are set. No text shows their secrets."""
    found = {name: value for name in VARIABLES[address.scheme] if (value := environment(name))}
    REDACTOR.add(*(value for name, value in found.items() if SECRET.search(name)))
    return found


def open_workspace(settings: Settings) -> Workspace:
    """Open a workspace, making its folder if needed."""
    home = _folder(settings.home)
    database = open_database(settings.database_url or home / "pitboss.db", settings.sqlite_processes)
    return _workspace(settings, home, database)


def look_into(settings: Settings) -> Workspace:
    """A workspace to look at: nothing of it is made, and its database refuses to be written."""
    home = settings.home
    database = open_database(settings.database_url or home / "pitboss.db", settings.sqlite_processes, read_only=True)
    return _workspace(settings, home, database)


def _workspace(settings: Settings, home: Path, database: Database) -> Workspace:
    now = SystemClock().now
    found = cache(lambda: lake_of(settings))
    return Workspace(settings, home, found, database, Runs(database, now, new_id), Skills(database, now, new_id), now)


def _folder(home: Path) -> Path:
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot use {home} as a workspace: {error.strerror}", "name another with --home") from None
    return home
