"""Reading skills: a file or a text in, a checked `Skill` out, or every error at once with its place and a hint.

The only way in for documents. `check_text` never raises on a bad document, it reports; `load_skill` raises one
`UserError` that names everything. Names of tools, symbols and MCP servers are checked against what the caller knows.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path as File
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pitboss.core.errors import UserError
from pitboss.skill.digest import skill_digest
from pitboss.skill.explain import explain, show
from pitboss.skill.parse import MAX_BYTES, Path, parse, parse_value
from pitboss.skill.schema import VERSION, Skill
from pitboss.skill.spelling import (
    SUGGESTION,
    SkillError,
    canonical,
    did_you_mean,
    dotted,
    field_at,
    fields,
    nearest,
    takes_list,
    takes_text,
)
from pitboss.skill.upgrade import upgrade

ALWAYS_OFFERED = "propose_order"
AVAILABLE_VENUES = ("perp",)

Found = tuple[Path, str, str]


@dataclass(frozen=True, slots=True)
class SkillCheck:
    """What a check found. `notes` are remarks on a document that may be fine."""

    ok: bool
    digest: str | None
    errors: tuple[SkillError, ...]
    skill: Skill | None
    notes: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """`pitboss skill check --json`."""
        errors = [asdict(error) for error in self.errors]
        return {"ok": self.ok, "digest": self.digest, "errors": errors, "notes": list(self.notes)}


@dataclass(frozen=True, slots=True)
class Names:
    """The names that documents may use; None leaves that kind of name unchecked."""

    tools: Collection[str] | None = None
    """As a mapping, with why an agent cannot have a tool; empty where it can."""
    symbols: Collection[str] | None = None
    servers: Collection[str] | None = None
    """Ids of MCP servers; as a mapping, with the names of the tools that each of them may offer."""


def read_text(path: str | File) -> str:
    """The text of a skill file. Everything that can be wrong with a file is a `UserError`."""
    file = File(path)
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise UserError(f"{file}: no such file", _similar_file(file)) from None
    except IsADirectoryError:
        raise UserError(f"{file}: is a folder, not a skill", "name a .yaml or .json file in it") from None
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}", "check the path and its permissions") from None
    if len(data) > MAX_BYTES:
        raise UserError(f"{file}: larger than 1 MB", "a skill is a page of text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{file}: line {line}: not UTF-8 text", "save the file as UTF-8") from None
    if not text.strip():
        raise UserError(f"{file}: is empty", "`pitboss init DIR` writes examples to start from")
    return text


def _similar_file(file: File) -> str:
    try:
        beside = [entry.name for entry in file.parent.iterdir() if entry.suffix in (".yaml", ".yml", ".json")]
    except OSError:
        return "check the path"
    return did_you_mean(nearest(file.name, sorted(beside)), "`pitboss init DIR` writes examples to start from")


def load_skill(
    path: str | File,
    tool_names: Collection[str] | None = None,
    symbols: Collection[str] | None = None,
    server_ids: Collection[str] | None = None,
    overrides: Sequence[str] = (),
) -> Skill:
    """The skill in a file, with `--set` overrides applied. Raises one `UserError` that names every problem."""
    file = File(path)
    check = check_text(read_text(file), file.suffix, tool_names, symbols, server_ids, overrides)
    if check.skill is None:
        raise summary(file.name, check.errors)
    return check.skill


def summary(name: str, errors: Sequence[SkillError]) -> UserError:
    """All errors of a document as one `UserError`, on one line; only suggestions stay with theirs when there are several."""
    if len(errors) == 1:
        return UserError(f"{name}: {_sentence(errors[0])}", errors[0].hint)
    said = [_sentence(error) + (f" ({error.hint})" if error.hint.startswith(SUGGESTION) else "") for error in errors]
    return UserError(f"{name}: {len(errors)} problems: {'; '.join(said)}", "`pitboss skill check` says more about each")


def _sentence(error: SkillError) -> str:
    where = f"line {error.line}: " if error.line else ""
    return f"{where}{error.path}: {error.message}" if error.path else f"{where}{error.message}"


def check_text(
    text: str,
    suffix: str = ".yaml",
    tool_names: Collection[str] | None = None,
    symbols: Collection[str] | None = None,
    server_ids: Collection[str] | None = None,
    overrides: Sequence[str] = (),
) -> SkillCheck:
    """Check a document. Bad documents are reported, not raised; a bad override is the caller's mistake and raised."""
    try:
        parsed = parse(text, suffix)
    except UserError as error:
        return _refused([SkillError("", error.message, error.hint)])
    return check_plain(parsed.value, Names(tool_names, symbols, server_ids), parsed.lines, overrides)


