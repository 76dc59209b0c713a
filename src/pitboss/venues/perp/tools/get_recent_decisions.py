"""Tool `get_recent_decisions`: the newest decisions of a run for an outside client, with tool calls and cost."""

from collections.abc import Mapping
from typing import Any

from pitboss.core.instant import iso
from pitboss.core.past import PastDecision
from pitboss.prompt import render
from pitboss.tools.define import ToolContext, define_tool
from pitboss.tools.history_text import MOMENT, TEXT_CHARS, count_of, decision_line, moment, not_after

FEW, MOST = 10, 50

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": [],
    "properties": {
        "count": count_of("decisions", MOST, FEW),
        "before": {**MOMENT, "description": "Only decisions before this time (UTC); now when left out."},
    },
}


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return two lines for each decision, newest first."""
    at = context.observation.at
    before = not_after(at, "before", moment(arguments, "before")) if "before" in arguments else at
    decisions = context.past.decisions(before, arguments.get("count", FEW))
    if not decisions:
        return f"nothing was decided before {iso(before)}"
    lines = [f"{len(decisions)} decisions before {iso(before)}, newest first"]
    for decision in decisions:
        lines += [decision_line(decision), _calls_and_cost(decision)]
    return "\n".join(lines)


def _calls_and_cost(decision: PastDecision) -> str:
    calls = f"called {', '.join(decision.calls)}" if decision.calls else "called nothing"
    cost = "cost unknown" if decision.cost_usd is None else f"cost {render.amount(decision.cost_usd)} USD"
    text = f"; said {render.fence(decision.text, TEXT_CHARS)}" if decision.proposal and decision.text else ""
    return f"  {calls}; {cost}{text}"


TOOL = define_tool(
    name="get_recent_decisions",
    category="introspection",
    description="Get the newest decisions of the run: outcome, proposal, reason, tools called, cost.",
    ui_hint="The first thing to look at when asking what an agent has been doing.",
    modes=("read",),
    schema=SCHEMA,
    example={"count": 5},
    look=look,
)
