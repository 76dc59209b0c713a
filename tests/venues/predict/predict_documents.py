"""Skill documents of the predict venue that the tests start from."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pitboss.skill import load
from pitboss.skill.load import SkillCheck
from pitboss.venues.predict.skill import PredictSkill
from skill.skill_documents import with_changes

_SMALLEST: dict[str, Any] = {
    "pitboss": 1,
    "name": "test",
    "venue": "predict",
    "model": "a/b",
    "strategy": {"mandate": "momentum"},
}


def document(**changes: Any) -> dict[str, Any]:
    """A small valid document with `with_changes`."""
    return with_changes(_SMALLEST, changes)


def check_text(
    text: str, suffix: str = ".yaml", folder: Path | None = None, overrides: Sequence[str] = ()
) -> SkillCheck[PredictSkill]:
    """Check a text as a skill of the predict venue; a mandate may be in a file in `folder`."""
    return load.check_text(text, suffix, PredictSkill, overrides=overrides, folder=folder)


def check_plain(plain: Any, folder: Path | None = None, overrides: Sequence[str] = ()) -> SkillCheck[PredictSkill]:
    """Check plain values as a skill of the predict venue."""
    return load.check_plain(plain, PredictSkill, overrides=overrides, folder=folder)


def load_skill(path: str | Path, overrides: Sequence[str] = ()) -> PredictSkill:
    """The predict skill in a file."""
    return load.load_skill(path, PredictSkill, overrides=overrides)
