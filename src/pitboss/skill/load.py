"""Load skills: parse a file or a text and return a validated skill, or every error at once with its line and a hint.

This is the only entry point for documents. `check_text` reports errors of a bad document and never raises; `load_skill`
raises one `UserError` that lists all of them. A document is validated against the document class of its venue; names of
tools, symbols and MCP servers are checked against those that the caller passes.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path as File
from typing import Any, Generic, TypeVar, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pitboss.core.errors import UserError
from pitboss.core.suggestion import PREFIX, did_you_mean, nearest_spelling
from pitboss.skill.digest import skill_digest
from pitboss.skill.document import venue_name
from pitboss.skill.explain import explain, show
from pitboss.skill.names import Names, Problem, unknown_names
from pitboss.skill.parse import MAX_BYTES, Path, parse, parse_value
from pitboss.skill.schema import VERSION, FileInclusion, SkillDocument
from pitboss.skill.spelling import (
    SkillError,
    canonical,
    dotted,
    field_at,
    fields,
    takes_list,
    takes_text,
)
from pitboss.skill.upgrade import upgrade

MANDATE_CHARS = 20_000
_MANDATE_BYTES = 4 * MANDATE_CHARS + 3
"""The same limit in UTF-8 at its longest, with a byte order mark."""

MOST_SHOWN = 200
"""Characters of a key or a name in a message."""

S = TypeVar("S", bound=SkillDocument)


@dataclass(frozen=True, slots=True)
class SkillCheck(Generic[S]):
    """The result of a check. `notes` are remarks on a document that may still be valid."""

    ok: bool
    digest: str | None
    errors: tuple[SkillError, ...]
    skill: S | None
    notes: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """The output of `pitboss skill check --json`."""
        errors = [asdict(error) for error in self.errors]
        return {"ok": self.ok, "digest": self.digest, "errors": errors, "notes": list(self.notes)}


def read_text(path: str | File) -> str:
    """Read a skill file. Raises `UserError` for every problem with the file."""
    file = File(path)
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise UserError(f"{file}: no such file", _similar_file(file)) from None
    except IsADirectoryError:
        raise UserError(f"{file}: is a folder, not a skill", "choose a .yaml or .json file in it") from None
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}", "check the path and its permissions") from None
    if len(data) > MAX_BYTES:
        raise UserError(f"{file}: larger than 1 MB", "a skill is a short text; check that this is the right file")
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
        siblings = [entry.name for entry in file.parent.iterdir() if entry.suffix in (".yaml", ".yml", ".json")]
    except OSError:
        return "check the path"
    return did_you_mean(
        nearest_spelling(file.name, sorted(siblings)), "`pitboss init DIR` writes examples to start from"
    )


def read_text_beside(name: str, folder: File | None) -> str:
    """Read the file of a mandate. Raises `UserError` for every problem with it.

    The name is untrusted: it must lead to a file in the document's folder or below, even through symbolic links.
    """
    if folder is None:
        raise UserError(
            "is a file name, and this document has no folder to read it from", "write the mandate itself as text"
        )
    try:
        home = folder.resolve()
        file = (home / name).resolve()
        if File(name).is_absolute() or ".." in File(name).parts or not file.is_relative_to(home):
            raise UserError(f"{name[:80]!r} lies outside the folder of the document", "keep the file beside it")
        if not file.exists():
            raise UserError(f"{name[:80]!r}: no such file beside the document", "its path starts at the document")
        if not file.is_file():
            raise UserError(f"{name[:80]!r} is not a file", "choose a text file")
        with file.open("rb") as stream:
            data = stream.read(_MANDATE_BYTES + 1)
    except (OSError, ValueError, RuntimeError):  # unreadable, an invalid file name, a loop of links
        raise UserError(f"{name[:80]!r} cannot be read", "check the path and its permissions") from None
    try:
        text = data[:_MANDATE_BYTES].decode("utf-8-sig", "strict" if len(data) <= _MANDATE_BYTES else "ignore")
    except UnicodeDecodeError:
        raise UserError(f"{name[:80]!r} is not UTF-8 text", "save the file as UTF-8") from None
    if len(data) > _MANDATE_BYTES or len(text) > MANDATE_CHARS:
        raise UserError(f"{name[:80]!r} is longer than {MANDATE_CHARS:,} characters", "shorten it")
    return text


def load_skill(path: str | File, root: type[S], names: Names = Names(), overrides: Sequence[str] = ()) -> S:  # noqa: B008  frozen
    """Load the skill in a file. Raises one `UserError` that lists every problem."""
    file = File(path)
    check = check_text(read_text(file), file.suffix, root, names, overrides, file.parent)
    if check.skill is None:
        raise summary(file.name, check.errors)
    return check.skill


def summary(name: str, errors: Sequence[SkillError]) -> UserError:
    """Combine all errors of a document into a one-line `UserError`; with several, only suggestions keep their hints."""
    if len(errors) == 1:
        return UserError(f"{name}: {_sentence(errors[0])}", errors[0].hint)
    sentences = [_sentence(error) + (f" ({error.hint})" if error.hint.startswith(PREFIX) else "") for error in errors]
    return UserError(
        f"{name}: {len(errors)} problems: {'; '.join(sentences)}", "`pitboss skill check` lists them with hints"
    )


def _sentence(error: SkillError) -> str:
    prefix = f"line {error.line}: " if error.line else ""
    return f"{prefix}{error.path}: {error.message}" if error.path else f"{prefix}{error.message}"


def check_text(
    text: str,
    suffix: str,
    root: type[S],
    names: Names = Names(),  # noqa: B008  frozen
    overrides: Sequence[str] = (),
    folder: File | None = None,
) -> SkillCheck[S]:
    """Check a document. Its errors are reported, not raised; a bad override is the caller's mistake and raised.

    `folder` is where files that the document names are read from; None if it may name none.
    """
    try:
        parsed = parse(text, suffix)
    except UserError as error:
        return SkillCheck(False, None, (SkillError("", error.message, error.hint),), None)
    return check_plain(parsed.value, root, names, parsed.lines, overrides, folder)


def check_plain(
    plain: Any,
    root: type[S],
    names: Names = Names(),  # noqa: B008  frozen
    lines: Mapping[Path, int] | None = None,
    overrides: Sequence[str] = (),
    folder: File | None = None,
) -> SkillCheck[S]:
    """Check plain values, such as those of a request or of the store."""
    skill, errors, notes = _read(root, plain, lines or {}, overrides, names, folder)
    if skill is None:
        return SkillCheck(False, None, errors, None, notes)
    return SkillCheck(True, skill_digest(skill), (), skill, (*notes, *skill.remarks()))


def read_skill(plain: Any, root: type[S], names: Names = Names()) -> S:  # noqa: B008  frozen
    """Validate a plain document and return the skill. Raises one `UserError` that lists every problem."""
    check = check_plain(plain, root, names)
    if check.skill is None:
        raise summary(_name_of(plain), check.errors)
    return check.skill


def _name_of(plain: Any) -> str:
    name = cast("Mapping[str, Any]", plain).get("name", "skill") if isinstance(plain, Mapping) else "skill"
    return _visible(str(name))


def _visible(text: str) -> str:
    """A key or a name of a document for a message: it is untrusted, and a terminal obeys control characters."""
    return "".join(char if char.isprintable() else "?" for char in text[:MOST_SHOWN])


def named_venue(text: str, suffix: str) -> str | None:
    """The `venue` of a text as written; None if it has none or cannot be parsed."""
    try:
        plain = parse(text, suffix).value
    except UserError:
        return None
    venue = cast("dict[str, Any]", plain).get("venue") if isinstance(plain, dict) else None
    return venue if isinstance(venue, str) else None


def _read(
    root: type[S],
    plain: Any,
    lines: Mapping[Path, int],
    overrides: Sequence[str],
    names: Names,
    folder: File | None = None,
) -> tuple[S | None, tuple[SkillError, ...], tuple[str, ...]]:
    """Return the skill if it is valid, else every error; and the notes of an upgrade."""
    problem = _version_problem(plain) or _other_venue(plain, root, overrides)
    if problem:
        return None, tuple(_located([problem], {}, lines)), ()
    upgraded, notes = upgrade(plain, plain.get("pitboss", 0))
    spelled = canonical(upgraded, root)
    document = _with_settings(spelled.value, overrides, root)
    problems = [*spelled.errors, *unknown_names(document, names)]
    included = root.include_files(document, lambda name: read_text_beside(name, folder))
    problems += [] if included is None else included.errors
    skill = None
    try:
        skill = root.model_validate(document)
    except ValidationError as error:
        paths_with_problem = {path for path, _, _ in problems}
        causes = [_of_file(explain(item, root), included) for item in _first_causes(error)]
        problems += [item for item in causes if item[0] not in paths_with_problem]
    if problems or skill is None:
        overridden = {_setting_path(setting.partition("=")[0].strip(), root) for setting in overrides}
        return None, tuple(_located(problems, spelled.written, lines, overridden)), tuple(notes)
    return skill, (), tuple(notes)


def _first_causes(error: ValidationError) -> list[ErrorDetails]:
    """The schema's errors without consequential ones, such as a list too short because its entries failed."""
    details = error.errors(include_url=False)
    inner = {item["loc"][:end] for item in details for end in range(len(item["loc"]))}
    return [item for item in details if item["type"] != "too_short" or item["loc"] not in inner]


