"""Not too many posts on one day.

At most `posts_per_day` threads and comments per UTC day.
"""

from decimal import Decimal

from pitboss.core.rulebook import Finding
from pitboss.core.verdict import Margin
from pitboss.venues.community.case import CommunityCase, CommunityScope

CODE = "C7_POSTS_DAY"
SCOPE: CommunityScope = "posts"


def check(case: CommunityCase) -> Finding | Margin:
    """Refuse one post too many."""
    limit, used = Decimal(case.caps.posts_per_day), Decimal(case.use.posts + 1)
    margin = Margin(CODE, limit, used, limit - used, "posts")
    return Finding(f"at most {limit} posts per day", margin) if used > limit else margin
