"""The content digest of a skill: what was run, in 64 characters.

Two documents share a digest exactly if they say the same thing: key order, YAML or JSON, camelCase, comments, defaults
written out or left out, and the order of symbols do not count. Defaults are left out of the digest, so that it
survives new optional fields; hence a default may only change together with the document version. A mandate that was
read from a file counts by its text, as if it had been written into the document; the file's name does not count.
"""

from decimal import Decimal
from typing import Any

from pitboss.core import codec, money
from pitboss.core.instant import SECOND_MS
from pitboss.skill.schema import Context, Skill
from pitboss.venues.predict.skill import AnySkill, PredictSchedule, PredictSkill


def normal(skill: AnySkill) -> dict[str, Any]:
    """The document that the digest is taken over: symbols sorted, timeframes in order, defaults left out."""
    return _predict(skill) if isinstance(skill, PredictSkill) else _perp(skill)


def _perp(skill: Skill) -> dict[str, Any]:
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


def _predict(skill: PredictSkill) -> dict[str, Any]:
    """Tiers in order, and the time between ticks in seconds, however they were written."""
    tiers, every_ms = skill.context.sorted_tiers(), skill.schedule.every_ms
    context = skill.context.model_copy(update={"tiers": tiers})
    seconds = f"{money.text(Decimal(every_ms) / SECOND_MS)}s"
    same = skill.model_copy(update={"context": context, "schedule": PredictSchedule(every=seconds)})
    document = same.model_dump(exclude_defaults=True)
    document["pitboss"] = skill.pitboss
    return document


def skill_digest(skill: AnySkill) -> str:
    """SHA-256 of the canonical JSON of the normal form."""
    return codec.digest(normal(skill))
