"""The content digest of a skill: what was run, in 64 characters.

Two documents share a digest exactly if they say the same thing: key order, YAML or JSON, camelCase, comments, defaults
written out or left out, and the order of symbols do not count. Defaults are left out of the digest, so that it
survives new optional fields; hence a default may only change together with the document version.
"""

from typing import Any

from pitboss.core import codec
from pitboss.skill.schema import Context, Skill


def normal(skill: Skill) -> dict[str, Any]:
    """The document that the digest is taken over: symbols sorted, timeframes in order, defaults left out."""
    document = skill.model_dump(exclude_defaults=True)
    document["pitboss"] = skill.pitboss
    context: dict[str, Any] = document["context"]
    context["symbols"] = sorted(context["symbols"])
    context.pop("higher_timeframes", None)
    given = skill.context.timeframes()
    if given != Context(symbols=skill.context.symbols, bars_interval=skill.context.bars_interval).timeframes():
        context["higher_timeframes"] = given
    allowed = document.get("risk", {}).get("allowed_symbols")
    if allowed:
        document["risk"]["allowed_symbols"] = sorted(allowed)
    return document


def skill_digest(skill: Skill) -> str:
    """SHA-256 of the canonical JSON of the normal form."""
    return codec.digest(normal(skill))
