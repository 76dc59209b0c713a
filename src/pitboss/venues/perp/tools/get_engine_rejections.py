"""Tool `get_engine_rejections`: the engine's refusals by rule, and how far beyond the limit the newest were."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pitboss.core.instant import iso
from pitboss.core.past import PastDecision
from pitboss.tools.define import ToolContext, define_tool
from pitboss.tools.history_text import count_of, decision_line, margin_lines

FEW, MOST = 5, 20

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": [],
    "properties": {"count": count_of("of the last refusals", MOST, FEW)},
}


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return counts by rule over all decisions, then the newest refusals with limit and use."""
    at = context.observation.at
    decisions = context.past.decisions(at)
    refused = [decision for decision in decisions if decision.outcome == "refused"]
    if not decisions:
        return f"nothing was decided before {iso(at)}"
    title = f"{len(refused)} of {len(decisions)} decisions were refused, since {iso(decisions[-1].at)}"
    counts = Counter(decision.code for decision in refused)
    lines = [
        title,
        *(f"{code}: {number}" for code, number in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))),
    ]
    for decision in refused[: arguments.get("count", FEW)]:
        lines.append(decision_line(decision))
        lines += [f"  {line}" for line in _margins(context, decision)]
    return "\n".join(lines)


def _margins(context: ToolContext, decision: PastDecision) -> list[str]:
    """Return the refusing rule's own numbers, as recorded in the verdict."""
    body = context.past.snapshot(decision.at, context.observation.at)
    verdicts = body["verdicts"] if body else ()
    return [line for verdict in verdicts[:1] for line in margin_lines(verdict["margins"], decision.code)]


TOOL = define_tool(
    name="get_engine_rejections",
    category="introspection",
    description="Get what the engine refused: counts by rule, and the last refusals with limit and use.",
    ui_hint="To see whether an agent keeps running into the same limit.",
    modes=("read",),
    schema=SCHEMA,
    example={"count": 3},
    look=look,
)
