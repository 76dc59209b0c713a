"""The settings of a chat completion (limit of tokens, temperature, seed, reasoning), as a dialect spells them."""

from collections.abc import Mapping
from typing import Any

from pitboss.models.providers import Dialect
from pitboss.models.token_bounds import token_limit

BUDGETS = {"minimal": 1_024, "low": 1_024, "medium": 4_096, "high": 16_384}
SMALLEST_BUDGET = 1_024


def add_settings(body: dict[str, Any], settings: Mapping[str, Any], dialect: Dialect) -> None:
    """Add the settings to a body."""
    most = token_limit(settings)
    body[dialect.max_tokens] = most
    if settings.get("temperature") is not None:
        body["temperature"] = settings["temperature"]
    if dialect.seed and settings.get("seed") is not None:
        body[dialect.seed] = settings["seed"]
    effort = settings.get("reasoning")
    if effort is None or dialect.reasoning == "none":
        return
    if dialect.reasoning in ("thinking", "switch") and "tool_choice" in body:
        return  # no call can be forced while these models reason
    if dialect.reasoning == "effort":
        body["reasoning_effort"] = effort
    elif dialect.reasoning == "openrouter":
        body["reasoning"] = {"enabled": False} if effort == "none" else {"effort": effort}
    elif dialect.reasoning == "switch":
        body["thinking"] = {"type": "disabled" if effort == "none" else "enabled"}
    elif effort in BUDGETS:
        # Reasoning counts against the limit, so that the most a call can cost does not change.
        budget = min(BUDGETS[effort], most // 2)
        if budget >= SMALLEST_BUDGET:
            body["thinking"] = {"type": "enabled", "budget_tokens": budget}
            body.pop("temperature", None)  # not accepted together with thinking
