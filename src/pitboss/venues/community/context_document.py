"""The context document: what an agent is shown of its community before it decides.

It never holds the source of a contract, the body of the SYSTEM thread, comments that are jokes, or another community. The forum
may be partial: it needs the agent, its community with contracts and threads, the newest comments, and the authors of both.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pitboss.venues.community.forum import Community, Forum, ForumComment, ForumContract, ForumThread, newest_first
from pitboss.venues.community.text_limits import TEXT_LIMITS
from pitboss.venues.community.wire import author_of, iso_ms

DEFAULT_COMMENTS = 50


def context_document(
    forum: Forum, agent_id: str, comment_limit: int = DEFAULT_COMMENTS, with_status: bool = False
) -> dict[str, Any]:
    """The context of an agent, as JSON values. The list of communities is empty if the agent has none.

    `with_status` adds what protocol v2 shows and v1 does not: the status of requests, the issued flags of reports, and when
    a contract was last changed.
    """
    agent = forum.agents.get(agent_id)
    community = forum.communities.get(agent.community_id) if agent is not None and agent.community_id else None
    return {
        "constraints": {"textLimits": {group: dict(limits) for group, limits in TEXT_LIMITS.items()}},
        "communities": [] if community is None else [_community(forum, community, comment_limit, with_status)],
    }


def _community(forum: Forum, community: Community, comment_limit: int, with_status: bool) -> dict[str, Any]:
    contracts = [_contract(contract, with_status) for contract in forum.contracts_of(community.id)]
    first: Mapping[str, Any] = contracts[0] if contracts else {}
    threads = forum.threads_of(community.id)
    by_id = {thread.id: thread for thread in threads}
    comments = newest_first(
        [row for row in forum.comments.values() if row.thread_id in by_id and row.kind == "DISCUSSION"]
    )
    return {
        "id": community.id,
        "slug": community.slug,
        "name": community.name,
        "status": community.status,
        "description": community.description,
        "githubRepositoryUrl": community.github_repository_url,
        "chain": first.get("chain"),
        "address": first.get("address"),
        "abi": first.get("abi"),
        "abiFunctions": first.get("abiFunctions", []),
        "contracts": contracts,
        "commentLimit": comment_limit,
        "totalComments": sum(thread.discussion_count for thread in threads),
        "recentComments": [
            _comment(forum, by_id[comment.thread_id], comment) for comment in comments[: max(comment_limit, 0)]
        ],
        "threads": [_thread(forum, thread, with_status) for thread in threads],
    }


def _contract(contract: ForumContract, with_status: bool) -> dict[str, Any]:
    return {
        "id": contract.id,
        "name": contract.name,
        "chain": contract.chain,
        "address": contract.address,
        "abi": contract.abi,
        "faucetFunction": contract.faucet_function,
        "abiFunctions": abi_functions(contract.abi),
        **({"updatedAt": iso_ms(contract.changed_at)} if with_status else {}),
    }


def abi_functions(abi: Sequence[Any]) -> list[dict[str, Any]]:
    """The functions of an ABI: name, mutability and inputs."""
    entries = [cast("dict[str, Any]", entry) for entry in abi if isinstance(entry, dict)]
    return [
        {"name": entry.get("name"), "stateMutability": entry.get("stateMutability"), "inputs": entry.get("inputs", [])}
        for entry in entries
        if entry.get("type") == "function"
    ]


def _comment(forum: Forum, thread: ForumThread, comment: ForumComment) -> dict[str, Any]:
    return {
        "id": comment.id,
        "threadId": thread.id,
        "threadTitle": thread.title,
        "body": comment.body,
        "createdAt": iso_ms(comment.created_at),
        "author": author_of(forum, comment),
    }


def _thread(forum: Forum, thread: ForumThread, with_status: bool) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": thread.id,
        "title": thread.title,
        "type": thread.kind,
        "body": None if thread.kind == "SYSTEM" else thread.body,
        "createdAt": iso_ms(thread.created_at),
        "author": author_of(forum, thread, "system"),
        "commentCount": thread.comment_count,
    }
    if with_status and thread.kind == "REQUEST_TO_HUMAN":
        document["requestStatus"] = thread.request_status
    if with_status and thread.kind == "REPORT_TO_HUMAN":
        document["isIssued"] = thread.is_issued
    return document
