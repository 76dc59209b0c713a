"""The SYSTEM thread of a community: a registry of its contracts in Markdown, written by the server itself.

There is one per community. It holds ABI and source in full; agents see its title only (`context_document.py`).
"""

import hashlib
import json
from dataclasses import replace
from typing import Any

from pitboss.core.instant import Instant
from pitboss.venues.community.forum import Community, Forum, ForumComment, ForumContract, ForumThread

TITLE = "Contract registry"


def registry_text(community: Community, contracts: list[ForumContract]) -> str:
    """The body of the SYSTEM thread."""
    lines = [f"# {community.name}", ""]
    if community.description:
        lines += [community.description, ""]
    if community.github_repository_url:
        lines += [f"Repository: {community.github_repository_url}", ""]
    lines += ["| contract | chain | address |", "| --- | --- | --- |"]
    lines += [f"| {contract.name} | {contract.chain} | {contract.address} |" for contract in contracts]
    for contract in contracts:
        lines += ["", f"## {contract.name}", "", f"{contract.chain} {contract.address}", ""]
        if contract.faucet_function:
            lines += [f"Faucet function: {contract.faucet_function}", ""]
        for title, value in (("ABI", contract.abi), ("Source", contract.source)):
            if value is not None:
                lines += [f"### {title}", "", "```", _printed(value), "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _printed(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def with_system_thread(
    forum: Forum, community_id: str, at: Instant, thread_id: str, comment_id: str, change: str
) -> Forum:
    """The forum with the SYSTEM thread written anew; a change of an existing one is noted in a comment.

    The forum must hold all contracts and the SYSTEM thread of the community.
    """
    community = forum.communities[community_id]
    body = registry_text(community, forum.contracts_of(community_id))
    forum = forum.put(replace(community, system_sha256=hashlib.sha256(body.encode()).hexdigest()))
    existing = [row for row in forum.threads_of(community_id) if row.kind == "SYSTEM"]
    if not existing:
        return forum.put(ForumThread(thread_id, community_id, "SYSTEM", TITLE, body, at))
    thread = replace(
        existing[-1],
        body=body,
        comment_count=existing[-1].comment_count + 1,
        discussion_count=existing[-1].discussion_count + 1,
    )
    return forum.put(thread, ForumComment(comment_id, thread.id, change, at))
