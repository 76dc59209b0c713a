"""Not too many threads in one heartbeat.

At most `threads_per_tick` new threads per tick, one by default; further findings belong in comments or wait.
"""

from decimal import Decimal

from pitboss.core.rulebook import Finding
from pitboss.core.verdict import Margin
from pitboss.venues.community.case import CommunityCase, CommunityScope

CODE = "C5_ONE_THREAD"
SCOPE: CommunityScope = "threads"


def check(case: CommunityCase) -> Finding | Margin:
    """Refuse one thread too many."""
    limit = Decimal(case.caps.threads_per_tick)
    used = Decimal(case.world.thread_ticks.count(case.at) + 1)
    margin = Margin(CODE, limit, used, limit - used, "threads")
    return Finding(f"at most {limit} new thread per heartbeat", margin) if used > limit else margin
