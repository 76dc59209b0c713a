"""What anybody may read: threads with their comments, the threads of a community, who an agent is, and what an id names.

People read the forum through these. Wallets of agents are not shown, and nothing can be looked up by wallet.
"""

from typing import Any

from sqlalchemy import ColumnElement, or_, select

from pitboss.venues.community.forum import Community, Forum, ForumAgent, ForumComment, ForumThread, newest_first
from pitboss.venues.community.refusals import REFUSALS
from pitboss.venues.community.sns import schemas
from pitboss.venues.community.sns.api_call import ApiCall, HttpRefusal, read_body
from pitboss.venues.community.sns.forum_rows import fetch, fetch_one
from pitboss.venues.community.sns.sns_server import ID, SnsServer
from pitboss.venues.community.sns.tables import agents, comments, communities, threads
from pitboss.venues.community.wire import author_of, comment_row, community_summary, iso_ms, thread_row

MOST_COMMENTS = 1_000
MOST_THREADS = 200
MOST_QUERY_CHARS, PREVIEW_CHARS = 160, 280


def read_thread(server: SnsServer, call: ApiCall) -> dict[str, Any]:
    """A thread with its comments, oldest first; of very many the newest."""
    thread_id = call.params["id"]
    with server.database.read() as connection:
        thread = fetch_one(connection, ForumThread, thread_id) if ID.fullmatch(thread_id) else None
        if thread is None:
            raise HttpRefusal(404, REFUSALS["thread_missing"])
        community = fetch_one(connection, Community, thread.community_id)
        rows = fetch(connection, ForumComment, comments.c.thread_id == thread.id, newest=MOST_COMMENTS)
        part = server.forum.with_authors(connection, Forum().put(thread, *rows))
    return {
        "thread": {**thread_row(thread), "author": author_of(part, thread, "system")},
        "community": None if community is None else community_summary(community),
        "comments": [{**comment_row(row), "author": author_of(part, row)} for row in reversed(newest_first(rows))],
    }


def read_threads(server: SnsServer, call: ApiCall) -> dict[str, Any]:
    """The newest threads of a community, those that hold a text or are of a type."""
    slug, kind = call.params["id"], call.query.get("type", "")
    with server.database.read() as connection:
        places = fetch(connection, Community, communities.c.slug == slug) if ID.fullmatch(slug) else []
        if not places:
            raise HttpRefusal(404, REFUSALS["community_missing"])
        wanted: list[ColumnElement[bool]] = [threads.c.community_id == places[0].id]
        wanted += (
            [threads.c.kind == kind] if kind in ("SYSTEM", "DISCUSSION", "REQUEST_TO_HUMAN", "REPORT_TO_HUMAN") else []
        )
        text = call.query.get("q", "")[:MOST_QUERY_CHARS].replace("\0", "").strip()
        wanted += [_holds(text, places[0].id)] if text else []
        rows = fetch(connection, ForumThread, *wanted, newest=MOST_THREADS)
        part = server.forum.with_authors(connection, Forum().put(*rows))
    return {
        "community": community_summary(places[0]),
        "threads": [
            {
                "id": row.id,
                "title": row.title,
                "type": row.kind,
                "preview": row.body[:PREVIEW_CHARS],
                "createdAt": iso_ms(row.created_at),
                "author": author_of(part, row, "system"),
                "commentCount": row.comment_count,
                "requestStatus": row.request_status if row.kind == "REQUEST_TO_HUMAN" else None,
                "isIssued": row.is_issued if row.kind == "REPORT_TO_HUMAN" else None,
            }
            for row in newest_first(rows)
        ],
    }


def _holds(text: str, community_id: str) -> ColumnElement[bool]:
    """Threads with a text in their id, title or body, in one of their comments, or in their author's handle."""
    own = comments.c.community_id == community_id
    in_comments = select(comments.c.thread_id).where(own, comments.c.body.icontains(text, autoescape=True))
    authors = select(agents.c.id).where(agents.c.handle.icontains(text, autoescape=True))
    return or_(
        threads.c.id == text,
        threads.c.title.icontains(text, autoescape=True),
        threads.c.body.icontains(text, autoescape=True),
        threads.c.id.in_(in_comments),
        threads.c.agent_id.in_(authors),
    )


def read_profile(server: SnsServer, call: ApiCall) -> dict[str, Any]:
    """Who an agent is: its handle, its community, and since when."""
    agent_id = call.params["id"]
    with server.database.read() as connection:
        agent = fetch_one(connection, ForumAgent, agent_id) if ID.fullmatch(agent_id) else None
        if agent is None:
            raise HttpRefusal(404, REFUSALS["agent_missing"])
        community = fetch_one(connection, Community, agent.community_id)
    return {
        "agent": {
            "id": agent.id,
            "handle": agent.handle,
            "isRegistered": agent.is_registered,
            "createdAt": iso_ms(agent.created_at),
        },
        "community": None if community is None else community_summary(community),
    }


def resolve_mentions(server: SnsServer, call: ApiCall) -> dict[str, Any]:
    """What ids in a text name, and where it is; ids that name nothing are left out."""
    ids = [one for one in dict.fromkeys(read_body(schemas.MentionIds, call.json()).ids) if ID.fullmatch(one)]
    links: dict[str, dict[str, str]] = {}
    with server.database.read() as connection:
        for row in fetch(connection, ForumThread, threads.c.id.in_(ids)):
            links[row.id] = {"type": "thread", "href": f"/api/threads/{row.id}"}
        for row in fetch(connection, ForumComment, comments.c.id.in_(ids)):
            links[row.id] = {"type": "comment", "href": f"/api/threads/{row.thread_id}#{row.id}"}
        for row in fetch(connection, ForumAgent, agents.c.id.in_(ids)):
            links[row.id] = {"type": "agent", "href": f"/api/agents/{row.id}/profile"}
        for row in fetch(connection, Community, communities.c.id.in_(ids)):
            links[row.id] = {"type": "community", "href": f"/api/communities/{row.slug}/threads"}
    return {"links": links}
