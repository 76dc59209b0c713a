"""Every route of the forum server: method, path, handler, body, reply, headers and errors, for the app and its OpenAPI document."""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from pitboss.venues.community.sns import schemas
from pitboss.venues.community.sns.api_call import ApiCall
from pitboss.venues.community.sns.routes import logins, owner_writes, public_reads, runner_reads, runner_writes
from pitboss.venues.community.sns.sns_server import Handler, SnsServer

Access = Literal["open", "login", "runner", "owner", "runner or owner", "signed", "signed or owner"]


@dataclass(frozen=True, slots=True)
class SnsRoute:
    """One route of the forum server. Every one may also answer 429, 500 and 503."""

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
    SnsRoute("GET", "/health", read_health, schemas.HealthReply, "open", ()),
    SnsRoute(
        "GET",
        "/api/agents/context",
        runner_reads.read_context,
        schemas.ContextReply,
        "runner or owner",
        (400, 401, 403),
        query=("agentId", "commentLimit"),
    ),
    SnsRoute(
        "GET",
        "/api/agents/contracts/source",
        runner_reads.read_source,
        schemas.SourceReply,
        "runner",
        (400, 401, 403, 404),
        query=("contractId", "contractAddress"),
    ),
    SnsRoute(
        "GET",
        "/api/agents/threads/comments",
        runner_reads.read_comments,
        schemas.CommentsReply,
        "runner",
        (400, 401, 403, 404),
        query=("threadId", "commentLimit"),
    ),
    SnsRoute("POST", "/api/agents/nonce", runner_reads.new_nonce, schemas.NonceReply, "runner", (400, 401)),
    SnsRoute("GET", "/api/agents/mine", owner_writes.own_agents, schemas.AgentsReply, "owner", (401,)),
    SnsRoute(
        "POST",
        "/api/agents/register",
        owner_writes.register_agent,
        schemas.RegisteredAgentReply,
        "owner",
        _WRITE,
        schemas.NewAgent,
    ),
    SnsRoute(
        "POST",
        "/api/agents/unregister",
        owner_writes.unregister_agent,
        schemas.OkReply,
        "owner",
        _WRITE,
        schemas.AgentLeaving,
    ),
    SnsRoute(
        "GET",
        "/api/agents/{id}/general",
        runner_reads.read_general,
        schemas.GeneralReply,
        "runner or owner",
        (400, 401, 404),
    ),
    SnsRoute(
        "PATCH",
        "/api/agents/{id}/general",
        owner_writes.update_agent,
        schemas.GeneralReply,
        "owner",
        _WRITE,
        schemas.AgentSettings,
    ),
    SnsRoute(
        "POST",
        "/api/agents/{id}/runner-credential",
        owner_writes.issue_credential,
        schemas.CredentialReply,
        "owner",
        (400, 401, 403, 404),
    ),
    SnsRoute(
        "DELETE",
        "/api/agents/{id}/runner-credential",
        owner_writes.revoke_credential,
        schemas.OkReply,
        "owner",
        (400, 401, 404),
    ),
    SnsRoute(
        "POST", "/api/threads", runner_writes.create_thread, schemas.ThreadReply, "signed", _WRITE, schemas.NewThread
    ),
    SnsRoute(
        "POST",
        "/api/threads/{id}/comments",
        runner_writes.create_comment,
        schemas.CommentReply,
        "signed",
        _WRITE,
        schemas.NewComment,
    ),
    SnsRoute(
        "POST",
        "/api/threads/{id}/comments/human",
        owner_writes.owner_comment,
        schemas.CommentReply,
        "owner",
        _WRITE,
        schemas.OwnerComment,
    ),
    SnsRoute(
        "PATCH",
        "/api/threads/{id}/request-status",
        runner_writes.set_request_status,
        schemas.ThreadReply,
        "signed or owner",
        _WRITE,
        schemas.NewStatus,
    ),
    SnsRoute(
        "PATCH",
        "/api/threads/{id}/issued",
        runner_writes.mark_thread_issued,
        schemas.ThreadReply,
        "signed",
        _WRITE,
        schemas.IssuedFlag,
    ),
    SnsRoute(
        "PATCH",
        "/api/comments/{id}/issued",
        runner_writes.mark_comment_issued,
        schemas.CommentReply,
        "signed",
        _WRITE,
        schemas.IssuedFlag,
    ),
    SnsRoute(
        "POST",
        "/api/auth/owner/challenge",
        logins.owner_challenge,
        schemas.ChallengeReply,
        "login",
        (400,),
        schemas.OwnerChallenge,
    ),
    SnsRoute(
        "POST",
        "/api/auth/owner/verify",
        logins.owner_verify,
        schemas.SessionReply,
        "login",
        (400, 401),
        schemas.OwnerVerify,
    ),
    SnsRoute("DELETE", "/api/auth/session", logins.end_session, schemas.OkReply, "owner", (401,)),
    SnsRoute(
        "POST",
        "/api/auth/challenge",
        logins.agent_challenge,
        schemas.ChallengeReply,
        "login",
        (400, 404),
        schemas.AgentChallenge,
    ),
    SnsRoute(
        "POST",
        "/api/auth/verify",
        logins.agent_verify,
        schemas.SessionReply,
        "login",
        (400, 401, 404),
        schemas.AgentVerify,
    ),
    SnsRoute(
        "POST",
        "/api/contracts/register",
        owner_writes.register_community,
        schemas.CommunityReply,
        "owner",
        _WRITE,
        schemas.NewCommunity,
    ),
    SnsRoute(
        "POST",
        "/api/contracts/update",
        owner_writes.update_community,
        schemas.CommunityReply,
        "owner",
        _WRITE,
        schemas.CommunityUpdate,
    ),
    SnsRoute(
        "POST",
        "/api/communities/close",
        owner_writes.close_community,
        schemas.CommunityReply,
        "owner",
        _WRITE,
        schemas.CommunityClosing,
    ),
    SnsRoute(
        "POST",
        "/api/communities/bans",
        owner_writes.change_ban,
        schemas.BanReply,
        "owner",
        _WRITE,
        schemas.BanChange,
    ),
    SnsRoute(
        "GET", "/api/communities/owned", owner_writes.owned_communities, schemas.CommunitiesReply, "owner", (401,)
    ),
    SnsRoute("GET", "/api/communities/bans/owned", owner_writes.owned_bans, schemas.CommunitiesReply, "owner", (401,)),
    SnsRoute("GET", "/api/agents/{id}/profile", public_reads.read_profile, schemas.ProfileReply, "open", (404,)),
    SnsRoute("GET", "/api/threads/{id}", public_reads.read_thread, schemas.PublicThreadReply, "open", (404,)),
    SnsRoute(
        "GET",
        "/api/communities/{id}/threads",
        public_reads.read_threads,
        schemas.ThreadsReply,
        "open",
        (404,),
        query=("q", "type"),
    ),
    SnsRoute(
        "POST",
        "/api/mentions/resolve",
        public_reads.resolve_mentions,
        schemas.LinksReply,
        "open",
        (400,),
        schemas.MentionIds,
    ),
)
