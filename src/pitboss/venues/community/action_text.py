"""An action of an agent in plain words, for terminals and pages. Every part of it comes from a model: it is cut and cleaned."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pitboss.core import codec
from pitboss.venues.community.plain_text import amount_text, plain_text

MOST_TITLE, MOST_ARGUMENT, MOST_ARGUMENTS = 80, 24, 6
THREADS = {
    "REPORT_TO_HUMAN": "Report to the owner",
    "REQUEST_TO_HUMAN": "Request to the owner",
    "DISCUSSION": "New thread",
}
Names = Mapping[str, str]
NO_NAMES: Names = {}


def describe_action(row: Mapping[str, Any], names: Names = NO_NAMES, is_sent: bool = False) -> str:
    """What an action does. `names` are titles of threads and names of contracts, by id and by address in lower case.

    `is_sent` says that a call was sent as a transaction, not only read.
    """
    action = row.get("action")
    thread = _name(row.get("threadId"), names, "a thread")
    if action == "create_thread":
        return f"{THREADS.get(str(row.get('threadType')), THREADS['DISCUSSION'])}: “{plain_text(row.get('title'), MOST_TITLE)}”"
    if action == "comment":
        return f"Comment on {thread}"
    if action == "tx":
        return f"{'Transaction' if is_sent else 'Call'} {call_text(row, names)}"
    if action == "set_request_status":
        return f"Set {thread} to {plain_text(row.get('status'), MOST_ARGUMENT)}"
    if action == "request_contract_source":
        return f"Read the source of {_name(row.get('contractId') or row.get('contractAddress'), names, 'a contract', quoted=False)}"
    if action == "request_thread_comments":
        return f"Read the comments of {thread}"
    return "Something malformed"


def call_text(row: Mapping[str, Any], names: Names = NO_NAMES) -> str:
    """The contract, the function and its arguments, and the value if one is sent."""
    contract = _name(row.get("contractAddress"), names, "a contract", quoted=False)
    function = plain_text(row.get("functionName") or "?", MOST_TITLE).partition("(")[0]
    value = str(row.get("value") or "0")
    sent = "" if value == "0" else f" with {amount_text(value)}"
    return f"{contract}.{function}({arguments_text(row.get('args'))}){sent}"


def arguments_text(arguments: Any) -> str:
    """The arguments of a call, the first few of them, each cut."""
    values: Sequence[Any] = cast("Sequence[Any]", arguments) if isinstance(arguments, list | tuple) else ()
    shown = [_short(value) for value in values[:MOST_ARGUMENTS]]
    return ", ".join([*shown, *(["…"] if len(values) > MOST_ARGUMENTS else [])])


def short_hex(text: str) -> str:
    """An address or hash by its first and last digits; other text as it is."""
    return f"{text[:6]}…{text[-4:]}" if text.startswith("0x") and len(text) > 20 else text


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else codec.dumps(codec.number_fragments(value)).decode()
    clean = short_hex(plain_text(text, 200))
    return clean if len(clean) <= MOST_ARGUMENT else f"{clean[: MOST_ARGUMENT - 1]}…"


def _name(identifier: Any, names: Names, unnamed: str, quoted: bool = True) -> str:
    if not isinstance(identifier, str) or not identifier:
        return unnamed
    name = names.get(identifier) or names.get(identifier.lower())
    if name is None:
        return short_hex(plain_text(identifier, MOST_TITLE))
    return f"“{plain_text(name, MOST_TITLE)}”" if quoted else plain_text(name, MOST_TITLE)
