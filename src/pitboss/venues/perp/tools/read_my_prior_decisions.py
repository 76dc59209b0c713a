"""Tool `read_my_prior_decisions`: the agent's own earlier decisions and the engine's verdicts on them."""

from collections.abc import Mapping
from typing import Any

from pitboss.core.instant import iso
from pitboss.core.past import DECISIONS
from pitboss.tools.define import ToolContext, define_tool
from pitboss.tools.history_text import count_of, decision_line

FEW, MOST = 10, 50
_OUTCOME = {"accepted": "accepted", "refused": "refused", "no_op": "noop"}

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": [],
    "properties": {
        "count": count_of("decisions", MOST, FEW),
        "outcome": {
            "type": "string",
            "enum": ["any", *_OUTCOME],
            "description": "Only decisions with this outcome; any when left out.",
        },
    },
}


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return one line for each decision, newest first, without model costs, which do not concern the agent."""
    at, outcome = context.observation.at, _OUTCOME.get(arguments.get("outcome", "any"))
    count = arguments.get("count", FEW)
    decisions = context.past.decisions(at, DECISIONS if outcome else count)
    selected = [decision for decision in decisions if outcome in (None, decision.outcome)][:count]
    searched = f" among the last {DECISIONS}" if len(decisions) == DECISIONS and len(selected) < count else ""
    if not selected:
        kind = f"{arguments['outcome']} decision" if outcome else "decision"
        return f"no {kind} before {iso(at)}{searched}"
    title = f"{len(selected)} decisions before {iso(at)}{searched}, newest first"
    return "\n".join((title, *map(decision_line, selected)))


TOOL = define_tool(
    name="read_my_prior_decisions",
    category="introspection",
    description="Read your own earlier decisions, newest first: what you proposed, why, and what the engine said.",
    ui_hint="Helps an agent to stay with a plan, and not to repeat a proposal that was refused.",
    schema=SCHEMA,
    example={"count": 5},
    look=look,
)
