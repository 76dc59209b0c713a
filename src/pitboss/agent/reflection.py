"""Reflection: a model call inside a tick, before the decision, whose result becomes part of the agent's memory.

The port only. When a reflection is due, what it asks and what is learnt from it belong to the venue
(on the perp venue, lessons from closed trades).
"""

from typing import Any, Protocol

from pitboss.core.intent import Step
from pitboss.core.noun import noun


@noun
class Reflection:
    """The result of one reflection. `notes` is None if the old ones stay; `why` then says what was wrong."""

    prompt: tuple[str, str]
    steps: tuple[Step, ...]
    notes: Any = None
    flag: str = ""
    why: str = ""


class Reflector(Protocol):
    """Asks a model to review what the agent remembers."""

    def due(self, memory: Any) -> bool:
        """Whether to reflect before the next decision."""
        ...

    async def reflect(self, observation: Any) -> Reflection:
        """One model call. Only what a person must put right, or a spent budget, is raised."""
        ...

    def learn(self, memory: Any, reflection: Reflection) -> Any:
        """The memory after a reflection."""
        ...
