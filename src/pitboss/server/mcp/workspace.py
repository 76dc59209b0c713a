"""What the tools of pitboss's own MCP server work on: a workspace, a folder of skills, and whether writing is allowed.

The workspace is opened for each call and closed after it, as a command does, so that other processes are not locked out.
Files are read from the working directory and the workspace only; links are resolved first.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace, has_database, lake_of, look_into, open_workspace
from pitboss.core.errors import ToolFailed, UserError
from pitboss.core.instant import Instant
from pitboss.data.lake import Lake
from pitboss.runs.data_end import end_of_data
from pitboss.runs.documents import read_document, read_file, read_stored, saved_name, suffix_of
from pitboss.runs.skill_reference import override_lines
from pitboss.server.tool_server import OutputFilter

SUFFIXES = (".yaml", ".yml", ".json")
MAX_FILES, MAX_ENTRIES, MAX_DEPTH = 200, 2_000, 3
SKIPPED_FOLDERS = frozenset({"node_modules", "venv", "__pycache__", "site-packages"})

_ABSOLUTE_PATH = re.compile(r"""(?<![\w.:/\\-])~?/[^\s"'`<>:;,()\\]+""")
"""A path that begins at the root or at a home directory."""


@dataclass(frozen=True, slots=True)
class ServerWorkspace:
    """One workspace, read only unless `writes`."""

    settings: Settings
    folder: Path
    writes: bool = False

    @property
    def home(self) -> Path:
        """The workspace folder."""
        return self.settings.home

    @property
    def lake(self) -> Lake:
        """The market data. Not created if it does not exist."""
        return lake_of(self.settings)

    def workspace(self) -> Workspace:
        """The open workspace, read only unless writing is allowed."""
        return open_workspace(self.settings) if self.writes else look_into(self.settings)

    def has_database(self) -> bool:
        """Whether the workspace has a database."""
        return has_database(self.settings)

    def file(self, name: str) -> Path:
        """A skill file of the working directory or the workspace."""
        folder, home = self.folder.resolve(), self.home.resolve()
        try:
            path = (folder / name).resolve()
            exists = path.is_file()
        except (OSError, ValueError, RuntimeError):
            raise UserError("that is not a path", "use a file of the working directory") from None
        if not path.is_relative_to(folder) and not path.is_relative_to(home):
            raise UserError(
                "only files of the working directory and the workspace can be read", "use a path inside one of them"
            )
        # The workspace has JSON files of its own, and some of them are private.
        if path.suffix not in SUFFIXES or (path.is_relative_to(home) and path.suffix == ".json"):
            raise UserError("a skill is a .yaml or .json file", "list_skills lists the available ones")
        if not exists:
            raise UserError(f"{name}: no such file", "list_skills lists the available ones")
        return path

    def skill(self, arguments: Mapping[str, Any], overrides: tuple[str, ...] = ()) -> dict[str, Any]:
        """The complete plain document of the argument `skill` or `text`."""
        skill, text = skill_or_text(arguments)
        if text is not None:
            return read_document("text", text, suffix_of(text), overrides, self.settings)
        if is_file(skill):
            return read_file(self.file(skill), overrides, self.settings)
        name, version = saved_name(skill)
        with self.workspace() as workspace:
            return read_stored(workspace, name, version, overrides)

    def end_of_data(self, plain: Mapping[str, Any], arguments: Mapping[str, Any]) -> Callable[[], Instant]:
        """Finds the end of the data of a skill, from which times such as `-30d` are counted back."""
        return lambda: end_of_data(plain, self.lake, self.settings, arguments.get("data_venue", ""))

    def files(self) -> Iterator[Path]:
        """Files of the working directory that may be skills, by name, within limits of depth and number."""
        home, count = self.home.resolve(), 0
        folders = [(self.folder.resolve(), 0)]
        while folders:
            folder, depth = folders.pop(0)
            try:
                entries = sorted(folder.iterdir())
            except OSError:
                continue
            for entry in entries:
                count += 1
                if count > MAX_ENTRIES:
                    return
                if entry.is_symlink() or entry.name.startswith(".") or entry.name in SKIPPED_FOLDERS or entry == home:
                    continue
                if entry.is_dir():
                    if depth < MAX_DEPTH:
                        folders.append((entry, depth + 1))
                elif entry.suffix in SUFFIXES and entry.is_file():
                    yield entry

    def output_filter(self) -> OutputFilter:
        """Redacts keys from all output, and paths outside the workspace and the folder from errors."""
        return OutputFilter(REDACTOR.redact, self._hide)

    def _hide(self, text: str) -> str:
        for folder, name in ((self.home, self.home.name), (self.folder, "")):
            for path in dict.fromkeys((str(folder.resolve()), str(folder.absolute()))):
                if len(path) > 1:
                    text = text.replace(f"{path}/", f"{name}/" if name else "").replace(path, name or ".")
        return _ABSOLUTE_PATH.sub("[a path]", text)


def skill_or_text(arguments: Mapping[str, Any]) -> tuple[str, str | None]:
    """The arguments `skill` and `text`, of which exactly one must be given."""
    skill, text = arguments.get("skill", ""), arguments.get("text")
    if bool(skill) == (text is not None):
        raise ToolFailed("give either skill (a file or a saved name) or text (the document itself)")
    return skill, text


def is_file(skill: str) -> bool:
    """Whether a skill is named by its file; a saved name has no suffix."""
    return skill.endswith(SUFFIXES)


def overrides_of(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The changes of the argument `set`, one per line."""
    return override_lines(arguments.get("set", ""))
