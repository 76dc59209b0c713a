"""Which models of OpenAI must be called by the Responses protocol. Data, as the provider documents and refuses.

A model that is missing here is called by chat completions first; `openai_client` learns from the refusal.
"""

import re

from pitboss.core.ports import ModelRequest

_ONLY_RESPONSES = re.compile(r"(o1|o3|o4-mini|gpt-5(\.\d+)?)-(pro|deep-research)\b|codex|computer-use", re.IGNORECASE)
"""Models that exist only there."""
_TOOLS_NEED_RESPONSES = re.compile(r"gpt-5\.([5-9]|\d\d)(?!\d)|gpt-([6-9]|\d\d)(?!\d)", re.IGNORECASE)
"""Models that refuse function tools on chat completions."""
_REASONING_TOOLS_NEED_RESPONSES = re.compile(r"gpt-5\.4(?!\d)", re.IGNORECASE)
"""Models that refuse function tools on chat completions while they reason."""


def needs_responses(model: str, request: ModelRequest) -> bool:
    """Whether a request must go to the Responses protocol."""
    if _ONLY_RESPONSES.search(model):
        return True
    if not request.tools:
        return False
    if _TOOLS_NEED_RESPONSES.search(model):
        return True
    is_reasoning = request.settings.get("reasoning") not in (None, "none")
    return is_reasoning and _REASONING_TOOLS_NEED_RESPONSES.search(model) is not None
