"""Limits of time and tokens by family of model, used where settings and skill set none. Models that reason take minutes.

Data, by the names that providers and gateways give them; a model that is missing here is treated like one that does not
reason.
"""

import re
from collections.abc import Mapping
from typing import Any

from pitboss.core.noun import noun
from pitboss.models.providers import MAX_TOKENS

_REASONING = re.compile(
    r"(^|[/_:.-])("
    r"o[134](-|$)|gpt-[5-9]|gpt-oss|codex"
    r"|deepseek-(r\d|reasoner)|r1(-|$)|qwq|qwen3|kimi-k[2-9].*think|glm-([5-9]|4\.[5-9])|magistral|minimax-m[1-9]"
    r"|grok-([4-9]|3-mini)|gemini-(2\.5|[3-9])|claude-(fable|mythos|(opus|sonnet|haiku)-[5-9])|nemotron|thinking|reasoning"
    r")",
    re.IGNORECASE,
)
_NOT_REASONING = re.compile(r"gpt-5[\w.]*-chat|non-reasoning|no-?think|instruct", re.IGNORECASE)


@noun
class FamilyLimits:
    """Limits of a model's calls: seconds of one attempt, of all attempts with their pauses, and tokens of a reply.

    `max_tokens` is None where the limit of every other model fits.
    """

    timeout_s: float
    deadline_s: float
    max_tokens: int | None = None


PLAIN = FamilyLimits(45.0, 120.0)
REASONING = FamilyLimits(300.0, 900.0, 16_384)
RAISED_BY = 4
MOST_RAISED = 32_768
"""No limit is raised above this many tokens: few models accept more."""


def family_limits(model: str) -> FamilyLimits:
    """The limits for a model's name, with or without its provider."""
    is_reasoning = _REASONING.search(model) and not _NOT_REASONING.search(model)
    return REASONING if is_reasoning else PLAIN


def first_limit(model: str, settings: Mapping[str, Any]) -> int:
    """The most tokens of a reply: as the skill's model settings say, or as the family of the model needs."""
    return int(settings.get("max_tokens") or family_limits(model).max_tokens or MAX_TOKENS)


def raised_limit(model: str, settings: Mapping[str, Any]) -> int:
    """The most tokens of the reply after one that was cut off."""
    first = first_limit(model, settings)
    return max(first, min(first * RAISED_BY, MOST_RAISED))
