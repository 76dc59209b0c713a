"""`DecisionFormat`: how a decision is written on a venue. The tool that a model calls to decide, and its strict reader."""

from collections.abc import Callable, Mapping
from typing import Any

from pitboss.core.noun import noun
from pitboss.core.ports import ToolSpec


@noun
class DecisionFormat:
    """The decision of a venue as a tool: calling it ends the tick.

    `read` gives the typed proposal (None if malformed) and everything that is wrong with a raw value. `idle` is the action
    that does nothing. `aliases` are other names of keys that a decision may have besides those of the schema.
    """

    tool: str
    description: str
    schema: Mapping[str, Any]
    read: Callable[[Any], tuple[Any, list[str]]]
    idle: str
    aliases: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that a decision may have."""
        return (*self.schema["properties"], *self.aliases)

    @property
    def spec(self) -> ToolSpec:
        """The tool as it is offered to a model."""
        return ToolSpec(self.tool, self.description, self.schema)
