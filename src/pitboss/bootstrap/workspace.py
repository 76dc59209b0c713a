"""A workspace folder: its database, lake and reports."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, cast

from pitboss.bootstrap.machine import SystemClock, environment, new_id
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.data.object_storage import SECRET, VARIABLES, Address, read_address
from pitboss.store.approval_requests import ApprovalRequests
from pitboss.store.budgets import BudgetDay, Budgets
from pitboss.store.database import Database, open_database
from pitboss.store.deployments import Deployments
from pitboss.store.runs import Runs
from pitboss.store.schema import LOCAL
from pitboss.store.skills import Skills
from pitboss.store.spend import FAR_AT, Spend, spend
from pitboss.store.studies import Studies

if TYPE_CHECKING:  # the data libraries are slow to import, and many commands need none
    from pitboss.data.lake import Lake
    from pitboss.data.remote_lake import RemoteLake

CACHE = "lake-cache"
PUSH = "lake"
"""The parameter under which a run stores the push that it reads, if its lake is in object storage."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """An open workspace. Close it (or use it as a context manager) to release the database."""

    settings: Settings
    home: Path
    find_lake: "Callable[[], Lake]"
    database: Database
    runs: Runs
    skills: Skills
    studies: Studies
    approval_requests: ApprovalRequests
    deployments: Deployments
    now: Callable[[], Instant]
    on_close: Callable[[], None] = lambda: None
    prepared: dict[str, Any] = field(default_factory=dict[str, Any])
    """By its id, the prepared data of the run that has just ended here; its report takes it instead of loading it again."""
    only: str | None = None
    """The owner whose rows alone exist for it; None: the rows of all owners, as the command line sees them."""

    @property
    def owner(self) -> str:
        """The owner of the rows that are stored through it."""
        return self.only or LOCAL

    @property
    def lake(self) -> "Lake":
        """The lake, the same object at every call; a lake in object storage stays at one push."""
        return self.find_lake()

    def report_path(self, run_id: str) -> Path:
        """The default path of a run's report."""
        return self.home / "reports" / f"{run_id}.html"

    @property
    def run_cache(self) -> Path:
        """The folder of files that are computed from complete runs and can be computed again."""
        return self.home / "cache" / "runs"

    def remove_files(self, run_id: str) -> None:
        """Delete the report of a deleted run and what was computed from it."""
        for path in (self.report_path(run_id), *self.run_cache.glob(f"{run_id}-*")):
            path.unlink(missing_ok=True)

    def owned_by(self, owner: str) -> "Workspace":
        """The same workspace with every query bounded to the rows of one owner. It shares the database: do not close it."""
        return replace(
            self,
            runs=self.runs.owned_by(owner),
            skills=self.skills.owned_by(owner),
            studies=self.studies.owned_by(owner),
            approval_requests=self.approval_requests.owned_by(owner),
            deployments=self.deployments.owned_by(owner),
            only=owner,
        )

    def spend(self, from_at: Instant = 0, to_at: Instant = FAR_AT) -> list[Spend]:
        """The spending of the days that begin in [from_at, to_at)."""
        return spend(self.database, from_at, to_at, self.only)

    def budget(self, day_at: Instant | None = None) -> BudgetDay:
        """What the owner has reserved and spent on a day; today if none is given."""
        return Budgets(self.database).get(self.owner, day_at)

    def pin(self) -> dict[str, str]:
        """The push that a run starting now reads, to be stored with it; empty if the lake is a folder."""
        return {PUSH: cast("RemoteLake", self.lake).pin} if self.settings.lake else {}

    def lake_of(self, params: Mapping[str, Any]) -> "Lake":
        """The lake for a run with these parameters: at the push that it began with, whatever was pushed since."""
        if not self.settings.lake:
            return self.lake
        pin = params.get(PUSH)
        return lake_of(self.settings, pin if isinstance(pin, str) else "")

    def close(self) -> None:
        """Release the database."""
        self.database.close()
        self.on_close()

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def open_lake(settings: Settings, writing: bool = False) -> "Lake":
    """Open the lake alone, for commands that need no database. `writing` refuses a read-only lake before any work."""
    if writing and settings.lake:
        from pitboss.data.remote_lake import read_only_error

        raise read_only_error(str(read_address(settings.lake)))
    if writing:
        _folder(settings.home)
    return lake_of(settings)


def lake_of(settings: Settings, pin: str = "") -> "Lake":
    """The lake that the settings name; nothing is created. `pin` selects one push of a lake in object storage."""
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
    """The lake at one push, cached: a push never changes, so the runs of a study share its metadata."""
    return _remote(lake, home, pin)


def lake_variables(address: Address) -> dict[str, str]:
    """The environment variables for object storage at an address, as far as they are set.

    Their secrets are redacted.
    """
    variables = {name: value for name in VARIABLES[address.scheme] if (value := environment(name))}
    REDACTOR.add(*(value for name, value in variables.items() if SECRET.search(name)))
    return variables


def open_workspace(settings: Settings) -> Workspace:
    """Open a workspace, creating its folder if needed."""
    home = _folder(settings.home)
    database = open_database(settings.database_url or home / "pitboss.db", settings.sqlite_processes)
    return _workspace(settings, home, database)


def has_database(settings: Settings) -> bool:
    """Whether the workspace has a database already."""
    return bool(settings.database_url) or (settings.home / "pitboss.db").is_file()


def open_existing(settings: Settings) -> Workspace:
    """Open a workspace to look at what it holds. One that does not exist is an empty one; it is not created."""
    if has_database(settings):
        return open_workspace(settings)
    folder = mkdtemp(prefix="pitboss-")
    database = open_database(Path(folder) / "pitboss.db")
    database.location = str(settings.home / "pitboss.db")
    return replace(_workspace(settings, settings.home, database), on_close=lambda: rmtree(folder, ignore_errors=True))


def look_into(settings: Settings) -> Workspace:
    """Open a workspace for reading: nothing is created, and its database refuses writes."""
    home = settings.home
    database = open_database(settings.database_url or home / "pitboss.db", settings.sqlite_processes, read_only=True)
    return _workspace(settings, home, database)


def _workspace(settings: Settings, home: Path, database: Database) -> Workspace:
    now = SystemClock().now
    lake = cache(lambda: lake_of(settings))
    runs, skills = Runs(database, now, new_id), Skills(database, now, new_id)
    approval_requests, deployments = ApprovalRequests(database, now), Deployments(database, now, new_id)
    return Workspace(
        settings, home, lake, database, runs, skills, Studies(database), approval_requests, deployments, now
    )


def _folder(home: Path) -> Path:
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot use {home} as a workspace: {error.strerror}", "name another with --home") from None
    return home
