"""`DecisionFormat`: how a decision is written on a venue. The tool that a model calls to decide, and its strict reader."""

from collections.abc import Callable, Mapping
from typing import Any

from pitboss.core.noun import noun
from pitboss.core.ports import ToolSpec


@noun
class TextDecision:
    """What a text reply says: a raw decision, or why it holds none. Prose is a valid reply that does nothing."""

    raw: Any = None
    problems: tuple[str, ...] = ()
    is_prose: bool = False


@noun
class DecisionFormat:
    """The decision of a venue as a tool: calling it ends the tick.

    `read` gives the typed proposal (None if malformed) and everything that is wrong with a raw value. `idle` is the action
    that does nothing. `aliases` are other names of keys that a decision may have besides those of the schema. A venue
    whose agents may also decide in text gives `read_text`; one whose decisions hold several intents gives `split`.
    """

    tool: str
    description: str
    schema: Mapping[str, Any]
    read: Callable[[Any], tuple[Any, list[str]]]
    idle: str
    aliases: tuple[str, ...] = ()
    read_text: Callable[[str], TextDecision] | None = None
    split: Callable[[Any], tuple[Any, ...]] | None = None

    def intents(self, raw: Any) -> tuple[Any, ...]:
        """The intents of a raw decision that `read` accepts."""
        return (raw,) if self.split is None else self.split(raw)

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that a decision may have."""
        return (*self.schema["properties"], *self.aliases)

    @property
    def spec(self) -> ToolSpec:
        """The tool as it is offered to a model."""
        return ToolSpec(self.tool, self.description, self.schema)
