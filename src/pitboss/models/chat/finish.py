"""How a chat completion ended, and the problem where it is not an answer.

The texts are shown to the model and stored with replies: they must not change.
"""

from pitboss.core import codec
from pitboss.core.intent import FinishReason
from pitboss.core.ports import ToolCall

EMPTY = "the reply was empty"
CUT = "the reply was cut off at its limit of tokens"
BLOCKED = "the reply was blocked by the provider's filter"
BROKE = "the provider broke off in the middle of the reply"
REFUSED = "the model refused"

_CUT = frozenset({"length", "max_tokens", "model_length", "max_output_tokens", "model_context_window_exceeded"})
_BLOCKED = frozenset({
    "content_filter", "safety", "refusal", "recitation", "blocklist", "prohibited_content", "spii", "image_safety", "content_filtered",
})  # fmt: skip
_BROKE = frozenset({
    "error", "abort", "aborted", "cancelled", "canceled", "insufficient_system_resource", "malformed_function_call", "unexpected_tool_call", "function_call_filter",
})  # fmt: skip


def read_finish(value: object, text: str, calls: tuple[ToolCall, ...], refusal: str) -> tuple[FinishReason, str]:
    """The finish reason and the problem, which is empty for an answer."""
    # Google's compatible address adds its own reason: "content_filter: SAFETY".
    reason = value.lower().partition(":")[0].strip() if isinstance(value, str) else ""
    if reason in _CUT:
        return "length", CUT
    if refusal:
        return "error", f"{REFUSED}: {codec.printable(refusal)[:300]}"
    if reason in _BLOCKED:
        return "error", BLOCKED
    if reason in _BROKE:
        return "error", BROKE
    if calls:
        return "tool_calls", ""
    return "stop", "" if text.strip() else EMPTY
