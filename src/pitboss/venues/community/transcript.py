"""The threads of a community as text in order of time, from the whole forum of a simulation or from what an agent last read."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, parse_instant
from pitboss.venues.community.agent_world import AgentWorld
from pitboss.venues.community.panels.source import PostText, ThreadText
from pitboss.venues.community.simulated_world import SimulatedWorld
from pitboss.venues.community.wire import author_of

OWNER = "the owner"


def transcript(world: AgentWorld | None) -> list[ThreadText]:
    """All threads that the world holds, oldest first."""
    if isinstance(world, SimulatedWorld):
        return _of_forum(world)
    return [] if world is None else _of_context(world)


def _of_forum(world: SimulatedWorld) -> list[ThreadText]:
    forum = world.forum
    comments: dict[str, list[PostText]] = defaultdict(list)
    for comment in sorted(forum.comments.values(), key=lambda row: (row.created_at, row.id)):
        author = OWNER if comment.owner_wallet else author_of(forum, comment)
        post = PostText(comment.created_at, author, comment.agent_id == world.agent_id, comment.body)
        comments[comment.thread_id].append(post)
    threads: list[ThreadText] = []
    for thread in sorted(forum.threads.values(), key=lambda row: (row.created_at, row.kind != "SYSTEM", row.id)):
        first = PostText(thread.created_at, author_of(forum, thread), thread.agent_id == world.agent_id, thread.body)
        status = thread.request_status if thread.kind == "REQUEST_TO_HUMAN" else ""
        threads.append(ThreadText(thread.id, thread.kind, thread.title, status, (first, *comments[thread.id])))
    return threads


def _of_context(world: AgentWorld) -> list[ThreadText]:
    """From the context document, which has the newest comments only."""
    comments: dict[str, list[PostText]] = defaultdict(list)
    for row in world.rows("recentComments"):
        comments[str(row.get("threadId"))].append(_post(world, row))
    threads: list[ThreadText] = []
    for row in world.rows("threads"):
        thread_id, count = str(row.get("id")), row.get("commentCount")
        posts = sorted(comments[thread_id], key=lambda post: post.at or 0)
        left_out = count - len(posts) if type(count) is int and count > len(posts) else 0
        kind, title, status = (str(row.get(name) or "") for name in ("type", "title", "requestStatus"))
        threads.append(ThreadText(thread_id, kind, title, status, (_post(world, row), *posts), left_out))
    return sorted(threads, key=lambda thread: thread.posts[0].at or 0)


def _post(world: AgentWorld, row: Mapping[str, Any]) -> PostText:
    author = str(row.get("author") or "")
    return PostText(
        _instant(row.get("createdAt")), author, bool(author) and author == world.handle, str(row.get("body") or "")
    )


def _instant(value: object) -> Instant | None:
    try:
        return parse_instant(value) if isinstance(value, str) else None
    except UserError:
        return None
