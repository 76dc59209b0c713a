"""The text has an acceptable length.

Title and body are not empty and not longer than the server's limits, counted in UTF-16 units.
"""

from collections.abc import Mapping
from decimal import Decimal

from pitboss.core.rule_message import rule_message
from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.community.case import CommunityCase, CommunityScope
from pitboss.venues.community.text_limits import TEXT_LIMITS, utf16_length

CODE = "C4_TEXT"
SCOPE: CommunityScope = "posts"


def check(case: CommunityCase) -> Finding | Margin:
    """Refuse a text that is empty or too long."""
    action = case.action
    if action is None:
        return PASS
    group = "thread" if action.action == "create_thread" else "comment"
    limits: Mapping[str, int] = {**TEXT_LIMITS[group], **case.world.text_limits.get(group, {})}
    texts = {"title": action.title, "body": action.body} if group == "thread" else {"body": action.body}
    for name, text in texts.items():
        if text is None or not text.strip():
            return Finding(f"{name} is empty")
        limit, used = Decimal(limits[name]), Decimal(utf16_length(text))
        if used > limit:
            margin = Margin(CODE, limit, used, limit - used, "characters")
            return Finding(
                rule_message("{name} has {used} characters, the limit is {limit}", name=name, used=used, limit=limit),
                margin,
            )
    limit, used = Decimal(limits["body"]), Decimal(utf16_length(action.body or ""))
    return Margin(CODE, limit, used, limit - used, "characters")
