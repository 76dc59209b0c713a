"""Reflection: a model call inside a tick, before the decision, whose result becomes part of the agent's memory.

This is the port only. The venue defines when a reflection is due, its prompt and what is learnt from it (on the perp
venue, lessons from closed trades).
"""

from typing import Any, Protocol

from pitboss.core.intent import Step
from pitboss.core.noun import noun


@noun
class Reflection:
    """The result of one reflection. `notes` is None if the old notes stay; `why` then says what was wrong."""

    prompt: tuple[str, str]
    steps: tuple[Step, ...]
    notes: Any = None
    flag: str = ""
    why: str = ""


class Reflector(Protocol):
    """Calls a model to review the agent's memory."""

    def due(self, memory: Any) -> bool:
        """Whether to reflect before the next decision."""
        ...

    async def reflect(self, observation: Any) -> Reflection:
        """Make one model call. Raises only errors that the user must fix, and an exhausted budget."""
        ...

    def learn(self, memory: Any, reflection: Reflection) -> Any:
        """The memory after a reflection."""
        ...
