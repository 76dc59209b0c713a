"""Tool `get_decision_snapshot`: the record of one decision, truncated to the size of an answer."""

from collections.abc import Mapping
from typing import Any

from pitboss.core.errors import ToolFailed
from pitboss.core.instant import Instant, iso
from pitboss.tools.decision_text import decision_text
from pitboss.tools.define import ToolContext, define_tool
from pitboss.tools.history_text import MOMENT, moment, not_after

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["at"],
    "properties": {"at": {**MOMENT, "description": "The tick of the decision (UTC), such as 2025-03-01T12:00:00Z."}},
}


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return prompt digest, steps, proposals, verdicts with their margins, receipts and cost."""
    now = context.observation.at
    at = not_after(now, "at", moment(arguments, "at"))
    body = context.past.snapshot(at, now)
    if body is None:
        raise ToolFailed(f"no decision is recorded at {iso(at)}{_near(context, at)}")
    return decision_text(at, body)


def _near(context: ToolContext, at: Instant) -> str:
    """Return the end of the error message: the time of the latest decision before `at`, if any."""
    earlier = context.past.decisions(min(at, context.observation.at), 1)
    return f"; the one before is at {iso(earlier[0].at)}" if earlier else "; there is none before it either"


TOOL = define_tool(
    name="get_decision_snapshot",
    category="introspection",
    description=(
        "Get everything recorded about one decision: prompt digest, steps with tool calls, proposal, the engine's "
        "verdict with the distance to every limit, what happened, cost."
    ),
    ui_hint="To explain one decision. get_recent_decisions gives the times.",
    modes=("read",),
    schema=SCHEMA,
    example={"at": "2025-03-01T12:00:00Z"},
    look=look,
)
