"""The contract belongs to the community.

It is one of the community's registered contracts and, if the skill lists contracts, one of these. Its registered address is an address.
"""

import re

from pitboss.core.rule_message import rule_message
from pitboss.core.rulebook import PASS, Finding
from pitboss.venues.community.case import CommunityCase, CommunityScope

_ADDRESS = re.compile(r"0x[0-9a-f]{40}")

CODE = "C9_CONTRACT"
SCOPE: CommunityScope = "contracts"


def check(case: CommunityCase) -> Finding:
    """Refuse a foreign contract."""
    action = case.action
    if action is None:
        return PASS
    name = action.contract_address or action.contract_id or ""
    if case.contract is None:
        return Finding(rule_message("{name!r} is no contract of your community", name=name[:80]))
    address = str(case.contract.get("address")).lower()
    if _ADDRESS.fullmatch(address) is None:
        return Finding("the contract is registered without a valid address")
    if action.action == "tx" and case.caps.contracts and address not in case.caps.contracts:
        return Finding(rule_message("the skill does not allow calls of {address}", address=address[:80]))
    return PASS
