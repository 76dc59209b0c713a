"""The function gives nothing away.

Functions that hand over funds, rights or code (approve, permit, transferOwnership and others like them) are refused unless the skill allows them by name.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.community.case import CommunityCase, CommunityScope
from pitboss.venues.community.denied_functions import denied_name

CODE = "C12_DENIED"
SCOPE: CommunityScope = "transactions"


def check(case: CommunityCase) -> Finding:
    """Refuse a function on the deny list."""
    if not case.is_sent or case.call is None:
        return PASS
    name = denied_name(case.call.function, case.caps.allowed_denied)
    return PASS if name is None else Finding(f"{case.call.function.signature} is on the deny list, as {name}")
