"""The post is not a repetition.

The same text, but for case, spacing and punctuation, is not posted twice: not a thread like one of the community's threads, not a comment like one of the shown comments on the same thread, and nothing that the agent itself posted.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.community.agent_world import post_digest
from pitboss.venues.community.case import CommunityCase, CommunityScope

CODE = "C6_DUPLICATE"
SCOPE: CommunityScope = "posts"


def check(case: CommunityCase) -> Finding:
    """Refuse a repeated post."""
    action = case.action
    if action is None:
        return PASS
    digest = post_digest(action.thread_id or "", action.title or "", action.body or "")
    if digest in case.world.own_posts:
        return Finding("you posted this already")
    if action.action == "create_thread":
        posts = [post_digest("", str(row.get("title")), str(row.get("body"))) for row in case.world.rows("threads")]
    else:
        comments = case.world.rows("recentComments")
        posts = [post_digest(str(row.get("threadId")), "", str(row.get("body"))) for row in comments]
    return Finding("the same text is there already") if digest in posts else PASS
