"""Skill documents as a person has them: in a file, as text, or stored under a name; checked against what is known here.

Reading and checking themselves are `skill.load`; this is where the names of tools, symbols and servers come from.
"""

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from pitboss.bootstrap.mcp_servers import allowed_tools
from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace, lake_of
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.skill.digest import normal, skill_digest
from pitboss.skill.document import to_plain
from pitboss.skill.load import (
    PREDICT,
    Names,
    PredictCheck,
    SkillCheck,
    check_plain,
    check_predict,
    check_text,
    load_predict,
    read_text,
    summary,
    venue_of,
)
from pitboss.skill.spelling import field_at, takes_list, takes_text
from pitboss.store.skills import StoredSkill
from pitboss.venues.perp.assembly import tool_names
from pitboss.venues.perp.assets import SHIPPED
from pitboss.venues.predict.skill import AnySkill


def check(
    text: str, suffix: str, settings: Settings, overrides: Sequence[str] = (), folder: Path | None = None
) -> SkillCheck | PredictCheck:
    """Everything that is wrong with a document of either venue, its symbols included; `folder` may hold its mandate."""
    if venue_of(text, suffix) == PREDICT:
        return check_predict(text, suffix, folder, overrides)
    return check_text(text, suffix, tool_names(), known_symbols(settings), allowed_tools(settings), overrides)


def read_file(file: Path, overrides: Sequence[str] = (), settings: Settings | None = None) -> dict[str, Any]:
    """A checked skill file as the whole plain document; with settings, its MCP servers are checked too."""
    return read_document(file.name, read_text(file), file.suffix, overrides, settings)


def read_stored(workspace: Workspace, name: str, version: int | None, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """A stored version of a skill as the whole plain document."""
    stored = workspace.skills.get(name, version)
    names = Names(tool_names(), None, allowed_tools(workspace.settings))
    found = check_plain(_numbers(codec.loads(stored.body)), names, overrides=overrides)
    if found.skill is None:
        raise summary(name, found.errors)
    return to_plain(found.skill)


def read_document(
    name: str, text: str, suffix: str, overrides: Sequence[str] = (), settings: Settings | None = None
) -> dict[str, Any]:
    """A checked text as the whole plain document, overrides applied. Raises one `UserError` that names every problem."""
    servers = None if settings is None else allowed_tools(settings)
    found = check_text(text, suffix, tool_names(), None, servers, overrides)
    if found.skill is None:
        raise summary(name, found.errors)
    return to_plain(found.skill)


def read_any(file: Path, overrides: Sequence[str] = (), settings: Settings | None = None) -> dict[str, Any]:
    """A checked skill file of whichever venue it names."""
    if venue_of(read_text(file), file.suffix) == PREDICT:
        return read_predict(file, overrides)
    return read_file(file, overrides, settings)


def read_predict(file: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """A checked skill file of the predict venue as the whole plain document, a mandate in a file read into it."""
    text = read_text(file)
    if venue_of(text, file.suffix) != PREDICT:
        raise UserError(
            f"{file.name} is a skill of the perp venue", "it says no `venue: predict`: use `pitboss backtest`"
        )
    return to_plain(load_predict(file, overrides))


def _numbers(value: Any, path: tuple[str, ...] = ()) -> Any:
    """A stored document has its amounts as exact texts; a skill takes numbers there, and nothing else."""
    if isinstance(value, dict):
        return {key: _numbers(item, (*path, key)) for key, item in value.items()}
    info = field_at(path) if isinstance(value, str) else None
    return value if info is None or takes_text(info) or takes_list(info) else Decimal(value)


def store(workspace: Workspace, skill: AnySkill) -> StoredSkill:
    """Keep a document under its name. A content that is already there keeps the version it has."""
    return workspace.skills.save(skill.name, skill_digest(skill), codec.dumps(normal(skill)))


def known_symbols(settings: Settings) -> set[str]:
    """Symbols that pitboss knows the terms of, or has bars of."""
    lake = lake_of(settings)  # not made if it is not there: checking a file leaves no trace
    found = set(SHIPPED)
    for venue in lake.venues():
        found |= {*lake.symbols(venue), *lake.assets(venue)}
    return found
