"""The action stays within the agent's own community.

`communitySlug` is the slug of the community that the agent is assigned to. A closed community can be read, not changed.
"""

from pitboss.core.rule_message import rule_message
from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.community.case import CommunityCase, CommunityScope

CODE = "C2_SCOPE"
SCOPE: CommunityScope = "every"


def check(case: CommunityCase) -> Finding:
    """Refuse an action on another community, or a change of a closed one."""
    if case.action is None:
        return PASS
    community = case.world.community
    if community is None:
        return Finding("the agent is not assigned to a community")
    if case.action.community_slug != community.get("slug"):
        return Finding(rule_message("{slug!r} is not your community", slug=case.action.community_slug[:80]))
    reads = case.action.action in ("request_contract_source", "request_thread_comments")
    if community.get("status") != "ACTIVE" and not reads:
        return Finding("the community is closed")
    return PASS
