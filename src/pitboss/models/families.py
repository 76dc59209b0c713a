"""Time limits by family of model, used where the settings do not change them. Models that reason take minutes.

Data, by the names that providers and gateways give them; a model that is missing here is treated like one that does not
reason.
"""

import re

from pitboss.core.noun import noun

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
    """Limits of a model's calls: seconds of one attempt, and of all attempts with their pauses."""

    timeout_s: float
    deadline_s: float


PLAIN = FamilyLimits(45.0, 120.0)
REASONING = FamilyLimits(300.0, 900.0)


def family_limits(model: str) -> FamilyLimits:
    """The limits for a model's name, with or without its provider."""
    is_reasoning = _REASONING.search(model) and not _NOT_REASONING.search(model)
    return REASONING if is_reasoning else PLAIN
