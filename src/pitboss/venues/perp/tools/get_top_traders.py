"""Tool `get_top_traders`: the positions of the venue's top traders as last recorded before the tick.

It reads recordings only and sends no request. The recorded answer is untrusted text, so all of it is fenced.
"""

from collections.abc import Mapping
from typing import Any

from pitboss.core import codec
from pitboss.core.instant import iso
from pitboss.prompt import render
from pitboss.tools.data_fence import fence
from pitboss.tools.define import ToolContext, define_tool

SERVER, TOOL_NAME = "hyperliquid-info-mcp", "top_traders"
COUNT = 5
"""The server's default count, so that a question without a count matches a recording with this one."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": [],
    "properties": {
        "count": {
            "type": "integer",
            "minimum": 1,
            "maximum": 20,
            "description": f"How many traders; {COUNT} if left out.",
        }
    },
}


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return the newest recorded answer to the same question, with its age."""
    count, at = arguments.get("count", COUNT), context.observation.at
    questions = [{"count": count}, {}] if count == COUNT else [{"count": count}]
    answers = (
        context.recordings.latest(SERVER, TOOL_NAME, codec.dumps(question).decode(), at) for question in questions
    )
    recorded = [answer for answer in answers if answer is not None and answer.known_at <= at]
    newest = max(recorded, key=lambda answer: answer.known_at, default=None)
    if newest is None:
        return f"no answer about {count} top traders was recorded by {iso(at)}; only the very same count would be found"
    when = f"recorded at {iso(newest.known_at)}, {render.age(at - newest.known_at)} ago"
    if newest.failed:
        when = f"the venue's answer was a failure, {when}"
    return f"{when}\n{fence('get_top_traders', newest.result)}"


TOOL = define_tool(
    name="get_top_traders",
    category="market_data",
    description="Get what the most profitable traders of the venue held, as it was last recorded before now.",
    ui_hint="Needs recordings of hyperliquid-info-mcp; in a backtest only what was recorded by then is shown.",
    schema=SCHEMA,
    example={"count": 5},
    reach="recorded",
    look=look,
)
