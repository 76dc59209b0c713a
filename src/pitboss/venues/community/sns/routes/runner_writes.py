"""What agents write: threads, comments, the status of requests, and issued flags. Every write is signed."""

from typing import Any, cast

from sqlalchemy import Connection

from pitboss.venues.community import events
from pitboss.venues.community.forum import CommentKind, RequestStatus, ThreadKind
from pitboss.venues.community.refusals import REFUSALS
from pitboss.venues.community.sns import schemas
from pitboss.venues.community.sns.api_call import ApiCall, HttpRefusal, read_body
from pitboss.venues.community.sns.sns_server import ID, SnsReply, SnsServer
from pitboss.venues.community.wire import comment_row, thread_row

THREAD_KINDS = ("SYSTEM", "DISCUSSION", "REQUEST_TO_HUMAN", "REPORT_TO_HUMAN")
REQUEST_STATUSES = ("pending", "resolved", "rejected")


def _id(call: ApiCall, code: str) -> str:
    if not ID.fullmatch(call.params["id"]):
        raise HttpRefusal(404, REFUSALS[code])
    return call.params["id"]


def create_thread(server: SnsServer, call: ApiCall) -> SnsReply:
    """Open a thread in the agent's community."""

    def handle(connection: Connection, agent_id: str, body: dict[str, Any]) -> dict[str, Any]:
        request = read_body(schemas.NewThread, body)
        if not ID.fullmatch(request.communityId):
            raise HttpRefusal(404, REFUSALS["community_missing"])
        kind = cast("ThreadKind", request.type if request.type in THREAD_KINDS else "DISCUSSION")
        event = events.CreateThread(
            server.now(), agent_id, server.new_id(), request.communityId, request.title, request.body, kind
        )
        after, facts = server.apply(connection, event)
        return {"thread": thread_row(after.threads[facts["thread_id"]])}

    return server.signed_write(call, handle)


def create_comment(server: SnsServer, call: ApiCall) -> SnsReply:
    """Comment on a thread."""

    def handle(connection: Connection, agent_id: str, body: dict[str, Any]) -> dict[str, Any]:
        request = read_body(schemas.NewComment, body)
        kind = cast("CommentKind", "JOKE" if request.commentKind == "JOKE" else "DISCUSSION")
        thread_id = _id(call, "thread_missing")
        event = events.CommentByAgent(server.now(), agent_id, server.new_id(), thread_id, request.body, kind)
        after, facts = server.apply(connection, event)
        return {"comment": comment_row(after.comments[facts["comment_id"]])}

    return server.signed_write(call, handle)


def set_request_status(server: SnsServer, call: ApiCall) -> Any:
    """Set the status of a request: signed by its agent, or with the session of the community's owner."""

    def handle(connection: Connection, author: str, body: dict[str, Any]) -> dict[str, Any]:
        request = read_body(schemas.NewStatus, body)
        if request.status not in REQUEST_STATUSES:
            raise HttpRefusal(400, "status must be pending, resolved or rejected")
        status, thread_id = cast("RequestStatus", request.status), _id(call, "thread_missing")
        make = events.SetStatusByAgent if is_signed else events.SetStatusByOwner
        after, _ = server.apply(connection, make(server.now(), author, thread_id, status))
        thread = after.threads[thread_id]
        reply = {
            "id": thread.id,
            "type": thread.kind,
            "isResolved": thread.is_resolved,
            "isRejected": thread.is_rejected,
        }
        return {"thread": reply}

    is_signed = bool(call.header("x-agent-signature")) or not call.header("authorization")
    return server.signed_write(call, handle) if is_signed else server.owner_write(call, handle)


def mark_thread_issued(server: SnsServer, call: ApiCall) -> SnsReply:
    """Note that a report has become an issue of the repository."""

    def handle(connection: Connection, agent_id: str, body: dict[str, Any]) -> dict[str, Any]:
        thread_id = _id(call, "thread_missing")
        event = events.MarkThreadIssued(server.now(), agent_id, thread_id, body.get("isIssued") is not False)
        thread = server.apply(connection, event)[0].threads[thread_id]
        return {"thread": {"id": thread.id, "type": thread.kind, "isIssued": thread.is_issued}}

    return server.signed_write(call, handle)


def mark_comment_issued(server: SnsServer, call: ApiCall) -> SnsReply:
    """Note that a comment on a report has become an issue of the repository."""

    def handle(connection: Connection, agent_id: str, body: dict[str, Any]) -> dict[str, Any]:
        comment_id = _id(call, "comment_missing")
        event = events.MarkCommentIssued(server.now(), agent_id, comment_id, body.get("isIssued") is not False)
        after, _ = server.apply(connection, event)
        comment = after.comments[comment_id]
        thread = after.threads[comment.thread_id]
        about = {"id": thread.id, "type": thread.kind}
        return {"comment": {"id": comment.id, "isIssued": comment.is_issued, "thread": about}}

    return server.signed_write(call, handle)
