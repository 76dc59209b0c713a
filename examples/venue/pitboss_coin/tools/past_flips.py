"""Past flips, newest first."""

from collections.abc import Mapping
from typing import Any

from pitboss.tools.define import ToolContext, define_tool
from pitboss_coin.agent import past_flips


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """The newest flips."""
    return past_flips(context.observation, arguments["count"])


TOOL = define_tool(
    name="past_flips",
    category="market_data",
    description="List past flips, newest first.",
    schema={
        "type": "object",
        "additionalProperties": False,
        "required": ["count"],
        "properties": {"count": {"type": "integer", "minimum": 1, "maximum": 100, "description": "How many flips."}},
    },
    example={"count": 20},
    look=look,
)
