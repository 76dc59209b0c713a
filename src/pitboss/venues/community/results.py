"""What became of an action, in the forms that the agent's inbox and the communication log have. Every action gets one.

The shapes are the protocol's: `tx_feedback`, `contract_source_feedback` and `thread_comments_feedback`. All other actions, and
every refusal, get an `action_result`. Built the same way in simulation and live.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pitboss.venues.community.intents import CommunityAction

MAX_ERROR_CHARS = 500


def json_value(value: Any) -> Any:
    """A value as JSON that every reader takes exactly: bytes as hex text, integers beyond 53 bits as decimal text."""
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**53:
        return str(value)
    if isinstance(value, list | tuple):
        return [json_value(item) for item in cast("Sequence[Any]", value)]
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in cast("dict[Any, Any]", value).items()}
    return value


def tx_feedback(action: CommunityAction, result: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a call or transaction; `result` is of `type` call or tx, or holds `error`."""
    return {
        "type": "tx_feedback",
        "communitySlug": action.community_slug,
        "threadId": action.thread_id,
        "contractAddress": action.contract_address,
        "functionName": action.function_name,
        "args": json_value(action.args),
        "value": str(action.value_wei) if action.value_wei else None,
        "result": dict(result),
    }


def call_result(action: CommunityAction, values: Sequence[Any]) -> dict[str, Any]:
    """The result of a read-only call."""
    return {**_call_fields("call", action), "result": json_value(values)}


def transaction_result(
    action: CommunityAction, tx_hash: str, succeeded: bool, gas_used: int | None, block_number: int | None
) -> dict[str, Any]:
    """The result of a transaction that was mined; status 1 if it succeeded, 0 if it was reverted."""
    receipt = {"hash": tx_hash, "status": int(succeeded), "gasUsed": gas_used, "blockNumber": block_number}
    return {**_call_fields("tx", action), **receipt}


def _call_fields(kind: str, action: CommunityAction) -> dict[str, Any]:
    return {
        "type": kind,
        "contractAddress": action.contract_address,
        "functionName": action.function_name,
        "args": json_value(action.args),
    }


def source_feedback(
    action: CommunityAction, contract: Mapping[str, Any] | None, source: Any, cached: bool, error: str = ""
) -> dict[str, Any]:
    """The source of a contract. `contract` is its row of the context document, without ABI."""
    row = contract or {}
    shown = {name: row.get(name) for name in ("id", "name", "chain", "address")}
    return {
        "type": "contract_source_feedback",
        "communitySlug": action.community_slug,
        "contractId": row.get("id", action.contract_id),
        "contractAddress": row.get("address", action.contract_address),
        "cached": cached,
        "result": _failed(error) if error else {"ok": True, "contract": shown, "source": source},
    }


def comments_feedback(
    action: CommunityAction,
    comment_limit: int,
    thread: Mapping[str, Any] | None = None,
    comments: Sequence[Mapping[str, Any]] = (),
    error: str = "",
) -> dict[str, Any]:
    """The newest comments of a thread; jokes are left out."""
    shown = [dict(comment) for comment in comments if comment.get("kind", "DISCUSSION") == "DISCUSSION"]
    return {
        "type": "thread_comments_feedback",
        "communitySlug": action.community_slug,
        "threadId": action.thread_id,
        "commentLimit": comment_limit,
        "result": _failed(error) if error else {"ok": True, "thread": dict(thread or {}), "comments": shown},
    }


def action_result(action: str, community_slug: str, **result: Any) -> dict[str, Any]:
    """The result of any other action."""
    return {
        "type": "action_result",
        "communitySlug": community_slug,
        "action": action,
        "result": {"ok": True, **result},
    }


def refusal_result(raw: Any, code: str, detail: str) -> dict[str, Any]:
    """An action that was refused, by a rule or by the server; `raw` is what the model wrote."""
    fields: Mapping[str, Any] = raw if isinstance(raw, dict) else {}
    texts = {name: str(fields[name])[:80] for name in ("action", "communitySlug", "threadId") if fields.get(name)}
    return {"type": "action_result", **texts, "result": {"ok": False, "code": code, "error": detail[:MAX_ERROR_CHARS]}}


def _failed(error: str) -> dict[str, Any]:
    return {"ok": False, "error": error[:MAX_ERROR_CHARS]}