def check_plain(
    plain: Any,
    names: Names = Names(),  # noqa: B008  frozen
    lines: Mapping[Path, int] | None = None,
    overrides: Sequence[str] = (),
) -> SkillCheck:
    """Check plain values, such as those of a request or of the store."""
    problem = _version_problem(plain)
    if problem:
        return _refused(_placed([problem], {}, lines or {}))
    upgraded, notes = upgrade(plain, plain.get("pitboss", 0))
    spelled = canonical(upgraded)
    document = _with_settings(spelled.value, overrides)
    found = [*spelled.errors, *_unknown_names(document, names)]
    skill = None
    try:
        skill = Skill.model_validate(document)
    except ValidationError as error:
        told = {path for path, _, _ in found}
        found += [item for item in map(explain, _first_causes(error)) if item[0] not in told]
    if found or skill is None:
        given = {_setting_path(setting.partition("=")[0].strip()) for setting in overrides}
        return _refused(_placed(found, spelled.written, lines or {}, given), notes)
    return SkillCheck(True, skill_digest(skill), (), skill, (*notes, *_remarks(skill)))


def _first_causes(error: ValidationError) -> list[ErrorDetails]:
    """The schema's errors without those that only follow from others: a list is short because its entries failed."""
    details = error.errors(include_url=False)
    inner = {item["loc"][:end] for item in details for end in range(len(item["loc"]))}
    return [item for item in details if item["type"] != "too_short" or item["loc"] not in inner]


def _refused(errors: Iterable[SkillError], notes: Sequence[str] = ()) -> SkillCheck:
    return SkillCheck(False, None, tuple(errors), None, tuple(notes))


def _placed(
    found: list[Found], written: Mapping[Path, str], lines: Mapping[Path, int], given: Collection[Path] = ()
) -> list[SkillError]:
    """Errors under the names that the author used, with their lines, in document order.

    What was `given` on the command line stands on no line.
    """
    errors: list[SkillError] = []
    for path, message, hint in found:
        own = tuple(written.get(path[: end + 1], part) for end, part in enumerate(path))
        inside = not any(path[: len(place)] == place for place in given)
        line = next((lines[own[:end]] for end in range(len(own), 0, -1) if inside and own[:end] in lines), None)
        errors.append(SkillError(dotted(own), message, hint, line))
    return sorted(errors, key=lambda error: error.line or 0)


def _version_problem(plain: Any) -> Found | None:
    if not isinstance(plain, dict):
        return (), f"a skill is a map of keys, not {show(plain)}", "start with `pitboss: 1`"
    version = cast("dict[str, Any]", plain).get("pitboss", 0)
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        return ("pitboss",), f"must be the document version, a whole number, not {show(version)}", f"write {VERSION}"
    if version > VERSION:
        message = f"made for a newer pitboss: document version {version}, this one reads up to {VERSION}"
        return ("pitboss",), message, "upgrade pitboss"
    return None


def _unknown_names(document: Any, names: Names) -> list[Found]:
    tools = None if names.tools is None else {*names.tools, ALWAYS_OFFERED}
    found = [
        *_unknown(document, ("tools", "built_in"), "tool", tools),
        *_unknown(document, ("context", "symbols"), "symbol", names.symbols),
        *_unknown(document, ("risk", "allowed_symbols"), "symbol", names.symbols),
        *_unknown(document, ("tools", "mcp_servers"), "MCP server", names.servers, "id"),
        *_filtered(document, names.servers),
        *_unfit(document, names.tools),
    ]
    venue = document.get("venue")
    if venue in ("predict", "community"):
        message = f"the {venue} venue is not available in this version"
        found.append((("venue",), message, f"use {' or '.join(AVAILABLE_VENUES)}"))
    return found


def _unknown(
    document: Any, path: tuple[str, str], noun: str, known: Collection[str] | None, key: str = ""
) -> list[Found]:
    section = document.get(path[0])
    values = cast("dict[str, Any]", section).get(path[1]) if isinstance(section, dict) else None
    if known is None or not isinstance(values, list):
        return []
    found: list[Found] = []
    for index, value in enumerate(cast("list[Any]", values)):
        word = cast("dict[str, Any]", value).get(key) if key and isinstance(value, dict) else value
        if isinstance(word, str) and word not in known:
            hint = did_you_mean(nearest(word, sorted(known)), f"known: {', '.join(sorted(known)[:30]) or 'none'}")
            found.append(((*path, index, key) if key else (*path, index), f"unknown {noun} {show(word)}", hint))
    return found


