"""The check of a skill that a request gives, and the shipped examples that pages offer as starting points."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.runs.documents import check, given_text, read_given, suffix_of
from pitboss.runs.venues import default_venue, venue_of, venues
from pitboss.skill.document import to_json
from pitboss.skill.load import SkillCheck, read_skill
from pitboss.skill.schema import SkillDocument

EXAMPLES = "examples/"
"""The prefix by which a page names a shipped example."""
FIRST_EXAMPLE = "trend-thesis"
"""The example to begin with."""


@dataclass(frozen=True, slots=True)
class ExampleSkill:
    """A skill that a venue ships as a starting point."""

    name: str
    venue: str
    text: str

    @property
    def reference(self) -> str:
        """How a page names it."""
        return EXAMPLES + self.name


def example_skills() -> Iterator[ExampleSkill]:
    """The examples of every venue, those of the default venue first."""
    usual = default_venue().name
    for venue in sorted(venues(), key=lambda venue: (venue.name != usual, venue.name)):
        for file, text in venue.examples().items():
            yield ExampleSkill(file.removesuffix(".yaml"), venue.name, text)


def example_named(reference: str) -> ExampleSkill | None:
    """The example that a page names; None if there is none."""
    name = reference.removeprefix(EXAMPLES)
    return next((example for example in example_skills() if example.name == name), None)


def override_lines(text: str) -> tuple[str, ...]:
    """Changes such as `risk.max_leverage=2`, one per line."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def check_given(
    workspace: Workspace, skill: str | Mapping[str, Any] | None, text: str | None, overrides: Sequence[str] = ()
) -> SkillCheck[SkillDocument]:
    """Every problem of the document that a request gives as `runs.documents.read_given` takes it."""
    skill, text = given_text(skill, text)
    if text is None and isinstance(skill, Mapping):
        skill, text = None, orjson.dumps(codec.number_fragments(dict(skill))).decode()
    if text is not None and not skill:
        return check(text, suffix_of(text), workspace.settings, overrides)
    return check_complete(read_given(workspace, skill, text, overrides), workspace.settings)


def check_complete(plain: Mapping[str, Any], settings: Settings) -> SkillCheck[SkillDocument]:
    """The check of a complete plain document, as that of its JSON text."""
    skill = read_skill(plain, venue_of(plain).skill_type())
    return check(to_json(skill).decode(), ".json", settings)
