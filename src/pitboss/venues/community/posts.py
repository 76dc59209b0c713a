"""Threads, comments, request status and issued flags: what an event about posts changes, or why it is refused.

Called by `world.apply`. Pure; works on a forum that holds the author, the community, the thread and the ban in question only.
"""

from dataclasses import replace
from typing import TypeAlias

from pitboss.venues.community import events
from pitboss.venues.community.forum import Community, Forum, ForumAgent, ForumComment, ForumThread
from pitboss.venues.community.refusals import ForumRefusal, refusal, refused_text

Facts: TypeAlias = dict[str, str | int]
Change: TypeAlias = tuple[Forum, Facts]

AGENT_STATUSES = ("pending", "resolved")
OWNER_STATUSES = ("pending", "rejected")


def writer_refusal(forum: Forum, agent: ForumAgent | None, community: Community | None) -> ForumRefusal | None:
    """Why an agent may not write in a community; None if it may."""
    if agent is None:
        return refusal("agent_missing")
    if community is None:
        return refusal("community_missing")
    if forum.is_banned(community.id, agent.owner_wallet):
        return refusal("banned")
    if community.is_closed:
        return refusal("community_closed")
    if not agent.is_registered:
        return refusal("agent_unregistered")
    if agent.community_id is None:
        return refusal("agent_unassigned")
    if agent.community_id != community.id:
        return refusal("other_community")
    return None


def create_thread(forum: Forum, event: events.CreateThread) -> Change | ForumRefusal:
    """Open a thread."""
    agent, community = forum.agents.get(event.agent_id), forum.communities.get(event.community_id)
    problem = (
        refused_text("thread.title", event.title)
        or refused_text("thread.body", event.body)
        or writer_refusal(forum, agent, community)
    )
    if problem is not None:
        return problem
    if event.kind == "SYSTEM":
        return refusal("system_thread")
    if event.thread_id in forum.threads:
        return refusal("id_taken")
    thread = ForumThread(
        event.thread_id, event.community_id, event.kind, event.title, event.body, event.at, agent_id=event.agent_id
    )
    return forum.put(thread), {"event": "thread_created", "thread_id": thread.id}


def comment_by_agent(forum: Forum, event: events.CommentByAgent) -> Change | ForumRefusal:
    """Comment on a thread as an agent of its community."""
    thread = forum.threads.get(event.thread_id)
    if thread is None:
        return refusal("thread_missing")
    agent, community = forum.agents.get(event.agent_id), forum.communities.get(thread.community_id)
    problem = refused_text("comment.body", event.body) or writer_refusal(forum, agent, community)
    if problem is not None:
        return problem
    comment = ForumComment(event.comment_id, thread.id, event.body, event.at, event.kind, agent_id=event.agent_id)
    return add_comment(forum, thread, comment)


def comment_by_owner(forum: Forum, event: events.CommentByOwner) -> Change | ForumRefusal:
    """Comment on a request or a report as the owner of its community."""
    thread = forum.threads.get(event.thread_id)
    if thread is None:
        return refusal("thread_missing")
    problem = refused_text("comment.body", event.body) or owner_refusal(forum, event.wallet, thread.community_id)
    if problem is not None:
        return problem
    if thread.kind not in ("REQUEST_TO_HUMAN", "REPORT_TO_HUMAN"):
        return refusal("not_for_humans")
    comment = ForumComment(event.comment_id, thread.id, event.body, event.at, owner_wallet=event.wallet)
    return add_comment(forum, thread, comment)


def owner_refusal(forum: Forum, wallet: str, community_id: str) -> ForumRefusal | None:
    """Why a wallet may not change a community as its owner; None if it may."""
    community = forum.communities.get(community_id)
    if community is None:
        return refusal("community_missing")
    if community.owner_wallet != wallet:
        return refusal("not_owner")
    return refusal("community_closed") if community.is_closed else None


def add_comment(forum: Forum, thread: ForumThread, comment: ForumComment) -> Change | ForumRefusal:
    """Add a comment and count it."""
    if comment.id in forum.comments:
        return refusal("id_taken")
    counted = replace(
        thread,
        comment_count=thread.comment_count + 1,
        discussion_count=thread.discussion_count + (comment.kind == "DISCUSSION"),
    )
    return forum.put(counted, comment), {"event": "comment_added", "thread_id": thread.id, "comment_id": comment.id}


def set_status_by_agent(forum: Forum, event: events.SetStatusByAgent) -> Change | ForumRefusal:
    """Set the status of a request as the agent that opened it."""
    thread = forum.threads.get(event.thread_id)
    if thread is None:
        return refusal("thread_missing")
    agent, community = forum.agents.get(event.agent_id), forum.communities.get(thread.community_id)
    problem = writer_refusal(forum, agent, community)
    if problem is not None:
        return problem
    if thread.kind != "REQUEST_TO_HUMAN":
        return refusal("not_request")
    if thread.agent_id != event.agent_id:
        return refusal("not_author")
    if event.status not in AGENT_STATUSES:
        return refusal("status_forbidden")
    return _with_status(forum, thread, event.status)


def set_status_by_owner(forum: Forum, event: events.SetStatusByOwner) -> Change | ForumRefusal:
    """Set the status of a request as the owner of its community."""
    thread = forum.threads.get(event.thread_id)
    if thread is None:
        return refusal("thread_missing")
    problem = owner_refusal(forum, event.wallet, thread.community_id)
    if problem is not None:
        return problem
    if thread.kind != "REQUEST_TO_HUMAN":
        return refusal("not_request")
    if event.status not in OWNER_STATUSES:
        return refusal("status_forbidden")
    return _with_status(forum, thread, event.status)


def _with_status(forum: Forum, thread: ForumThread, status: str) -> Change:
    changed = replace(thread, is_resolved=status == "resolved", is_rejected=status == "rejected")
    return forum.put(changed), {"event": "status_set", "thread_id": thread.id, "status": status}


def mark_thread_issued(forum: Forum, event: events.MarkThreadIssued) -> Change | ForumRefusal:
    """Set the issued flag of a report, as any agent of its community."""
    thread = forum.threads.get(event.thread_id)
    if thread is None:
        return refusal("thread_missing")
    problem = _issue_refusal(forum, event.agent_id, thread)
    if problem is not None:
        return problem
    changed = replace(thread, is_issued=event.is_issued)
    return forum.put(changed), {"event": "thread_issued", "thread_id": thread.id, "is_issued": int(event.is_issued)}


def mark_comment_issued(forum: Forum, event: events.MarkCommentIssued) -> Change | ForumRefusal:
    """Set the issued flag of a comment on a report, as any agent of its community."""
    comment = forum.comments.get(event.comment_id)
    thread = None if comment is None else forum.threads.get(comment.thread_id)
    if comment is None or thread is None:
        return refusal("comment_missing")
    problem = _issue_refusal(forum, event.agent_id, thread)
    if problem is not None:
        return problem
    changed = replace(comment, is_issued=event.is_issued)
    facts: Facts = {"event": "comment_issued", "comment_id": comment.id, "is_issued": int(event.is_issued)}
    return forum.put(changed), facts


def _issue_refusal(forum: Forum, agent_id: str, thread: ForumThread) -> ForumRefusal | None:
    agent, community = forum.agents.get(agent_id), forum.communities.get(thread.community_id)
    problem = writer_refusal(forum, agent, community)
    if problem is not None:
        return problem
    return None if thread.kind == "REPORT_TO_HUMAN" else refusal("not_report")
