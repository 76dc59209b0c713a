"""`DecisionFormat`: how a decision is written on a venue. The tool that a model calls to decide, and its strict reader."""

from collections.abc import Callable, Mapping
from typing import Any

from pitboss.core.noun import noun
from pitboss.core.ports import ToolSpec


@noun
class DecisionFormat:
    """The decision of a venue as a tool: calling it ends the tick.

    `read` gives the typed proposal (None if malformed) and everything that is wrong with a raw value. `idle` is the action
    that does nothing. `keys` are all keys that a decision may have, aliases included.
    """

    tool: str
    description: str
    schema: Mapping[str, Any]
    read: Callable[[Any], tuple[Any, list[str]]]
    idle: str
    keys: tuple[str, ...]

    @property
    def spec(self) -> ToolSpec:
        """The tool as it is offered to a model."""
        return ToolSpec(self.tool, self.description, self.schema)
