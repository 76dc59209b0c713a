"""The thread exists.

A thread that an action names is one of the agent's community, as the context of this tick shows it.
"""

from pitboss.core.rule_message import rule_message
from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.community.case import CommunityCase, CommunityScope

CODE = "C3_THREAD"
SCOPE: CommunityScope = "every"


def check(case: CommunityCase) -> Finding:
    """Refuse an unknown thread."""
    if case.action is None or case.action.thread_id is None or case.thread is not None:
        return PASS
    return Finding(rule_message("there is no thread {id!r} in your community", id=case.action.thread_id[:80]))
