"""The record of a tick: the part that every rerun must reproduce byte for byte, and the part that may differ.

Plain dictionaries; `core.snapshot` hashes and chains them. Keys stand in alphabetical order where many ticks have them:
the canonical form sorts them, and what is in order already is encoded in a fifth less time.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pitboss.agent.reflection import Reflection
from pitboss.core import codec
from pitboss.core.curve import Curve
from pitboss.core.intent import Decision, Step
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import prompt_sha256
from pitboss.core.verdict import Verdict, brief_margins


def tick_covered(
    decision: Decision,
    prompt: tuple[str, str] | None,
    contents: Sequence[bytes],
    verdicts: Sequence[Verdict],
    receipts: Sequence[Receipt],
    equity: Curve,
    before: dict[str, Any],
    after: dict[str, Any],
) -> dict[str, Any]:
    """The part of a tick's record that its digest covers."""
    return {
        "after": after,
        "before": before,
        "equity": equity,
        "finish_reason": decision.finish_reason,
        "flags": list(decision.flags),
        "prompt_sha256": None if prompt is None else prompt_sha256(prompt),
        "proposals": [codec.fragment(content) for content in contents],
        "receipts": receipts,
        "steps": [_step_covered(step) for step in decision.steps],
        "text": decision.text,
        "verdicts": [_verdict_covered(verdict) for verdict in verdicts],
    }


def tick_extra(decision: Decision, prompt: tuple[str, str] | None) -> dict[str, Any]:
    """The part that may differ between two correct runs: prompt text, timings, provider ids, cost."""
    return {
        "prompt": prompt,
        "cost_usd": decision.cost_usd,
        "saved_usd": decision.saved_usd,
        "usage": decision.usage,
        "steps": [_step_extra(step) for step in decision.steps],
    }


def _step_extra(step: Step) -> dict[str, Any]:
    return {
        "latency_ms": step.latency_ms,
        "provider_id": step.provider_id,
        "model": step.model,
        "usage": step.usage,
        "cost_usd": step.cost_usd,
        **({"rejected_settings": step.rejected_settings} if step.rejected_settings else {}),
    }


def reflection_covered(reflection: Reflection) -> dict[str, Any]:
    """The covered part of a reflection; absent from ticks without one."""
    return {
        "prompt_sha256": prompt_sha256(reflection.prompt),
        "steps": [_step_covered(step) for step in reflection.steps],
        "text": reflection.why,
        "flags": [reflection.flag] if reflection.flag else [],
    }


def with_reflection_cost(decision: Decision, reflection: Reflection) -> Decision:
    """The decision with the usage and the cost of the reflection added."""
    usage, cost, saved = decision.usage, decision.cost_usd, decision.saved_usd
    for step in reflection.steps:
        usage += step.usage
        cost = None if cost is None or step.cost_usd is None else cost + step.cost_usd
        saved += step.saved_usd
    return replace(decision, usage=usage, cost_usd=cost, saved_usd=saved)


def reflection_extra(reflection: Reflection, keep_prompts: bool) -> dict[str, Any]:
    """The part of a reflection that may differ between two correct runs."""
    return {
        "prompt": reflection.prompt if keep_prompts else None,
        "steps": [_step_extra(step) for step in reflection.steps],
    }


def _verdict_covered(verdict: Verdict) -> dict[str, Any]:
    """A verdict in its stored form; limit and use of each rule are omitted if it is allowed."""
    allowed = verdict.outcome == "allowed"
    return {
        "code": verdict.code,
        "detail": verdict.detail,
        "duplicate": verdict.duplicate,
        "margins": brief_margins(verdict.margins) if allowed else verdict.margins,
        "order_id": verdict.order_id,
        "outcome": verdict.outcome,
    }


def _step_covered(step: Step) -> dict[str, Any]:
    return {
        "calls": [
            {"arguments": call.arguments, "failed": call.failed, "name": call.name, "result": call.result}
            for call in step.calls
        ],
        "finish_reason": step.finish_reason,
        "text": step.text,
    }