def _located(
    problems: list[Problem], written: Mapping[Path, str], lines: Mapping[Path, int], overridden: Collection[Path] = ()
) -> list[SkillError]:
    """Errors under the keys that the author used, with line numbers, in document order.

    Fields that are `overridden` on the command line have no line number.
    """
    errors: list[SkillError] = []
    for path, message, hint in problems:
        written_path = tuple(written.get(path[: end + 1], part) for end, part in enumerate(path))
        in_document = not any(path[: len(override_path)] == override_path for override_path in overridden)
        line = next(
            (
                lines[written_path[:end]]
                for end in range(len(written_path), 0, -1)
                if in_document and written_path[:end] in lines
            ),
            None,
        )
        errors.append(SkillError(_visible(dotted(written_path)), message, hint, line))
    return sorted(errors, key=lambda error: error.line or 0)


def _version_problem(plain: Any) -> Problem | None:
    if not isinstance(plain, dict):
        return (), f"a skill is a map of keys, not {show(plain)}", "start with `pitboss: 1`"
    version = cast("dict[str, Any]", plain).get("pitboss", 0)
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        return ("pitboss",), f"must be the document version, a whole number, not {show(version)}", f"write {VERSION}"
    if version > VERSION:
        message = f"needs a newer pitboss: document version {version}, this one supports up to {VERSION}"
        return ("pitboss",), message, "upgrade pitboss"
    return None


