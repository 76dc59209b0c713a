"""The account at the tick: cash, equity, every position at its bid, waiting orders, and results of earlier orders."""

from collections.abc import Mapping
from typing import Any

from pitboss.prompt import render
from pitboss.tools.define import ToolContext, define_tool
from pitboss.venues.predict import formatting
from pitboss.venues.predict.sections.positions import position_line
from pitboss.venues.predict.tool_market import observation_of

SCHEMA: dict[str, Any] = {"type": "object", "additionalProperties": False, "required": [], "properties": {}}
MOST, LATEST = 100, 10


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return plain lines; a redeem uses the market, side and strike of one of them."""
    observation = observation_of(context)
    account = observation.portfolio()
    cost = render.size(sum((position.cost for position in account.positions), start=account.cash * 0))
    lines = [
        f"cash {render.size(account.cash)}, equity {render.size(account.equity)}, cost of open contracts {cost} DUSDC"
    ]
    lines += [position_line(position, observation) for position in account.positions[:MOST]] or ["no positions"]
    if len(account.positions) > MOST:
        lines.append(f"and {len(account.positions) - MOST} more")
    if observation.desk.done:
        lines += [
            "latest fills, payouts and late refusals:",
            *map(formatting.fill_line, observation.desk.done[-LATEST:]),
        ]
    return "\n".join(lines)


TOOL = define_tool(
    name="get_my_positions",
    category="portfolio",
    description="Get your account: cash, equity, open contracts with cost, bid and value, and what came of your orders.",
    ui_hint="The prompt has the positions; this adds the latest fills.",
    schema=SCHEMA,
    example={},
    look=look,
)
