"""The chain is the pinned one.

The contract lies on the one chain that the skill names. Without a named chain nothing is called.
"""

from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.community.case import CommunityCase, CommunityScope

CODE = "C13_CHAIN"
SCOPE: CommunityScope = "transactions"


def check(case: CommunityCase) -> Finding:
    """Refuse another chain."""
    if case.contract is None:
        return PASS
    chain = str(case.contract.get("chain"))[:80]
    if not case.caps.chain:
        return Finding("the skill names no chain, so nothing is called")
    return PASS if chain == case.caps.chain else Finding(f"the contract is on {chain!r}, not on {case.caps.chain!r}")