def _other_venue(plain: Any, root: type[SkillDocument], overrides: Sequence[str]) -> Problem | None:
    """The error for a document of another venue than the one it is checked as; further errors would not help."""
    own, venue = venue_name(root), cast("dict[str, Any]", plain).get("venue")
    for setting in overrides:
        name, _, value = setting.partition("=")
        venue = value.strip() if name.strip() == "venue" else venue
    if venue is None and root.model_fields["venue"].is_required():
        return ("venue",), f"is missing: only {own} skills are accepted here", f"write `venue: {own}`"
    if isinstance(venue, str) and venue != own:
        hint = f"only {own} skills are accepted here; `pitboss backtest` and `pitboss deploy` take those of every venue"
        return ("venue",), f"must be {own} here, not {show(venue)}", hint
    return None


def _of_file(error: Problem, included: FileInclusion | None) -> Problem:
    """Change an error in a text that was read from a file to name the field of the file."""
    path, message, hint = error
    if included is not None and included.file and path == included.placed_at:
        return included.named_at, f"{show(included.file)} {message}", hint
    return error


def override(plain: Mapping[str, Any], settings: Iterable[str], root: type[SkillDocument]) -> dict[str, Any]:
    """Apply `--set` values such as `risk.max_leverage=5`; the result is checked like any other document."""
    problem = _version_problem(plain)
    if problem:
        raise summary("skill", _located([problem], {}, {}))
    return _with_settings(canonical(upgrade(plain, plain.get("pitboss", 0))[0], root).value, settings, root)


def _with_settings(plain: Mapping[str, Any], settings: Iterable[str], root: type[SkillDocument]) -> dict[str, Any]:
    document = deepcopy(dict(plain))
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise UserError(f"--set {setting}: no value given", "write --set risk.max_leverage=5")
        path = _setting_path(name.strip(), root)
        section = document
        for part in path[:-1]:
            if not isinstance(section.get(part), dict):
                section[part] = {}
            section = cast("dict[str, Any]", section[part])
        section[path[-1]] = _setting_value(path, value.strip(), root)
    return document


def _setting_path(name: str, root: type[SkillDocument]) -> tuple[str, ...]:
    lists = {path for path, info in fields(root) if takes_list(info)}
    paths = {dotted(path): path for path, _ in fields(root) if path[0] != "pitboss" and path[:-1] not in lists}
    path = paths.get(name) or paths.get(dotted(_spelled(name, root)))
    if path is None:
        by_last_part = {path_text.rpartition(".")[2]: path_text for path_text in paths}
        suggestion = nearest_spelling(name, paths) or by_last_part.get(nearest_spelling(name, by_last_part) or "")
        raise UserError(f"--set {name}: no such field", did_you_mean(suggestion, "`pitboss skill schema` lists them"))
    return path


def _spelled(name: str, root: type[SkillDocument]) -> Path:
    """Convert `risk.maxLeverage` to its canonical path."""
    probe: Any = 0
    for part in reversed(name.split(".")):
        probe = {part: probe}
    value, path = canonical(probe, root).value, list[str]()
    while isinstance(value, dict) and value:
        key, value = next(iter(cast("dict[str, Any]", value).items()))
        path.append(key)
    return tuple(path)


def _setting_value(path: tuple[str, ...], text: str, root: type[SkillDocument]) -> Any:
    info = field_at(path, root)
    if info is not None and takes_text(info):
        return text
    if info is not None and takes_list(info) and not text.startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        return parse_value(text)
    except UserError as error:
        raise UserError(f"--set {dotted(path)}: {error.message}", error.hint) from None
