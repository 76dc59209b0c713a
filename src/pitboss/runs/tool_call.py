"""Call a built-in tool outside of a run, as `pitboss tools call` does."""

from collections.abc import Mapping
from typing import Any

from pitboss.agent.loop import MAX_RESULT_CHARS
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.tools.define import ToolContext
from pitboss.tools.registry import Registry, hydrate


async def call_tool(registry: Registry, name: str, context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return the tool's answer.

    Raises `UserError` for a tool that may not be called, and `ToolFailed` for an error that a model would be shown.
    """
    tool = hydrate(registry, [name], context)[name]
    if registry[name].decides:
        looking = [other.name for other in registry.values() if not other.decides]
        raise UserError(
            f"{name} is the decision itself and cannot be tried out",
            f"tools that only look: {', '.join(looking)}",
        )
    answer = codec.printable(await tool.call(arguments))
    return answer if len(answer) <= MAX_RESULT_CHARS else answer[:MAX_RESULT_CHARS] + "\n[cut]"
