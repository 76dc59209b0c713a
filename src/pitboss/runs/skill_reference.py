"""A skill as a request names it: a saved name, one version of it, a shipped example, a whole document, or its text.

The web API, the pages and the MCP server accept the same forms. Files are the business of the command line and the MCP server.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.runs.documents import check, read_document, read_stored
from pitboss.runs.venues import venue_of, venues
from pitboss.skill.document import to_json
from pitboss.skill.load import SkillCheck, read_skill
from pitboss.skill.schema import SkillDocument

EXAMPLES = "examples/"
"""The prefix by which a request names a shipped example."""
NAMES = "give skill (a saved name, name@version, examples/<name>, or a document) or text (YAML or JSON)"


@dataclass(frozen=True, slots=True)
class ExampleSkill:
    """A skill that a venue ships as a starting point."""

    name: str
    venue: str
    text: str

    @property
    def reference(self) -> str:
        """How a request names it."""
        return EXAMPLES + self.name


def example_skills() -> Iterator[ExampleSkill]:
    """The examples of every venue."""
    for venue in venues():
        for file, text in venue.examples().items():
            yield ExampleSkill(file.removesuffix(".yaml"), venue.name, text)


def example_named(reference: str) -> ExampleSkill | None:
    """The example that a request names; None if there is none."""
    name = reference.removeprefix(EXAMPLES)
    return next((example for example in example_skills() if example.name == name), None)


def suffix_of(text: str) -> str:
    """The format of a document: YAML unless it begins like JSON."""
    return ".json" if text.lstrip().startswith("{") else ".yaml"


def override_lines(text: str) -> tuple[str, ...]:
    """Changes such as `risk.max_leverage=2`, one per line."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def name_and_version(reference: str) -> tuple[str, int | None]:
    """`trend@2` as its name and version; without a version, the latest is meant."""
    name, _, version = reference.partition("@")
    if version and not (version.isdecimal() and len(version) < 10):
        raise UserError(f"{reference[:100]!r} has no valid version", f"use a whole number, such as {name[:60]}@2")
    return name, int(version) if version else None


def read_reference(
    workspace: Workspace, skill: str | Mapping[str, Any] | None, text: str | None, overrides: Sequence[str] = ()
) -> dict[str, Any]:
    """The complete plain document that a request means, overrides applied. Raises one `UserError` with every problem."""
    document = _text(skill, text)
    if document is not None:
        return read_document("the skill", document, suffix_of(document), overrides, workspace.settings)
    name, version = name_and_version(str(skill))
    return read_stored(workspace, name, version, overrides)


def check_reference(
    workspace: Workspace, skill: str | Mapping[str, Any] | None, text: str | None, overrides: Sequence[str] = ()
) -> SkillCheck[SkillDocument]:
    """Every problem of the document that a request means."""
    document = _text(skill, text)
    if document is None:
        plain = read_reference(workspace, skill, None, overrides)
        return check_complete(plain, workspace.settings)
    return check(document, suffix_of(document), workspace.settings, overrides)


def check_complete(plain: Mapping[str, Any], settings: Settings) -> SkillCheck[SkillDocument]:
    """The check of a complete plain document, as that of its JSON text."""
    skill = read_skill(plain, venue_of(plain).skill_type())
    return check(to_json(skill).decode(), ".json", settings)


def _text(skill: str | Mapping[str, Any] | None, text: str | None) -> str | None:
    """The text that is given or meant; None for a saved skill."""
    if (skill is None or skill == "") == (text is None):
        raise UserError("either skill or text is needed, and not both", NAMES)
    if text is not None:
        return text
    if isinstance(skill, Mapping):
        return codec.dumps(codec.number_fragments(dict(skill))).decode()
    if skill is not None and skill.startswith(EXAMPLES):
        example = example_named(skill)
        if example is None:
            names = ", ".join(entry.reference for entry in example_skills())
            raise UserError(f"there is no {skill[:100]}", f"there are {names}")
        return example.text
    return None


def override_texts(changes: Mapping[str, Any] | Iterable[str] | None) -> tuple[str, ...]:
    """The `set` of a request: a list of `path=value`, or an object of paths and values."""
    if changes is None:
        return ()
    if isinstance(changes, Mapping):
        return tuple(f"{path}={_value(value)}" for path, value in changes.items())
    return tuple(changes)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else codec.dumps(codec.number_fragments(value)).decode()
