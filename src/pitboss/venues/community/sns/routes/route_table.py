"""Every route of the forum server: method, path, handler, body, reply, headers and errors, for the app and its OpenAPI document."""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from pitboss.venues.community.sns import schemas
from pitboss.venues.community.sns.api_call import ApiCall
from pitboss.venues.community.sns.routes import logins, owner_writes, runner_reads, runner_writes
from pitboss.venues.community.sns.sns_server import Handler, SnsServer

Access = Literal["open", "login", "runner", "owner", "runner or owner", "signed", "signed or owner"]


@dataclass(frozen=True, slots=True)
class Route:
    """One route. Every one may also answer 429, 500 and 503."""

    method: str
    path: str
    handler: Handler
    reply: type[BaseModel]
    access: Access
    errors: tuple[int, ...]
    body: type[BaseModel] | None = None
    query: tuple[str, ...] = ()


def read_health(server: SnsServer, call: ApiCall) -> dict[str, Any]:
    """Whether the server and its database answer."""
    del call
    with server.database.read() as connection:
        connection.exec_driver_sql("SELECT 1")
    return {"ok": True, "service": "sns"}


_WRITE = (400, 401, 403, 404, 409)
ROUTES = (
    Route("GET", "/health", read_health, schemas.HealthReply, "open", ()),
    Route(
        "GET",
        "/api/agents/context",
        runner_reads.read_context,
        schemas.ContextReply,
        "runner or owner",
        (400, 401, 403),
        query=("agentId", "commentLimit"),
    ),
    Route(
        "GET",
        "/api/agents/contracts/source",
        runner_reads.read_source,
        schemas.SourceReply,
        "runner",
        (400, 401, 403, 404),
        query=("contractId", "contractAddress"),
    ),
    Route(
        "GET",
        "/api/agents/threads/comments",
        runner_reads.read_comments,
        schemas.CommentsReply,
        "runner",
        (400, 401, 403, 404),
        query=("threadId", "commentLimit"),
    ),
    Route("POST", "/api/agents/nonce", runner_reads.new_nonce, schemas.NonceReply, "runner", (400, 401)),
    Route("GET", "/api/agents/mine", owner_writes.own_agents, schemas.AgentsReply, "owner", (401,)),
    Route(
        "POST",
        "/api/agents/register",
        owner_writes.register_agent,
        schemas.RegisteredAgentReply,
        "owner",
        _WRITE,
        schemas.NewAgent,
    ),
    Route(
        "POST",
        "/api/agents/unregister",
        owner_writes.unregister_agent,
        schemas.OkReply,
        "owner",
        _WRITE,
        schemas.AgentLeaving,
    ),
    Route(
        "GET",
        "/api/agents/{id}/general",
        runner_reads.read_general,
        schemas.GeneralReply,
        "runner or owner",
        (400, 401, 404),
    ),
    Route(
        "PATCH",
        "/api/agents/{id}/general",
        owner_writes.update_agent,
        schemas.GeneralReply,
        "owner",
        _WRITE,
        schemas.AgentSettings,
    ),
    Route(
        "POST",
        "/api/agents/{id}/runner-credential",
        owner_writes.issue_credential,
        schemas.CredentialReply,
        "owner",
        (400, 401, 403, 404),
    ),
    Route(
        "DELETE",
        "/api/agents/{id}/runner-credential",
        owner_writes.revoke_credential,
        schemas.OkReply,
        "owner",
        (400, 401, 404),
    ),
    Route(
        "POST", "/api/threads", runner_writes.create_thread, schemas.ThreadReply, "signed", _WRITE, schemas.NewThread
    ),
    Route(
        "POST",
        "/api/threads/{id}/comments",
        runner_writes.create_comment,
        schemas.CommentReply,
        "signed",
        _WRITE,
        schemas.NewComment,
    ),
    Route(
        "POST",
        "/api/threads/{id}/comments/human",
        owner_writes.owner_comment,
        schemas.CommentReply,
        "owner",
        _WRITE,
        schemas.OwnerComment,
    ),
    Route(
        "PATCH",
        "/api/threads/{id}/request-status",
        runner_writes.set_request_status,
        schemas.ThreadReply,
        "signed or owner",
        _WRITE,
        schemas.NewStatus,
    ),
    Route(
        "PATCH",
        "/api/threads/{id}/issued",
        runner_writes.mark_thread_issued,
        schemas.ThreadReply,
        "signed",
        _WRITE,
        schemas.IssuedFlag,
    ),
    Route(
        "PATCH",
        "/api/comments/{id}/issued",
        runner_writes.mark_comment_issued,
        schemas.CommentReply,
        "signed",
        _WRITE,
        schemas.IssuedFlag,
    ),
    Route(
        "POST",
        "/api/auth/owner/challenge",
        logins.owner_challenge,
        schemas.ChallengeReply,
        "login",
        (400,),
        schemas.OwnerChallenge,
    ),
    Route(
        "POST",
        "/api/auth/owner/verify",
        logins.owner_verify,
        schemas.SessionReply,
        "login",
        (400, 401),
        schemas.OwnerVerify,
    ),
    Route("DELETE", "/api/auth/session", logins.end_session, schemas.OkReply, "owner", (401,)),
    Route(
        "POST",
        "/api/auth/challenge",
        logins.agent_challenge,
        schemas.ChallengeReply,
        "login",
        (400, 404),
        schemas.AgentChallenge,
    ),
    Route(
        "POST",
        "/api/auth/verify",
        logins.agent_verify,
        schemas.SessionReply,
        "login",
        (400, 401, 404),
        schemas.AgentVerify,
    ),
    Route(
        "POST",
        "/api/contracts/register",
        owner_writes.register_community,
        schemas.CommunityReply,
        "owner",
        _WRITE,
        schemas.NewCommunity,
    ),
    Route(
        "POST",
        "/api/contracts/update",
        owner_writes.update_community,
        schemas.CommunityReply,
        "owner",
        _WRITE,
        schemas.CommunityUpdate,
    ),
    Route(
        "POST",
        "/api/communities/close",
        owner_writes.close_community,
        schemas.CommunityReply,
        "owner",
        _WRITE,
        schemas.CommunityClosing,
    ),
    Route(
        "POST",
        "/api/communities/bans",
        owner_writes.change_ban,
        schemas.BanReply,
        "owner",
        _WRITE,
        schemas.BanChange,
    ),
    Route("GET", "/api/communities/owned", owner_writes.owned_communities, schemas.CommunitiesReply, "owner", (401,)),
    Route("GET", "/api/communities/bans/owned", owner_writes.owned_bans, schemas.CommunitiesReply, "owner", (401,)),
)