def _unfit(document: Any, tools: Collection[str] | None) -> list[Found]:
    """Tools that exist, but not for an agent that decides."""
    section = document.get("tools")
    listed = cast("dict[str, Any]", section).get("built_in") if isinstance(section, dict) else None
    if not isinstance(tools, Mapping) or not isinstance(listed, list):
        return []
    why = cast("Mapping[str, str]", tools)
    return [
        (("tools", "built_in", place), f"{show(word)} {why[word]}", "leave it out")
        for place, word in enumerate(cast("list[Any]", listed))
        if isinstance(word, str) and why.get(word)
    ]


def _filtered(document: Any, servers: Collection[str] | None) -> list[Found]:
    """Tools that a skill asks of a server which the catalogue does not allow there."""
    section = document.get("tools")
    listed = cast("dict[str, Any]", section).get("mcp_servers") if isinstance(section, dict) else None
    if not isinstance(servers, Mapping) or not isinstance(listed, list):
        return []
    allowed = cast("Mapping[str, Collection[str]]", servers)
    found: list[Found] = []
    for index, server in enumerate(cast("list[Any]", listed)):
        plain = cast("dict[str, Any]", server) if isinstance(server, dict) else {}
        known, wanted = allowed.get(str(plain.get("id"))), plain.get("tool_filter")
        if known is None or not isinstance(wanted, list):
            continue
        for place, word in enumerate(cast("list[Any]", wanted)):
            if isinstance(word, str) and word not in known:
                hint = did_you_mean(nearest(word, sorted(known)), f"allowed: {', '.join(sorted(known)) or 'none'}")
                path = ("tools", "mcp_servers", index, "tool_filter", place)
                found.append((path, f"{show(word)} is not a tool that {plain['id']} may offer", hint))
    return found


def _remarks(skill: Skill) -> list[str]:
    """Things that are allowed but hardly meant."""
    notes: list[str] = []
    allowed = skill.risk.allowed_symbols
    if allowed and not set(allowed) & set(skill.context.symbols):
        notes.append("risk.allowed_symbols has none of context.symbols: every opening order will be refused")
    if skill.risk.max_order_usd is not None and skill.risk.max_order_usd < max(10, skill.risk.min_order_usd):
        notes.append("risk.max_order_usd is below the smallest order: every opening order will be refused")
    return notes


def override(plain: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """The document with `--set` values such as `risk.max_leverage=5` put in; the result is checked like any other."""
    problem = _version_problem(plain)
    if problem:
        raise summary("skill", _placed([problem], {}, {}))
    return _with_settings(canonical(upgrade(plain, plain.get("pitboss", 0))[0]).value, settings)


def _with_settings(plain: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    document = deepcopy(dict(plain))
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise UserError(f"--set {setting}: no value given", "write --set risk.max_leverage=5")
        path = _setting_path(name.strip())
        place = document
        for part in path[:-1]:
            if not isinstance(place.get(part), dict):
                place[part] = {}
            place = cast("dict[str, Any]", place[part])
        place[path[-1]] = _setting_value(path, value.strip())
    return document


def _setting_path(name: str) -> tuple[str, ...]:
    lists = {path for path, info in fields() if takes_list(info)}
    known = {dotted(path): path for path, _ in fields() if path[0] != "pitboss" and path[:-1] not in lists}
    path = known.get(name) or known.get(dotted(_spelled(name)))
    if path is None:
        last = {where.rpartition(".")[2]: where for where in known}
        found = nearest(name, known) or last.get(nearest(name, last) or "")
        raise UserError(f"--set {name}: no such field", did_you_mean(found, "`pitboss skill schema` lists them"))
    return path


def _spelled(name: str) -> Path:
    """`risk.maxLeverage` → its canonical path."""
    probe: Any = 0
    for part in reversed(name.split(".")):
        probe = {part: probe}
    value, path = canonical(probe).value, list[str]()
    while isinstance(value, dict) and value:
        key, value = next(iter(cast("dict[str, Any]", value).items()))
        path.append(key)
    return tuple(path)


def _setting_value(path: tuple[str, ...], text: str) -> Any:
    info = field_at(path)
    if info is not None and takes_text(info):
        return text
    if info is not None and takes_list(info) and not text.startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        return parse_value(text)
    except UserError as error:
        raise UserError(f"--set {dotted(path)}: {error.message}", error.hint) from None
