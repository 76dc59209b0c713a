"""Everything recorded about one decision as text, cut to what fits into the answer of a tool."""

from collections.abc import Mapping
from typing import Any

from pitboss.core import codec
from pitboss.core.instant import Instant, iso
from pitboss.core.receipt import Receipt
from pitboss.prompt import render
from pitboss.tools.history_text import margin_lines, number, receipt_line, safe_name

TEXT_CHARS, RESULT_CHARS, ARGUMENT_CHARS, PROPOSAL_CHARS = 600, 300, 200, 800
STEPS, CALLS, VERDICTS, RECEIPTS = 8, 6, 4, 12


def decision_text(at: Instant, body: Mapping[str, Any]) -> str:
    """Prompt digest, steps, proposals, verdicts with their margins, receipts and cost of one record."""
    lines = [f"decision at {iso(at)}, record {body['seq']}, digest {body['digest']}"]
    lines.append(f"prompt sha256 {body['prompt_sha256'] or 'none: no prompt was made'}")
    before, after = body["before"], body["after"]
    equity, cash = (before.get(f"{name}_usd", before.get(name)) for name in ("equity", "cash"))
    lines.append(f"equity {number(equity, 'usd')}, cash {number(cash, 'usd')}")
    lines.append(f"positions before: {_positions(before)}; after: {_positions(after)}")
    if body["flags"]:
        lines.append(f"flags: {', '.join(body['flags'])}")
    lines += _lessons(body.get("reflection"))
    lines += _steps(body["steps"])
    if body["text"] and not body["steps"]:
        lines.append(f"said {render.fence(body['text'], TEXT_CHARS)}")
    lines += _verdicts(body["proposals"], body["verdicts"])
    lines += _limited([receipt_line(Receipt(**receipt)) for receipt in body["receipts"]], RECEIPTS, "receipts")
    lines.append(_cost(body["extra"]))
    return "\n".join(lines)


def _positions(summary: Mapping[str, Any]) -> str:
    """Positions by symbol, or as a list of contracts, whichever the venue records."""
    positions = summary.get("positions") or {}
    if isinstance(positions, Mapping):
        listed = [f"{symbol} {number(position['size'])}" for symbol, position in sorted(positions.items())]
    else:
        listed = [" ".join(str(value) for value in position.values()) for position in positions]
    return ", ".join(listed) or "none"


def _lessons(reflection: Mapping[str, Any] | None) -> list[str]:
    """The outcome of a reflection before the decision; empty if there was none."""
    if reflection is None:
        return []
    if reflection["flags"]:
        return [f"lessons were asked for and the old ones kept: {render.fence(reflection['text'], TEXT_CHARS)}"]
    return ["lessons were written first:", *_steps(reflection["steps"])]


def _steps(steps: list[dict[str, Any]]) -> list[str]:
    lines: list[str] = []
    for index, step in enumerate(steps[:STEPS], 1):
        reply = f" said {render.fence(step['text'], TEXT_CHARS)}" if step["text"] else ""
        lines.append(f"step {index} ({step['finish_reason']}){reply}")
        for call in step["calls"][:CALLS]:
            arguments = render.fence(codec.dumps(call["arguments"]).decode(), ARGUMENT_CHARS)
            gave = "failed" if call["failed"] else "gave"
            result = render.fence(call["result"], RESULT_CHARS)
            lines.append(f"  called {safe_name(call['name'])} {arguments} {gave} {result}")
        if len(step["calls"]) > CALLS:
            lines.append(f"  and {len(step['calls']) - CALLS} more calls")
    return [*lines, *([f"and {len(steps) - STEPS} more steps"] if len(steps) > STEPS else [])]


def _verdicts(proposals: list[Any], verdicts: list[dict[str, Any]]) -> list[str]:
    lines: list[str] = []
    for proposal, verdict in list(zip(proposals, verdicts, strict=False))[:VERDICTS]:
        lines.append(f"proposed {render.fence(codec.dumps(proposal).decode(), PROPOSAL_CHARS)}")
        why = f" by {verdict['code']}: {render.fence(verdict['detail'], TEXT_CHARS)}" if verdict["code"] else ""
        lines.append(f"the engine said {verdict['outcome']}{why}{' (duplicate)' if verdict['duplicate'] else ''}")
        lines += [f"  {line}" for line in margin_lines(verdict["margins"])]
    if len(verdicts) > VERDICTS:
        lines.append(f"and {len(verdicts) - VERDICTS} more proposals")
    return lines or ["nothing was proposed"]


def _limited(lines: list[str], most: int, plural: str) -> list[str]:
    return [*lines[:most], *([f"and {len(lines) - most} more {plural}"] if len(lines) > most else [])]


def _cost(extra: Mapping[str, Any]) -> str:
    cost = extra.get("cost_usd")
    usage = extra.get("usage") or {}
    price = "cost unknown" if cost is None else f"cost {number(cost, 'usd')} USD"
    tokens = f", {usage.get('input_tokens', 0)} tokens in, {usage.get('output_tokens', 0)} out" if usage else ""
    return f"{price}{tokens}"
