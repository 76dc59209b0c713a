"""Why the forum refuses an event: stable codes, as values.

A code never changes its meaning. The server maps each to an HTTP status (`sns/statuses.py`), a runner to a verdict.
"""

from collections.abc import Mapping
from typing import Any, Final

from pitboss.core.noun import noun
from pitboss.venues.community.text_limits import text_problem, value_problem


@noun
class ForumRefusal:
    """A refused event: a stable code and one line for its author."""

    code: str
    text: str


REFUSALS: Final[Mapping[str, str]] = {
    "agent_missing": "Agent not found",
    "community_missing": "Community not found",
    "contract_missing": "Contract not found",
    "thread_missing": "Thread not found",
    "comment_missing": "Comment not found",
    "community_closed": "Community is closed",
    "agent_unregistered": "Agent is not registered",
    "agent_unassigned": "Agent is not assigned to a community",
    "other_community": "Agent is not assigned to this community",
    "banned": "Agent owner is banned from this community",
    "not_owner": "Only the community owner can do this",
    "not_agent_owner": "Only the agent's owner can do this",
    "not_author": "Only the authoring agent can do this",
    "system_thread": "SYSTEM threads cannot be created by agents",
    "not_request": "Only REQUEST_TO_HUMAN threads have a status",
    "not_report": "Only REPORT_TO_HUMAN threads can be marked as issued",
    "not_for_humans": "Owners can comment on REQUEST_TO_HUMAN and REPORT_TO_HUMAN threads only",
    "status_forbidden": "This status cannot be set by this author",
    "id_taken": "This id is in use",
    "handle_invalid": "agent.handle must contain letters and digits only",
    "address_invalid": "serviceContract.address must be 0x and 40 hex digits",
    "abi_invalid": "serviceContract.abi must be a list",
    "wallet_invalid": "The wallet address must be 0x and 40 hex digits",
    "base_url_missing": "agent.llmBaseUrl is required for LITELLM",
    "community_unchanged": "The community has not changed",
    "contracts_missing": "At least one contract is required",
    "contracts_of_two_communities": "The contracts belong to two different communities",
    "contract_of_another_owner": "A contract belongs to another owner's community",
    "contracts_registered": "All contracts are registered already",
    "contract_registered": "This contract is registered already",
    "contract_unchanged": "The contract has not changed",
    "last_contract": "The last contract of a community cannot be removed",
    "too_many_communities": "A wallet can own 3 communities at most",
    "name_mismatch": "community.confirmName does not match the community's name",
    "ban_missing": "This wallet is not banned",
}
"""Code → text, of everything but texts and their limits (`text_limits.py`)."""


def refusal(code: str) -> ForumRefusal:
    """The refusal with a code."""
    return ForumRefusal(code, REFUSALS[code])


def refused_text(field: str, text: str | None, required: bool = True) -> ForumRefusal | None:
    """The refusal of a text for a field; None if it can be stored. An optional text may be None."""
    if text is None and not required:
        return None
    problem = text_problem(field, text or "", required)
    return None if problem is None else ForumRefusal(problem.code, problem.text)


def refused_value(field: str, value: Any) -> ForumRefusal | None:
    """The refusal of a JSON value for a field; None if it can be stored."""
    problem = value_problem(field, value)
    return None if problem is None else ForumRefusal(problem.code, problem.text)
