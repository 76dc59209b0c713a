"""What a person sees of a transaction that needs approval: its content as stored with the request, and as plain words.

The names and arguments come from strangers, so that text shows them on one line each, cut, and without control characters.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from pitboss.core import codec
from pitboss.venues.community.plain_text import amount_text, plain_text

if TYPE_CHECKING:  # it imports the libraries of the chain, and commands that only describe themselves need none
    from pitboss.venues.community.case import CommunityCase


def approval_content(case: "CommunityCase") -> bytes:
    """The transaction of a case in canonical JSON, for the request. The case must have a call."""
    if case.action is None or case.call is None or case.contract is None:
        raise ValueError("only transactions are approved")
    content = {
        "chain": case.contract.get("chain"),
        "contract_address": case.contract.get("address"),
        "contract_name": case.contract.get("name"),
        "signature": case.call.function.signature,
        "args": list(case.action.args),
        "value_wei": str(case.action.value_wei),
        "data": case.call.data,
        "thread_id": case.action.thread_id,
    }
    return codec.dumps(codec.number_fragments(content))


def read_content(content: bytes) -> Mapping[str, Any]:
    """The content of a request as JSON values; empty if it is not that of a transaction."""
    try:
        value: Any = codec.loads_exact(content)
    except ValueError:
        return {}
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def approval_lines(content: Mapping[str, Any]) -> list[str]:
    """The transaction in plain words, one line for each fact."""
    arguments = content.get("args")
    values = cast("list[Any]", arguments) if isinstance(arguments, list) else []
    contract, address = plain_text(content.get("contract_name")), plain_text(content.get("contract_address"))
    lines = [
        f"calls  {plain_text(content.get('signature'))}",
        f"of     {contract} at {address} on {plain_text(content.get('chain'))}",
        f"sends  {amount_text(content.get('value_wei'))}",
    ]
    return lines + [f"with   argument {number}: {plain_text(value)}" for number, value in enumerate(values, 1)]
