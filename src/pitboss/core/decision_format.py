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
    def list_key(self) -> str:
        """The field that holds the intents of a decision with several; empty if a decision is one intent."""
        if self.split is None:
            return ""
        return next(name for name, part in self.schema["properties"].items() if part["type"] == "array")

    @property
    def intent_schema(self) -> Mapping[str, Any]:
        """The schema of one intent."""
        return self.schema["properties"][self.list_key]["items"] if self.list_key else self.schema

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that a decision may have."""
        return (*self.schema["properties"], *self.aliases)

    @property
    def intent_keys(self) -> tuple[str, ...]:
        """All keys that one intent of a decision may have."""
        return (*self.intent_schema["properties"], *self.aliases)

    @property
    def spec(self) -> ToolSpec:
        """The tool as it is offered to a model."""
        return ToolSpec(self.tool, self.description, self.schema)
