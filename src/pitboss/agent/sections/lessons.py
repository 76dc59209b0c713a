"""`## Lessons`: what was learnt from closed trades. A model's words, so they come back as data."""

from pitboss.agent.observation import Observation
from pitboss.agent.sections import Memo, fenced

PLACE = 100


def render(observation: Observation, memo: Memo) -> str | None:
    """Only with memory, and if there is any."""
    if not memo.memory_enabled or not observation.memory.lessons:
        return None
    return "\n".join(["## Lessons", *(f"- {fenced(lesson)}" for lesson in observation.memory.lessons)])
