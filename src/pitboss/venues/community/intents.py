"""The actions of an agent in a community, with the protocol's own field names, and a strict parser for untrusted values.

A decision is a list of actions; each of them is one intent, judged and executed in the given order. Parsing never raises: an
action is returned, or everything that is wrong with it. An action that cannot be read does not discard the others: it is
refused by the first rule and reported to the agent. A decision of which no action can be read is malformed as a whole.
"""

import re
from typing import Any, Literal, cast

from pitboss.core.codec import printable
from pitboss.core.decision_format import DecisionFormat
from pitboss.core.noun import noun
from pitboss.venues.community.decision_text import actions_of, read_decision_text
from pitboss.venues.community.forum import CommentKind, RequestStatus, ThreadKind

ActionName = Literal[
    "create_thread", "comment", "tx", "set_request_status", "request_contract_source", "request_thread_comments"
]
ACTION_FIELDS: dict[ActionName, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "create_thread": (("title", "body"), ("threadType",)),
    "comment": (("threadId", "body"), ("commentKind",)),
    "tx": (("threadId", "contractAddress", "functionName", "args"), ("value",)),
    "set_request_status": (("threadId", "status"), ()),
    "request_contract_source": ((), ("contractId", "contractAddress")),
    "request_thread_comments": (("threadId",), ("commentLimit",)),
}
"""Action → its required and its optional fields, besides `action` and `communitySlug`."""
THREAD_KINDS: tuple[ThreadKind, ...] = ("DISCUSSION", "REQUEST_TO_HUMAN", "REPORT_TO_HUMAN")
COMMENT_KINDS: tuple[CommentKind, ...] = ("DISCUSSION", "JOKE")
STATUSES: tuple[RequestStatus, ...] = ("pending", "resolved")
"""What an agent may set; only the owner rejects."""

MAX_ACTIONS = 16
MAX_ARGS = 64
MAX_COMMENT_LIMIT = 200
MAX_WEI = 2**256 - 1
TERMINAL = "submit_actions"
DESCRIPTION = (
    "Submit your actions of this heartbeat, in order; an empty list does nothing. Call it exactly once. Each action is checked "
    "against hard limits, and you are told at the next heartbeat what became of it."
)
_TEXTS = ("communitySlug", "title", "body", "threadType", "threadId", "commentKind", "contractAddress", "functionName", "status", "contractId")  # fmt: skip
_WEI = re.compile(r"0|[1-9][0-9]{0,77}")

_ACTION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["action", "communitySlug"],
    "properties": {
        "action": {"type": "string", "enum": list(ACTION_FIELDS), "description": "What to do."},
        "communitySlug": {"type": "string", "description": "The community's slug, as the context names it."},
        "title": {"type": "string", "description": "create_thread: the title."},
        "body": {"type": "string", "description": "create_thread, comment: the text."},
        "threadType": {"type": "string", "enum": list(THREAD_KINDS), "description": "create_thread: its type. Default: DISCUSSION."},
        "threadId": {"type": "string", "description": "The thread: for comment, tx, set_request_status, request_thread_comments."},
        "commentKind": {"type": "string", "enum": list(COMMENT_KINDS), "description": "comment: its kind. Default: DISCUSSION."},
        "contractAddress": {"type": "string", "description": "tx: the contract. request_contract_source: this or contractId."},
        "functionName": {"type": "string", "description": "tx: the function's name, or its full signature where the name is overloaded."},
        "args": {"type": "array", "items": {}, "maxItems": MAX_ARGS, "description": "tx: the arguments in order; large integers as decimal text."},
        "value": {"type": "string", "description": "tx: wei to send, as decimal text. Default: 0."},
        "status": {"type": "string", "enum": list(STATUSES), "description": "set_request_status: the new status of your own request."},
        "contractId": {"type": "string", "description": "request_contract_source: this or contractAddress."},
        "commentLimit": {"type": "integer", "minimum": 0, "maximum": MAX_COMMENT_LIMIT, "description": "request_thread_comments: how many, newest first."},
    },
}  # fmt: skip
SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["actions"],
    "properties": {
        "actions": {"type": "array", "maxItems": MAX_ACTIONS, "items": _ACTION_SCHEMA, "description": "The actions, in order."},
        "reason": {"type": "string", "description": "Why, in a sentence or two."},
    },
}  # fmt: skip


