"""`Unconnected`: a model that has a name and cannot be asked, for rebuilding what a model would be given."""

from dataclasses import dataclass

from pitboss.core.errors import InvariantError
from pitboss.core.ports import ModelReply, ModelRequest


@dataclass(slots=True)
class Unconnected:
    """A model by name only."""

    name: str

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Always an error: a run connects its model before it asks."""
        raise InvariantError(f"{self.name} was asked before it was connected")
