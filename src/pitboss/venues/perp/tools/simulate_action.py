"""Tool `simulate_action`: judges a proposal by the real rules against the present account; nothing is sent."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from pitboss.core import codec
from pitboss.core.errors import ToolFailed
from pitboss.core.verdict import Margin
from pitboss.prompt import render
from pitboss.tools.define import ToolContext, define_tool
from pitboss.venues.perp import intents


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return the verdict as one JSON object: outcome, rule code, detail and the margin to every limit."""
    if context.judge is None:
        raise ToolFailed("there is no engine to ask here")
    verdict = context.judge(arguments)
    answer: dict[str, Any] = {"outcome": verdict.outcome, "margins": [_margin(margin) for margin in verdict.margins]}
    if verdict.code:
        answer |= {"code": verdict.code, "detail": verdict.detail}
    return codec.dumps(answer).decode()


def _margin(margin: Margin) -> dict[str, str]:
    facts = {
        "rule": margin.code,
        "limit": _number(str(margin.limit), margin.unit),
        "used": _number(str(margin.used), margin.unit),
        "left": "" if margin.left is None else _number(str(margin.left), margin.unit),
        "unit": margin.unit,
    }
    return {name: text for name, text in facts.items() if text}


def _number(text: str, unit: str) -> str:
    """Format a margin's number for reading; an exact one can have sixty digits."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        return text
    return render.amount(value) if unit == "usd" else render.size(value)


TOOL = define_tool(
    name="simulate_action",
    category="execution",
    description=(
        "Ask the engine what it would say to a proposal, without sending it: takes the arguments of propose_order "
        "and answers allowed or refused with the rule code, the detail and what is left of every limit."
    ),
    ui_hint="Lets the agent check a size or a stop before it proposes; costs one step.",
    schema=intents.SCHEMA,
    example={
        "action": "open_long",
        "symbol": "BTC",
        "size_usd": 500,
        "leverage": 2,
        "stop_loss": 58000,
        "reason": "breakout above the range",
    },
    look=look,
    # R1 of the engine judges the shape, so that the answer here equals the engine's verdict.
    checked=False,
)
