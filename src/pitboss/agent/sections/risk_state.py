"""`## Risk state`: facts about the account's recent risk, written by code."""

from pitboss.agent.observation import Observation
from pitboss.agent.sections import Memo

PLACE = 80


def render(observation: Observation, memo: Memo) -> str | None:
    """Only with memory, and if there is any."""
    if not memo.memory_enabled or not observation.memory.risk:
        return None
    return "\n".join(["## Risk state", *(f"- {' '.join(fact.split())}" for fact in observation.memory.risk)])
