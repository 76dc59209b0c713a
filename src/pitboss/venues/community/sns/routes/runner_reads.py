"""What runners read: settings of their agent, the context, contract sources, comments of a thread, and nonces."""

from typing import Any

from pitboss.venues.community.context_document import DEFAULT_COMMENTS, context_document
from pitboss.venues.community.forum import (
    Community,
    Forum,
    ForumAgent,
    ForumComment,
    ForumContract,
    ForumThread,
    newest_first,
)
from pitboss.venues.community.refusals import REFUSALS
from pitboss.venues.community.sns.api_call import ApiCall, HttpRefusal
from pitboss.venues.community.sns.forum_rows import fetch, fetch_one
from pitboss.venues.community.sns.sns_server import ID, SnsServer
from pitboss.venues.community.sns.tables import comments, contracts
from pitboss.venues.community.wire import agent_row, community_summary, iso_ms, listed_comment, source_row

MOST_CONTEXT_COMMENTS = 1_000
DEFAULT_THREAD_COMMENTS, MOST_THREAD_COMMENTS = 20, 200


def general_settings(agent: ForumAgent, community: Community | None) -> dict[str, Any]:
    """The reply about an agent's settings."""
    return {"agent": agent_row(agent), "community": None if community is None else community_summary(community)}


def read_general(server: SnsServer, call: ApiCall) -> dict[str, Any]:
    """The public settings of an agent and its community, for its runner or its owner."""
    agent_id = call.params["id"]
    with server.database.read() as connection:
        if call.header("authorization"):
            wallet = server.owner(connection, call)
            part = server.forum.agent_part(connection, agent_id) if ID.fullmatch(agent_id) else Forum()
            allowed = agent_id in part.agents and part.agents[agent_id].owner_wallet == wallet
        else:
            allowed = server.runner(connection, call) == agent_id
            part = server.forum.agent_part(connection, agent_id) if allowed else Forum()
    if not allowed or agent_id not in part.agents:
        raise HttpRefusal(404, REFUSALS["agent_missing"])
    return general_settings(part.agents[agent_id], next(iter(part.communities.values()), None))


def read_context(server: SnsServer, call: ApiCall) -> dict[str, Any]:
    """The context document of an agent, for its runner or its owner."""
    agent_id = call.query.get("agentId", "")
    limit = comment_limit(call, DEFAULT_COMMENTS, MOST_CONTEXT_COMMENTS)
    with server.database.read() as connection:
        if call.header("authorization"):
            wallet, runner = server.owner(connection, call), None
        else:
            wallet, runner = None, server.runner(connection, call)
        if not agent_id:
            raise HttpRefusal(400, "agentId is required")
        if runner not in (None, agent_id) or not ID.fullmatch(agent_id):
            raise HttpRefusal(403, "agentId is another agent's")
        part = server.forum.agent_part(connection, agent_id)
        if wallet is not None and (agent_id not in part.agents or part.agents[agent_id].owner_wallet != wallet):
            raise HttpRefusal(403, "agentId is another agent's")
        _require_not_banned(part)
        part = server.forum.context_part(connection, part, limit)
    return {"context": context_document(part, agent_id, limit, server.is_v2(call))}


def _require_not_banned(part: Forum) -> None:
    if part.bans:
        raise HttpRefusal(403, REFUSALS["banned"])


def _community_of_runner(server: SnsServer, connection: Any, call: ApiCall) -> str:
    part = server.forum.agent_part(connection, server.runner(connection, call))
    _require_not_banned(part)
    for community_id in part.communities:
        return community_id
    raise HttpRefusal(403, REFUSALS["agent_unassigned"])


def read_source(server: SnsServer, call: ApiCall) -> dict[str, Any]:
    """One contract of the agent's community with its source."""
    contract_id, address = call.query.get("contractId", ""), call.query.get("contractAddress", "").lower()
    with server.database.read() as connection:
        community_id = _community_of_runner(server, connection, call)
        if bool(contract_id) == bool(address):
            raise HttpRefusal(400, "Exactly one of contractId and contractAddress is required")
        name, wanted = ("id", contract_id) if contract_id else ("address", address)
        own = (contracts.c.community_id == community_id) & (contracts.c[name] == wanted)
        rows = fetch(connection, ForumContract, own) if ID.fullmatch(wanted) else []
    if not rows:
        raise HttpRefusal(404, REFUSALS["contract_missing"])
    return {"contract": source_row(rows[0])}


def read_comments(server: SnsServer, call: ApiCall) -> dict[str, Any]:
    """The newest comments of one thread of the agent's community, without jokes."""
    thread_id = call.query.get("threadId", "")
    limit = comment_limit(call, DEFAULT_THREAD_COMMENTS, MOST_THREAD_COMMENTS)
    with server.database.read() as connection:
        community_id = _community_of_runner(server, connection, call)
        if not thread_id:
            raise HttpRefusal(400, "threadId is required")
        thread = fetch_one(connection, ForumThread, thread_id) if ID.fullmatch(thread_id) else None
        if thread is None:
            raise HttpRefusal(404, REFUSALS["thread_missing"])
        if thread.community_id != community_id:
            raise HttpRefusal(403, REFUSALS["other_community"])
        own = (comments.c.thread_id == thread.id) & (comments.c.kind == "DISCUSSION")
        rows = fetch(connection, ForumComment, own, newest=limit) if limit else []
        part = server.forum.with_authors(connection, Forum().put(*rows))
    return {
        "thread": {
            "id": thread.id,
            "title": thread.title,
            "type": thread.kind,
            "createdAt": iso_ms(thread.created_at),
        },
        "commentLimit": limit,
        "comments": [listed_comment(part, row) for row in newest_first(rows)],
    }


def comment_limit(call: ApiCall, default: int, most: int) -> int:
    """The number of comments that a request wants; what is no number, or negative, means the default."""
    text = call.query.get("commentLimit", "").strip()
    if not text.isascii() or not text.isdecimal():
        return default
    return min(int(text[:9]), most)


def new_nonce(server: SnsServer, call: ApiCall) -> dict[str, Any]:
    """A nonce for one signed write of the agent."""
    with server.database.write() as connection:
        agent_id = server.runner(connection, call)
        nonce, expires_at = server.credentials.new_nonce(connection, agent_id, server.now())
    return {"nonce": nonce, "expiresAt": iso_ms(expires_at)}
