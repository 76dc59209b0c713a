"""What the tools of pitboss's own server work on: one workspace, one folder of skills, and whether anything may be changed.

A workspace is opened for each call and closed after it, as a command would, so that other processes are never kept out.
Files are read from the working directory and the workspace only, wherever a link may lead.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace, lake_of, look_into, open_workspace
from pitboss.core.errors import ToolFailed, UserError
from pitboss.data.lake import Lake
from pitboss.runs.documents import read_document, read_file, read_stored
from pitboss.server.tool_server import Door

SUFFIXES = (".yaml", ".yml", ".json")
MOST_FILES, MOST_LOOKED_AT, DEEPEST = 200, 2_000, 3
LEFT_OUT = frozenset({"node_modules", "venv", "__pycache__", "site-packages"})

_ELSEWHERE = re.compile(r"""(?<![\w.:/\\-])~?/[^\s"'`<>:;,()\\]+""")
"""A path that begins at the root, or at somebody's home."""


@dataclass(frozen=True, slots=True)
class ServerWorkspace:
    """One workspace to look at or to work in."""

    settings: Settings
    folder: Path
    writes: bool = False

    @property
    def home(self) -> Path:
        """The workspace folder."""
        return self.settings.home

    @property
    def lake(self) -> Lake:
        """The data. Not made if it is not there."""
        return lake_of(self.settings)

    def workspace(self) -> Workspace:
        """The open workspace, closed to writing unless writing was allowed."""
        return open_workspace(self.settings) if self.writes else look_into(self.settings)

    def has_database(self) -> bool:
        """Whether anything was ever stored here."""
        return bool(self.settings.database_url) or (self.home / "pitboss.db").is_file()

    def file(self, given: str) -> Path:
        """A skill file of the working directory or the workspace."""
        here, home = self.folder.resolve(), self.home.resolve()
        try:
            found = (here / given).resolve()
            there = found.is_file()
        except (OSError, ValueError, RuntimeError):
            raise UserError("that is not a path", "name a file of the working directory") from None
        if not found.is_relative_to(here) and not found.is_relative_to(home):
            raise UserError(
                "only files of the working directory and the workspace can be read", "name a file without leaving it"
            )
        # The workspace has JSON of its own, and some of it is nobody's business.
        if found.suffix not in SUFFIXES or (found.is_relative_to(home) and found.suffix == ".json"):
            raise UserError("a skill is a .yaml or .json file", "list_skills names those that are here")
        if not there:
            raise UserError(f"{given}: no such file", "list_skills names those that are here")
        return found

    def skill(self, arguments: Mapping[str, Any], overrides: tuple[str, ...] = ()) -> dict[str, Any]:
        """The whole plain document that `skill` or `text` names."""
        given, text = one_of(arguments)
        if text is not None:
            return read_document("text", text, suffix_of(text), overrides, self.settings)
        if is_file(given):
            return read_file(self.file(given), overrides, self.settings)
        name, _, version = given.partition("@")
        if version and not (version.isdecimal() and len(version) < 10):
            raise UserError(f"{given!r} names no version", f"a whole number, as in {name}@2")
        with self.workspace() as workspace:
            return read_stored(workspace, name, int(version) if version else None, overrides)

    def files(self) -> Iterator[Path]:
        """Files of the working directory that may be skills, by name, as far as is reasonable."""
        here, home, count = self.folder.resolve(), self.home.resolve(), 0
        folders = [(here, 0)]
        while folders:
            folder, depth = folders.pop(0)
            try:
                entries = sorted(folder.iterdir())
            except OSError:
                continue
            for entry in entries:
                count += 1
                if count > MOST_LOOKED_AT:
                    return
                if entry.is_symlink() or entry.name.startswith(".") or entry.name in LEFT_OUT or entry == home:
                    continue
                if entry.is_dir():
                    if depth < DEEPEST:
                        folders.append((entry, depth + 1))
                elif entry.suffix in SUFFIXES and entry.is_file():
                    yield entry

    def door(self) -> Door:
        """Keys leave out of everything; of paths, complaints show only what lies here."""
        return Door(REDACTOR.redact, self._hide)

    def _hide(self, text: str) -> str:
        for folder, name in ((self.home, self.home.name), (self.folder, "")):
            for place in dict.fromkeys((str(folder.resolve()), str(folder.absolute()))):
                if len(place) > 1:
                    text = text.replace(f"{place}/", f"{name}/" if name else "").replace(place, name or ".")
        return _ELSEWHERE.sub("[a path]", text)


def one_of(arguments: Mapping[str, Any]) -> tuple[str, str | None]:
    """Exactly one of `skill` and `text`."""
    given, text = arguments.get("skill", ""), arguments.get("text")
    if bool(given) == (text is not None):
        raise ToolFailed("give either skill (a file or a saved name) or text (the document itself)")
    return given, text


def is_file(given: str) -> bool:
    """Whether a skill is named by its file; a saved name has no such end."""
    return given.endswith(SUFFIXES)


def suffix_of(text: str) -> str:
    """YAML unless it begins like JSON."""
    return ".json" if text.lstrip().startswith("{") else ".yaml"


def overrides_of(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """`set`, one change a line."""
    return tuple(line.strip() for line in arguments.get("set", "").splitlines() if line.strip())
