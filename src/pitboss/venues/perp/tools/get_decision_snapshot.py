"""Everything that was recorded about one decision, cut to what fits into an answer."""

from collections.abc import Mapping
from typing import Any

from pitboss.core import codec
from pitboss.core.errors import ToolFailed
from pitboss.core.instant import Instant, iso
from pitboss.core.receipt import Receipt
from pitboss.prompt import render
from pitboss.tools.define import ToolContext, define_tool
from pitboss.tools.history_text import MOMENT, margin_lines, moment, not_after, number, receipt_line, word

WORDS, RESULT_CHARS, ARGUMENT_CHARS, PROPOSAL_CHARS = 600, 300, 200, 800
STEPS, CALLS, VERDICTS, RECEIPTS = 8, 6, 4, 12

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["at"],
    "properties": {"at": {**MOMENT, "description": "The tick of the decision (UTC), such as 2025-03-01T12:00:00Z."}},
}


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Prompt digest, steps, proposals, verdicts with their margins, receipts, cost."""
    now = context.observation.at
    at = not_after(now, "at", moment(arguments, "at"))
    body = context.past.snapshot(at, now)
    if body is None:
        raise ToolFailed(f"no decision is recorded at {iso(at)}{_near(context, at)}")
    return tell(at, body)


def tell(at: Instant, body: Mapping[str, Any]) -> str:
    """The lines of one record, for whoever has it already."""
    lines = [f"decision at {iso(at)}, record {body['seq']}, digest {body['digest']}"]
    lines.append(f"prompt sha256 {body['prompt_sha256'] or 'none: no prompt was made'}")
    before, after = body["before"], body["after"]
    lines.append(f"equity {number(before['equity_usd'], 'usd')}, cash {number(before['cash_usd'], 'usd')}")
    lines.append(f"positions before: {_positions(before)}; after: {_positions(after)}")
    if body["flags"]:
        lines.append(f"flags: {', '.join(body['flags'])}")
    lines += _lessons(body.get("reflection"))
    lines += _steps(body["steps"])
    if body["text"] and not body["steps"]:
        lines.append(f"said {render.fence(body['text'], WORDS)}")
    lines += _verdicts(body["proposals"], body["verdicts"])
    lines += _cut([receipt_line(Receipt(**one)) for one in body["receipts"]], RECEIPTS, "receipts")
    lines.append(_cost(body["extra"]))
    return "\n".join(lines)


def _near(context: ToolContext, at: Instant) -> str:
    """The decision before the one that is not there."""
    earlier = context.past.decisions(min(at, context.observation.at), 1)
    return f"; the one before is at {iso(earlier[0].at)}" if earlier else "; there is none before it either"


def _positions(summary: Mapping[str, Any]) -> str:
    held = summary["positions"]
    return ", ".join(f"{symbol} {number(one['size'])}" for symbol, one in sorted(held.items())) or "none"


def _lessons(reflection: Mapping[str, Any] | None) -> list[str]:
    """What came of asking for lessons before the decision, where that was done."""
    if reflection is None:
        return []
    if reflection["flags"]:
        return [f"lessons were asked for and the old ones kept: {render.fence(reflection['text'], WORDS)}"]
    return ["lessons were written first:", *_steps(reflection["steps"])]


def _steps(steps: list[dict[str, Any]]) -> list[str]:
    lines: list[str] = []
    for place, step in enumerate(steps[:STEPS], 1):
        said = f" said {render.fence(step['text'], WORDS)}" if step["text"] else ""
        lines.append(f"step {place} ({step['finish_reason']}){said}")
        for call in step["calls"][:CALLS]:
            arguments = render.fence(codec.dumps(call["arguments"]).decode(), ARGUMENT_CHARS)
            gave = "failed" if call["failed"] else "gave"
            result = render.fence(call["result"], RESULT_CHARS)
            lines.append(f"  called {word(call['name'])} {arguments} {gave} {result}")
        if len(step["calls"]) > CALLS:
            lines.append(f"  and {len(step['calls']) - CALLS} more calls")
    return [*lines, *([f"and {len(steps) - STEPS} more steps"] if len(steps) > STEPS else [])]


def _verdicts(proposals: list[Any], verdicts: list[dict[str, Any]]) -> list[str]:
    lines: list[str] = []
    for proposal, verdict in list(zip(proposals, verdicts, strict=False))[:VERDICTS]:
        lines.append(f"proposed {render.fence(codec.dumps(proposal).decode(), PROPOSAL_CHARS)}")
        why = f" by {verdict['code']}: {render.fence(verdict['detail'], WORDS)}" if verdict["code"] else ""
        lines.append(f"the engine said {verdict['outcome']}{why}{' (duplicate)' if verdict['duplicate'] else ''}")
        lines += [f"  {line}" for line in margin_lines(verdict["margins"])]
    if len(verdicts) > VERDICTS:
        lines.append(f"and {len(verdicts) - VERDICTS} more proposals")
    return lines or ["nothing was proposed"]


def _cut(lines: list[str], most: int, what: str) -> list[str]:
    return [*lines[:most], *([f"and {len(lines) - most} more {what}"] if len(lines) > most else [])]


def _cost(extra: Mapping[str, Any]) -> str:
    cost = extra.get("cost_usd")
    usage = extra.get("usage") or {}
    words = "cost unknown" if cost is None else f"cost {number(cost, 'usd')} USD"
    tokens = f", {usage.get('input_tokens', 0)} tokens in, {usage.get('output_tokens', 0)} out" if usage else ""
    return f"{words}{tokens}"


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
