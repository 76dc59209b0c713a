"""Refuses a scenario of which a part would silently not happen, before it is run or seeded.

`read_scenario` checks the form of a document, also of one that is stored with a run. This is for documents that a user hands
in. Posts are judged by the world itself: they are applied once to the first forum.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from pitboss.core.errors import UserError
from pitboss.venues.community.chain.abi import read_abi
from pitboss.venues.community.events import CreateThread, ForumEvent
from pitboss.venues.community.forum import Forum
from pitboss.venues.community.ownership import ContractKey, contract_key
from pitboss.venues.community.scenario import (
    AGENT_ID,
    Scenario,
    first_forum,
    new_contracts,
    owner_events,
    scheduled_events,
)
from pitboss.venues.community.world import apply

HINT = "see docs/community.md, A scenario"


def require_possible(scenario: Scenario, name: str) -> None:
    """Raise `UserError` that names the first part of a scenario which would not happen. `name` is that of the file."""
    problem = (
        _handle_problem(scenario)
        or _entry_problem(scenario)
        or _contract_problem(scenario)
        or _post_problem(scenario, first_forum(scenario, 0))
    )
    if problem:
        raise UserError(f"{name}: {problem}", HINT)


def _handle_problem(scenario: Scenario) -> str:
    handles: dict[str, str] = {}
    for handle in sorted({scenario.agent, *(post.author for post in scenario.posts)}):
        other = handles.setdefault(handle.lower(), handle)
        if other != handle:
            return f"the handles {other} and {handle} differ only in case"
    return ""


def _entry_problem(scenario: Scenario) -> str:
    contract_id = _repeated(contract.id for contract in scenario.contracts)
    bug_id = _repeated(bug.id for bug in scenario.bugs)
    kind = _repeated(reply.to for reply in scenario.owner_replies)
    if contract_id:
        return f"two contracts have the id {contract_id!r}"
    if bug_id:
        return f"two bugs have the id {bug_id!r}"
    if kind:
        return f"two owner_replies are to {kind}: only the first would count"
    for bug in scenario.bugs:
        if not all(word.strip() for group in bug.evidence for word in group):
            return f"bug {bug.id} has an empty word in evidence, which every report would have"
    return ""


def _repeated(values: Iterable[str]) -> str:
    """The first of the values that occurs more than once; empty if there is none."""
    return next((value for value, count in Counter(values).items() if count > 1), "")


def _contract_problem(scenario: Scenario) -> str:
    ids: dict[ContractKey, str] = {}
    for contract in new_contracts(scenario):
        other = ids.setdefault(contract_key(contract), contract.id)
        if other != contract.id:
            return f"the contracts {other} and {contract.id} have one address on one chain"
    for contract in scenario.contracts:
        signatures = {function.signature for function in read_abi(list(contract.abi)).functions}
        for signature in contract.answers:
            if signature not in signatures:
                return f"contract {contract.id}: the signature {signature[:100]!r} is not in the ABI"
    return ""


def _post_problem(scenario: Scenario, forum: Forum) -> str:
    for event in scheduled_events(scenario, 0):
        is_thread = isinstance(event, CreateThread)
        if not is_thread and event.thread_id not in forum.threads:
            return f"post {event.comment_id} comes before its thread"
        forum, refused = _after(forum, [event])
        if refused:
            return f"post {event.thread_id if is_thread else event.comment_id} is refused: {refused}"
    for thread in [thread for thread in forum.threads.values() if thread.agent_id == AGENT_ID]:
        forum, refused = _after(forum, owner_events(scenario, thread.id, thread.kind, thread.created_at))
        if refused:
            return f"the owner's reply to {thread.id} is refused: {refused}"
    for reply in scenario.owner_replies:
        request = CreateThread(0, AGENT_ID, f"of the agent: {reply.to}", "community", "a thread", "a text", reply.to)
        _, refused = _after(forum, [request, *owner_events(scenario, request.thread_id, reply.to, 0)])
        if refused:
            return f"the owner's reply to {reply.to} is refused: {refused}"
    return ""


def _after(forum: Forum, events: Sequence[ForumEvent]) -> tuple[Forum, str]:
    """The forum after events, and why one of them was refused; empty if all were accepted."""
    for event in events:
        forum, (receipt,) = apply(forum, event)
        if receipt.kind == "rejected":
            return forum, str(receipt.facts["text"])
    return forum, ""
