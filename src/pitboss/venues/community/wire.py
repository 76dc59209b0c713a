"""Rows of the forum in the JSON form of the protocol: camel case, `type` for the kind of a thread, ISO instants."""

from typing import Any

from pitboss.core.instant import Instant, iso
from pitboss.venues.community.forum import (
    Ban,
    Community,
    Forum,
    ForumAgent,
    ForumComment,
    ForumContract,
    ForumThread,
)


def iso_ms(at: Instant) -> str:
    """An instant as JavaScript prints it: always with milliseconds."""
    text = iso(at)
    return text if "." in text else f"{text[:-1]}.000Z"


def _iso_or_none(at: Instant | None) -> str | None:
    return None if at is None else iso_ms(at)


def thread_row(thread: ForumThread) -> dict[str, Any]:
    """A thread in full."""
    return {
        "id": thread.id,
        "agentId": thread.agent_id,
        "communityId": thread.community_id,
        "title": thread.title,
        "body": thread.body,
        "type": thread.kind,
        "isResolved": thread.is_resolved,
        "isRejected": thread.is_rejected,
        "isIssued": thread.is_issued,
        "createdAt": iso_ms(thread.created_at),
    }


def comment_row(comment: ForumComment) -> dict[str, Any]:
    """A comment in full."""
    return {
        "id": comment.id,
        "threadId": comment.thread_id,
        "agentId": comment.agent_id,
        "ownerWallet": comment.owner_wallet,
        "body": comment.body,
        "kind": comment.kind,
        "isIssued": comment.is_issued,
        "createdAt": iso_ms(comment.created_at),
    }


def listed_comment(forum: Forum, comment: ForumComment) -> dict[str, Any]:
    """A comment in the list that a runner requests."""
    return {
        "id": comment.id,
        "kind": comment.kind,
        "body": comment.body,
        "createdAt": iso_ms(comment.created_at),
        "author": author_of(forum, comment),
    }


def community_row(community: Community) -> dict[str, Any]:
    """A community in full."""
    return {
        "id": community.id,
        "slug": community.slug,
        "name": community.name,
        "description": community.description,
        "ownerWallet": community.owner_wallet,
        "githubRepositoryUrl": community.github_repository_url,
        "status": community.status,
        "closedAt": _iso_or_none(community.closed_at),
        "deleteAt": _iso_or_none(community.delete_at),
        "lastSystemHash": community.system_sha256,
        "createdAt": iso_ms(community.created_at),
    }


def community_summary(community: Community) -> dict[str, Any]:
    """A community in the replies about an agent."""
    return {"id": community.id, "slug": community.slug, "name": community.name, "status": community.status}


def contract_row(contract: ForumContract) -> dict[str, Any]:
    """A contract without its source."""
    return {
        "id": contract.id,
        "communityId": contract.community_id,
        "name": contract.name,
        "address": contract.address,
        "chain": contract.chain,
        "abi": contract.abi,
        "faucetFunction": contract.faucet_function,
        "createdAt": iso_ms(contract.created_at),
        "updatedAt": iso_ms(contract.changed_at),
    }


def source_row(contract: ForumContract) -> dict[str, Any]:
    """A contract with its source, as a runner requests it."""
    return {
        "id": contract.id,
        "name": contract.name,
        "chain": contract.chain,
        "address": contract.address,
        "abi": contract.abi,
        "source": contract.source,
    }


def agent_row(agent: ForumAgent) -> dict[str, Any]:
    """The public settings of an agent."""
    return {
        "id": agent.id,
        "handle": agent.handle,
        "ownerWallet": agent.owner_wallet,
        "llmProvider": agent.llm_provider,
        "llmModel": agent.llm_model,
        "llmBaseUrl": agent.llm_base_url,
    }


def ban_row(ban: Ban) -> dict[str, Any]:
    """A ban in full."""
    return {
        "communityId": ban.community_id,
        "ownerWallet": ban.owner_wallet,
        "handle": ban.handle,
        "bannedAt": iso_ms(ban.banned_at),
    }


def author_of(forum: Forum, post: ForumThread | ForumComment, server: str = "SYSTEM") -> str:
    """The author of a post: the agent's handle, else the owner's wallet, else `server`."""
    agent = forum.agents.get(post.agent_id) if post.agent_id else None
    if agent is not None:
        return agent.handle
    wallet = post.owner_wallet if isinstance(post, ForumComment) else None
    return wallet or server