@noun
class CommunityAction:
    """A well-formed action. Fields that the action does not have are None; `value_wei` is exact."""

    action: ActionName
    community_slug: str
    title: str | None = None
    body: str | None = None
    thread_kind: ThreadKind | None = None
    thread_id: str | None = None
    comment_kind: CommentKind | None = None
    contract_address: str | None = None
    function_name: str | None = None
    args: tuple[Any, ...] = ()
    value_wei: int = 0
    status: RequestStatus | None = None
    contract_id: str | None = None
    comment_limit: int | None = None


def read_action(raw: Any) -> tuple[CommunityAction | None, list[str]]:
    """Parse one untrusted action, or return every problem. A null field counts as absent."""
    if not isinstance(raw, dict):
        return None, ["an action is a JSON object"]
    fields = {key: value for key, value in cast("dict[str, Any]", raw).items() if value is not None}
    name = fields.pop("action", None)
    if not isinstance(name, str) or name not in ACTION_FIELDS:
        return None, [f"action must be one of {', '.join(ACTION_FIELDS)}"]
    action = cast("ActionName", name)
    required, optional = ACTION_FIELDS[action]
    allowed = ("communitySlug", *required, *optional)
    problems = [f"{action} needs {field}" for field in ("communitySlug", *required) if field not in fields]
    problems += [
        f"{action} has no field {printable(str(key))[:40]!r}" for key in sorted(map(str, fields)) if key not in allowed
    ][:5]
    problems += [f"{field} must be text" for field in _TEXTS if not isinstance(fields.get(field, ""), str)]
    if problems:
        return None, problems
    texts = {field: printable(fields[field]) for field in _TEXTS if field in fields}
    if not texts["communitySlug"].strip():
        problems.append("communitySlug is empty")
    problems += [
        f"{field} must be one of {', '.join(values)}"
        for field, values in (("threadType", THREAD_KINDS), ("commentKind", COMMENT_KINDS), ("status", STATUSES))
        if field in texts and texts[field] not in values
    ]
    args, value_wei, comment_limit = fields.get("args", []), _wei(fields.get("value", 0)), fields.get("commentLimit")
    if not isinstance(args, list) or len(cast("list[Any]", args)) > MAX_ARGS:
        problems.append(f"args must be a list of at most {MAX_ARGS} values")
    if value_wei is None:
        problems.append("value must be wei as decimal text")
    if comment_limit is not None and not (type(comment_limit) is int and 0 <= comment_limit <= MAX_COMMENT_LIMIT):
        problems.append(f"commentLimit must be an integer from 0 to {MAX_COMMENT_LIMIT}")
    if action == "request_contract_source" and ("contractId" in texts) == ("contractAddress" in texts):
        problems.append("request_contract_source needs exactly one of contractId and contractAddress")
    if problems or value_wei is None:
        return None, problems
    return CommunityAction(
        action,
        texts["communitySlug"],
        texts.get("title"),
        texts.get("body"),
        cast("ThreadKind", texts.get("threadType", "DISCUSSION")) if action == "create_thread" else None,
        texts.get("threadId"),
        cast("CommentKind", texts.get("commentKind", "DISCUSSION")) if action == "comment" else None,
        texts.get("contractAddress"),
        texts.get("functionName"),
        tuple(cast("list[Any]", args)),
        value_wei,
        cast("RequestStatus | None", texts.get("status")),
        texts.get("contractId"),
        comment_limit,
    ), []


def _wei(value: object) -> int | None:
    """An amount of wei given as decimal text or as an integer; None for anything else, or for more than a word holds."""
    amount = int(value) if isinstance(value, str) and _WEI.fullmatch(value) else value
    return amount if type(amount) is int and 0 <= amount <= MAX_WEI else None


def read_decision(raw: Any) -> tuple[list[Any] | None, list[str]]:
    """The raw actions of a decision; a problem if there are too many, or if there are some and none can be read."""
    if (
        isinstance(raw, dict)
        and "action" not in raw
        and not isinstance(cast("dict[str, Any]", raw).get("actions"), list)
    ):
        return None, ["a decision has a list of actions"]
    if not isinstance(raw, dict | list):
        return None, ["a decision is a JSON object or a list of actions"]
    actions = actions_of(raw)
    if len(actions) > MAX_ACTIONS:
        return None, [f"at most {MAX_ACTIONS} actions, not {len(actions)}"]
    problems = [read_action(action)[1] for action in actions]
    if actions and all(problems):
        return None, [f"action {number}: {'; '.join(wrong)}" for number, wrong in enumerate(problems, 1)][:3]
    return actions, []


DECISION = DecisionFormat(
    TERMINAL,
    DESCRIPTION,
    SCHEMA,
    read_decision,
    "an empty list",
    read_text=read_decision_text,
    split=lambda raw: tuple(actions_of(raw)),
)
"""The decision format of this venue."""
