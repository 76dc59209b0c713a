"""What a person sees of a transaction that needs approval: its content as stored with the request, and as plain words.

The names and arguments come from strangers, so that text shows them on one line each, cut, and without control characters.
"""

import unicodedata
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, cast

from pitboss.core import codec
from pitboss.core.money import text

if TYPE_CHECKING:  # it imports the libraries of the chain, and commands that only describe themselves need none
    from pitboss.venues.community.case import CommunityCase

MOST_CHARS = 120
_WEI_PER_ETH = Decimal(10**18)
_EXACT = Context(prec=100)


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


def amount_text(wei: Any) -> str:
    """An amount in wei and in ETH, both exact."""
    if not isinstance(wei, str) or not wei.isascii() or not wei.isdigit() or len(wei) > 78:
        return "an unreadable amount"
    return f"{int(wei):,} wei ({text(_EXACT.divide(Decimal(wei), _WEI_PER_ETH))} ETH)"


def plain_text(value: Any, most: int = MOST_CHARS) -> str:
    """A value on one line, text as it is and others as JSON, without control or formatting characters, cut if too long."""
    written = value if isinstance(value, str) else codec.dumps(codec.number_fragments(value)).decode()
    shown = "".join(
        " " if letter.isspace() else letter if unicodedata.category(letter)[0] != "C" else "�" for letter in written
    )
    return shown if len(shown) <= most else f"{shown[:most]}… (and {len(shown) - most} more characters)"
