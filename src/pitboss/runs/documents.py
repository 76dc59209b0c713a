"""Load skill documents from a file, a text or the store, and check the names in them.

Parsing and validation themselves are in `skill.load`; this module finds a document's venue and the names it may use.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson

from pitboss.bootstrap.mcp_servers import allowed_tools
from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.runs.venue import Venue
from pitboss.runs.venues import default_venue, venue_named, venue_of
from pitboss.skill.digest import skill_digest
from pitboss.skill.document import to_plain
from pitboss.skill.load import SkillCheck, check_plain, check_text, named_venue, read_text, summary
from pitboss.skill.names import Names
from pitboss.skill.schema import SkillDocument
from pitboss.skill.spelling import SkillError, field_at, takes_list, takes_text
from pitboss.store.skills import StoredSkill

_IN_DOCUMENTS = re.compile(r"[\n\[{]|:(\s|$)")
"""What documents contain and names of skills do not."""


def venue_of_text(text: str, suffix: str) -> Venue:
    """The venue that a text names, or the default venue if it names none. Raises `UserError` for an unknown venue."""
    name = named_venue(text, suffix)
    return default_venue() if name is None else venue_named(name)


def check(
    text: str, suffix: str, settings: Settings, overrides: Sequence[str] = (), folder: Path | None = None
) -> SkillCheck[SkillDocument]:
    """Return every problem of a document of any venue, including unknown names.

    `folder` may hold files that it refers to.
    """
    try:
        venue = venue_of_text(text, suffix)
    except UserError as error:
        return SkillCheck(False, None, (SkillError("venue", error.message, error.hint),), None)
    names = replace(venue.names(settings), servers=allowed_tools(settings))
    return check_text(text, suffix, venue.skill_type(), names, overrides, folder)


def read_file(file: Path, overrides: Sequence[str] = (), settings: Settings | None = None) -> dict[str, Any]:
    """Check a skill file of any venue and return it as a complete plain document.

    With settings, its MCP servers are checked too.
    """
    return read_document(file.name, read_text(file), file.suffix, overrides, settings, file.parent)


def read_stored(workspace: Workspace, name: str, version: int | None, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return a stored version of a skill as a complete plain document."""
    stored = workspace.skills.get(name, version)
    plain = codec.loads(stored.body)
    root = venue_of(plain).skill_type()
    result = check_plain(with_numbers(plain, root), root, _names(plain, workspace.settings), overrides=overrides)
    if result.skill is None:
        raise summary(name, result.errors)
    return to_plain(result.skill)


def read_file_or_saved(workspace: Workspace, skill: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return the skill that a command names: a file, or a saved skill, also as `name@version`."""
    file = Path(skill)
    if file.suffix in (".yaml", ".yml", ".json") or file.is_file():
        return read_file(file, overrides, workspace.settings)
    return read_given(workspace, skill, None, overrides)


def read_given(
    workspace: Workspace,
    skill: str | Mapping[str, Any] | None,
    text: str | None = None,
    overrides: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the skill that a request gives, as a complete plain document.

    `skill` is a saved name, `name@version`, or a whole document, also as text; `text` is YAML or JSON. Exactly one is given.
    """
    skill, text = given_text(skill, text)
    if bool(skill) == (text is not None):
        raise UserError(
            "give either skill (a saved name, name@version or a document) or text (YAML or JSON)",
            "`GET /api/skills` lists the saved names",
        )
    if text is not None:
        return read_document("text", text, suffix_of(text), overrides, workspace.settings)
    if isinstance(skill, Mapping):
        return read_document("skill", _json_text(skill), ".json", overrides, workspace.settings)
    name, version = saved_name(skill or "")
    return read_stored(workspace, name, version, overrides)


def given_text(
    skill: str | Mapping[str, Any] | None, text: str | None
) -> tuple[str | Mapping[str, Any] | None, str | None]:
    """`skill` and `text` of a request, with a document that was given as the text of `skill` moved to `text`."""
    if text is None and isinstance(skill, str) and _IN_DOCUMENTS.search(skill.strip()):
        return None, skill
    return skill, text


def saved_name(reference: str) -> tuple[str, int | None]:
    """`name` or `name@version` of a saved skill → its name and version, None for the newest."""
    name, _, version = reference.partition("@")
    if version and not (version.isdecimal() and len(version) < 10):
        raise UserError(f"{reference[:100]!r} has no valid version", f"use a whole number, such as {name[:100]}@2")
    return name, int(version) if version else None


def suffix_of(text: str) -> str:
    """The format of a document: YAML unless it begins like JSON."""
    return ".json" if text.lstrip().startswith("{") else ".yaml"


def _json_text(document: Mapping[str, Any]) -> str:
    try:
        return orjson.dumps(dict(document)).decode()
    except (TypeError, ValueError):
        raise UserError("the skill cannot be written as JSON", "give its YAML as text") from None


def read_document(
    name: str,
    text: str,
    suffix: str,
    overrides: Sequence[str] = (),
    settings: Settings | None = None,
    folder: Path | None = None,
) -> dict[str, Any]:
    """Check a text and return it as a complete plain document, overrides applied.

    Raises one `UserError` that lists every problem.
    """
    try:
        venue = venue_of_text(text, suffix)
    except UserError as error:
        raise UserError(f"{name}: {error.message}", error.hint) from None
    names = _tool_names(venue, None if settings is None else allowed_tools(settings))
    result = check_text(text, suffix, venue.skill_type(), names, overrides, folder)
    if result.skill is None:
        raise summary(name, result.errors)
    return to_plain(result.skill)


def _names(plain: Mapping[str, Any], settings: Settings) -> Names:
    return _tool_names(venue_of(plain), allowed_tools(settings))


def _tool_names(venue: Venue, servers: Any) -> Names:
    """Names of tools and servers only: which symbols exist depends on the data, not on the document."""
    from pitboss.tools.registry import agent_tools

    return Names(agent_tools(venue.tools()), servers)


def with_numbers(value: Any, root: type[SkillDocument], path: tuple[str, ...] = ()) -> Any:
    """Convert the amounts of a stored document, which are exact decimal texts, to the numbers that a skill requires."""
    if isinstance(value, dict):
        return {key: with_numbers(item, root, (*path, key)) for key, item in value.items()}
    info = field_at(path, root) if isinstance(value, str) else None
    return value if info is None or takes_text(info) or takes_list(info) else Decimal(value)


def store(workspace: Workspace, skill: SkillDocument, text: str | None = None) -> StoredSkill:
    """Store a document under its name, with the text of its author. Content that is already stored keeps its version."""
    return workspace.skills.save(skill.name, skill_digest(skill), codec.dumps(skill.normal()), text)
