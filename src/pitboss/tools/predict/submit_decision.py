"""The decision of a tick. Terminal: calling it ends the tick, and the agent loop takes the call before any tool runs.

It is defined here so that it is offered, catalogued and refused in read mode like every other tool; it does nothing.
"""

from collections.abc import Mapping
from typing import Any

from pitboss.core.errors import InvariantError
from pitboss.tools.define import ToolContext, define_tool
from pitboss.venues.predict import intents


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Never reached: a tool run that gets here would be a way around the guard."""
    raise InvariantError(f"{intents.TERMINAL} was run as a tool; it is a decision, taken by the agent loop")


TOOL = define_tool(
    name=intents.TERMINAL,
    category="execution",
    description=intents.DESCRIPTION,
    ui_hint="Always offered to an agent that decides; need not be listed.",
    modes=("write",),
    schema=intents.SCHEMA,
    example={
        "action": "mint",
        "market_id": "BTC-2026-05-27T13:00:00Z",
        "side": "YES",
        "strike": 63500,
        "spend": 2,
        "confidence": 0.62,
        "reasoning": "steady drift up, the ask of 0.55 leaves an edge of 0.07",
    },
    look=look,
    checked=False,
)
