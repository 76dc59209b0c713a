"""The decision of a tick. Terminal: calling it ends the tick, and the agent loop takes the call before any tool runs.

It is defined here so that it is offered, catalogued and refused in read mode like every other tool; it does nothing.
"""

from collections.abc import Mapping
from typing import Any

from pitboss.core.errors import InvariantError
from pitboss.tools.define import ToolContext, define_tool
from pitboss.venues.perp import intents


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Never reached: a tool run that gets here would be a way around the guard."""
    raise InvariantError(f"{intents.TERMINAL} was run as a tool; it is a decision, taken by the agent loop")


TOOL = define_tool(
    name=intents.TERMINAL,
    category="execution",
    description=intents.DESCRIPTION,
    ui_hint="Always offered to a trading agent, never to a chat; need not be listed.",
    modes=("write",),
    schema=intents.SCHEMA,
    example={
        "action": "open_long",
        "symbol": "BTC",
        "size_usd": 500,
        "leverage": 2,
        "stop_loss": 58000,
        "take_profit": 66000,
        "reason": "close above the 20-bar high with rising volume",
        "confidence": 0.6,
    },
    look=look,
    checked=False,
)
