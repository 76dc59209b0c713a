"""Saved skills for lists and pages: the latest version with its last run, all versions, the text of one, and differences."""

from collections.abc import Mapping
from difflib import unified_diff
from functools import cache
from typing import Any, cast

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.instant import iso
from pitboss.runs.listing import short
from pitboss.runs.skill_editing import json_values
from pitboss.runs.skill_reference import example_skills
from pitboss.runs.venues import default_venue, venue_of
from pitboss.skill.document import to_plain
from pitboss.skill.load import named_venue, read_skill
from pitboss.skill.parse import parse
from pitboss.skill.spelling import dotted, fields
from pitboss.skill.yaml_write import written, yaml_text
from pitboss.store.skills import StoredSkill

MISSING = None


def skill_rows(workspace: Workspace) -> list[dict[str, Any]]:
    """Every saved skill with its latest version and its last run."""
    rows: list[dict[str, Any]] = []
    last_runs = workspace.runs.newest_by_skill()
    for stored in workspace.skills.latest():
        plain = codec.loads(stored.body)
        last = last_runs.get(stored.id)
        rows.append(
            {
                "name": stored.name,
                "version": stored.version,
                "digest": stored.digest,
                "venue": plain.get("venue") or default_venue().name,
                "model": plain.get("model", ""),
                "description": plain.get("description", ""),
                "saved_at": iso(stored.created_at),
                "last_run": None if last is None else short(last, workspace.now()),
            }
        )
    return sorted(rows, key=lambda row: row["saved_at"], reverse=True)


def example_rows() -> list[dict[str, Any]]:
    """The shipped examples of every venue, as starting points."""
    return [dict(row) for row in _examples()]


@cache
def _examples() -> list[dict[str, Any]]:
    """Parsed once: they are part of the program."""
    rows: list[dict[str, Any]] = []
    for example in example_skills():
        plain = parse(example.text).value
        rows.append(
            {
                "reference": example.reference,
                "name": example.name,
                "venue": named_venue(example.text, ".yaml") or example.venue,
                "model": plain.get("model", ""),
                "description": plain.get("description", ""),
            }
        )
    return rows


def version_rows(workspace: Workspace, name: str) -> list[dict[str, Any]]:
    """The versions of a skill, newest first."""
    return [
        {"version": stored.version, "digest": stored.digest, "saved_at": iso(stored.created_at)}
        for stored in workspace.skills.versions(name)
    ]


def version_document(workspace: Workspace, stored: StoredSkill) -> dict[str, Any]:
    """One version: its text as its author wrote it, or as it is written from the stored content, and its plain content."""
    text, plain = version_text(workspace, stored), _plain(stored)
    return {
        "name": stored.name,
        "version": stored.version,
        "digest": stored.digest,
        "saved_at": iso(stored.created_at),
        "venue": plain.get("venue") or default_venue().name,
        "text": text,
        "plain": plain,
    }


def version_text(workspace: Workspace, stored: StoredSkill) -> str:
    """The text of a version; written from the stored content, in the order of the schema, if its author gave none."""
    return workspace.skills.text_of(stored) or yaml_text(_in_order(_plain(stored)))


def field_differences(first: StoredSkill, second: StoredSkill) -> list[dict[str, Any]]:
    """The fields in which two versions differ, defaults included, each with its values and the lines of a text difference."""
    one, other = _flat(_complete(first)), _flat(_complete(second))
    root = venue_of(_plain(second)).skill_type()
    order = {dotted(path): index for index, (path, _) in enumerate(fields(root))}
    rows: list[dict[str, Any]] = []
    for path in sorted({*one, *other}, key=lambda path: (order.get(path, len(order)), path)):
        before, after = one.get(path, MISSING), other.get(path, MISSING)
        if before == after:
            continue
        lines = list(unified_diff(_shown(before).splitlines(), _shown(after).splitlines(), lineterm="", n=2))[2:]
        rows.append({"path": path, "before": before, "after": after, "lines": lines})
    return rows


def find_version(workspace: Workspace, name: str, version: int | None = None) -> StoredSkill | None:
    """A version of a saved skill, by default the latest; None if there is none."""
    try:
        return workspace.skills.get(name, version)
    except UserError:
        return None


def _plain(stored: StoredSkill) -> dict[str, Any]:
    """The stored content with amounts as JSON numbers, as its author wrote them."""
    from pitboss.runs.documents import with_numbers

    plain = codec.loads(stored.body)
    return cast("dict[str, Any]", json_values(with_numbers(plain, venue_of(plain).skill_type())))


def _complete(stored: StoredSkill) -> dict[str, Any]:
    """The content with defaults; without them where this version of pitboss refuses it."""
    plain = _plain(stored)
    try:
        skill = read_skill(plain, venue_of(plain).skill_type())
    except UserError:
        return plain
    return cast("dict[str, Any]", json_values(to_plain(skill)))


def _in_order(plain: Mapping[str, Any]) -> dict[str, Any]:
    root = venue_of(plain).skill_type()
    document = {**plain, "venue": plain.get("venue") or default_venue().name}
    return cast("dict[str, Any]", _ordered(document, [path for path, _ in fields(root)], ()))


def _ordered(value: Any, paths: list[tuple[str, ...]], at: tuple[str, ...]) -> Any:
    if not isinstance(value, dict):
        return value
    items = cast("dict[str, Any]", value)
    names = [path[-1] for path in paths if path[:-1] == at]
    keys = [*(name for name in names if name in items), *(name for name in items if name not in names)]
    return {key: _ordered(items[key], paths, (*at, key)) for key in keys}


def _flat(value: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {dotted(path): value}
    items = cast("dict[str, Any]", value).items()
    return {key: leaf for name, item in items for key, leaf in _flat(item, (*path, name)).items()}


def _shown(value: Any) -> str:
    if value is MISSING:
        return ""
    return value if isinstance(value, str) else written(value, 0).lstrip("\n")
