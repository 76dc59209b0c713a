"""Where a command works: the workspace folder and the database, as given on the command line."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from pitboss.bootstrap.settings import Settings
    from pitboss.bootstrap.workspace import Workspace
    from pitboss.data.lake import Lake


@dataclass(frozen=True, slots=True)
class WorkspaceOptions:
    """The two options that every command takes, before or after its name. None: settings decide."""

    home: Path | None = None
    db: str | None = None

    def settings(self) -> "Settings":
        """The settings that hold here."""
        from pitboss.bootstrap.settings import load_settings

        return load_settings(self.home, self.db)

    def workspace(self) -> "Workspace":
        """The open workspace; close it, or use it in a `with`."""
        from pitboss.bootstrap.logs import start_logs
        from pitboss.bootstrap.workspace import open_workspace

        settings = self.settings()
        start_logs(settings.log_level, settings.log_file)
        return open_workspace(settings)

    def lake(self, writing: bool = False) -> "Lake":
        """The data alone; for `writing` it must be a folder of this machine."""
        from pitboss.bootstrap.workspace import open_lake

        return open_lake(self.settings(), writing)

    def typed(self, command: str) -> str:
        """What to type for a command that is to work in the same place."""
        words = ["pitboss", command]
        if self.home is not None:
            words += ["--home", shlex.quote(str(self.home))]
        if self.db is not None:
            words += ["--db", shlex.quote(_unsaid(self.db))]
        return " ".join(words)


def _unsaid(address: str) -> str:
    """A database's address as it may be shown: without the password."""
    return re.sub(r"(?<=://)([^/@:]*):[^@]*@", r"\1:…@", address)


Here = Annotated[WorkspaceOptions, Parameter(parse=False)]
"""A command's parameter that `main` fills in."""
