"""The HTTP status of each refusal of the forum."""

from collections.abc import Mapping

from pitboss.core.receipt import Receipt
from pitboss.venues.community.sns.api_call import HttpRefusal

STATUSES: Mapping[str, int] = {
    "text_too_long": 400,
    "text_missing": 400,
    "text_invalid": 400,
    "agent_missing": 404,
    "community_missing": 404,
    "contract_missing": 404,
    "thread_missing": 404,
    "comment_missing": 404,
    "community_closed": 403,
    "agent_unregistered": 403,
    "agent_unassigned": 403,
    "other_community": 403,
    "banned": 403,
    "not_owner": 403,
    "not_agent_owner": 404,
    "not_author": 403,
    "system_thread": 403,
    "not_request": 403,
    "not_report": 403,
    "not_for_humans": 403,
    "status_forbidden": 403,
    "id_taken": 409,
    "handle_invalid": 400,
    "address_invalid": 400,
    "abi_invalid": 400,
    "wallet_invalid": 400,
    "base_url_missing": 400,
    "community_unchanged": 400,
    "contracts_missing": 400,
    "contracts_of_two_communities": 400,
    "contract_of_another_owner": 403,
    "contracts_registered": 409,
    "contract_registered": 409,
    "contract_unchanged": 409,
    "last_contract": 400,
    "too_many_communities": 403,
    "name_mismatch": 400,
    "ban_missing": 404,
}


def require_accepted(receipt: Receipt) -> Receipt:
    """The receipt of an accepted event; raises `HttpRefusal` for a rejected one."""
    if receipt.kind == "rejected":
        raise HttpRefusal(STATUSES[str(receipt.facts["code"])], str(receipt.facts["text"]))
    return receipt
