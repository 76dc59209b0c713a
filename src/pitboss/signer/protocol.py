"""The protocol of the signing process: JSON lines over a Unix socket, and the stable codes of its refusals.

A request is `{"version": 1, "op": "sign", "scheme": …, "request_id": …, "payload": {…}}` or `{"version": 1, "op": "describe"}`.
A reply is `{"ok": true, "build": …, …}`, with the build of the signing process, or `{"ok": false, "code": …, "message": …}`. A refusal is
a value. No message repeats what was sent.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from pitboss.core.noun import noun

VERSION = 1
SOCKET = "signer.sock"
"""The name of the socket in the folder of the signing process."""
MOST_LINE_BYTES = 96 * 1024
"""A longer request ends the connection."""

MALFORMED = "S01_MALFORMED"
SCHEME = "S02_SCHEME"
CHAIN = "S03_CHAIN"
CONTRACT = "S04_CONTRACT"
FUNCTION = "S05_FUNCTION"
DENIED_FUNCTION = "S06_DENIED_FUNCTION"
ARGUMENTS = "S07_ARGUMENTS"
VALUE = "S08_VALUE"
GAS = "S09_GAS"
FEE = "S10_FEE"
DAY_SPEND = "S11_DAY_SPEND"
DAY_COUNT = "S12_DAY_COUNT"
ID_CONFLICT = "S13_ID_CONFLICT"
NONCE_USED = "S14_NONCE_USED"
FEE_NOT_HIGHER = "S15_FEE_NOT_HIGHER"
REPLACEMENTS = "S16_REPLACEMENTS"
UNAVAILABLE = "S17_UNAVAILABLE"
NETWORK = "S18_NETWORK"
VAULT = "S19_VAULT"
ACTION_TYPE = "S20_ACTION_TYPE"
ASSET = "S21_ASSET"
PRICE = "S22_PRICE"
ORDER_NOTIONAL = "S23_ORDER_NOTIONAL"
DAY_NOTIONAL = "S24_DAY_NOTIONAL"
ORDER_RATE = "S25_ORDER_RATE"
LEVERAGE = "S26_LEVERAGE"
EXPIRY = "S27_EXPIRY"
NO_VERDICT = "S28_NO_VERDICT"
VERDICT_MISMATCH = "S29_VERDICT_MISMATCH"
VERDICT_USED = "S30_VERDICT_USED"
HALTED = "S31_HALTED"
SENDER = "S32_SENDER"
COMMAND = "S33_COMMAND"
OBJECT = "S34_OBJECT"
REDUCE_ONLY = "S35_REDUCE_ONLY"

MEANINGS: Mapping[str, str] = {
    MALFORMED: "the request cannot be read, or a field is missing, unknown or out of range",
    SCHEME: "this process does not sign that scheme",
    CHAIN: "the transaction is for another chain",
    CONTRACT: "the policy does not list that contract",
    FUNCTION: "the policy does not list that function of the contract",
    DENIED_FUNCTION: "the function gives rights away and is not allowed by name",
    ARGUMENTS: "the call data is not the exact encoding of the function's arguments",
    VALUE: "the value is above the cap of one transaction, or the function takes none",
    GAS: "the gas limit is above its cap",
    FEE: "a fee per gas is above its cap, or the priority fee is above the whole fee",
    DAY_SPEND: "value and fees of this UTC day would be above their cap",
    DAY_COUNT: "the number of transactions of this UTC day is reached",
    ID_CONFLICT: "the request id was used for another content",
    NONCE_USED: "the nonce was used for another request",
    FEE_NOT_HIGHER: "a replacement must raise both fees by at least a tenth",
    REPLACEMENTS: "the number of replacements of one request is reached",
    UNAVAILABLE: "the journal cannot be written, so nothing is signed",
    NETWORK: "the request is for another network",
    VAULT: "the request is for another vault than the policy's",
    ACTION_TYPE: "actions of this type are never signed",
    ASSET: "the policy does not list that asset",
    PRICE: "the price of an opening order is outside the band of its asset, or it is a trigger order",
    ORDER_NOTIONAL: "the notional of one order is above its cap",
    DAY_NOTIONAL: "the notional opened in this UTC day would be above its cap",
    ORDER_RATE: "the number of opening orders of this minute or UTC day is reached",
    LEVERAGE: "the leverage is above the cap of its asset",
    EXPIRY: "the expiry has passed, or is too far ahead",
    NO_VERDICT: "there is no verdict that such an action can stand on",
    VERDICT_MISMATCH: "the action is not what the verdict allows; the signer halts",
    VERDICT_USED: "the verdict has opened an order before; the signer halts",
    HALTED: "the signer is halted: only reduce-only orders and cancels are signed until a person lifts it",
    SENDER: "the transaction is sent or paid for by another account",
    COMMAND: "the transaction does more than to call listed functions, or hands something over",
    OBJECT: "the transaction changes an object that the policy does not list",
    REDUCE_ONLY: "the policy allows reduce-only orders and cancels alone",
}

_REQUEST_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_FIELDS = {"describe": {"version", "op"}, "sign": {"version", "op", "scheme", "request_id", "payload"}}


@noun
class SigningRefusal:
    """Why nothing was signed: a stable code and one line of text."""

    code: str
    message: str

    def reply(self) -> dict[str, Any]:
        """The refusal as a line of the protocol."""
        return {"ok": False, "code": self.code, "message": self.message}


@noun
class SigningRequest:
    """One request. `payload` is that of the scheme and not read yet."""

    op: str
    scheme: str = ""
    request_id: str = ""
    payload: Any = None


def refuse(code: str, detail: str = "") -> SigningRefusal:
    """A refusal with the meaning of its code, and a detail that holds no text of the request."""
    return SigningRefusal(code, f"{MEANINGS[code]}: {detail}" if detail else MEANINGS[code])


def read_request(line: bytes) -> SigningRequest | SigningRefusal:
    """Read one line. Never raises."""
    if len(line) > MOST_LINE_BYTES:
        return refuse(MALFORMED, "the line is too long")
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return refuse(MALFORMED, "it is not JSON")
    if not isinstance(content, dict):
        return refuse(MALFORMED, "it is not an object")
    fields = cast("dict[str, Any]", content)
    op = fields.get("op")
    if type(fields.get("version")) is not int or fields["version"] != VERSION:
        return refuse(MALFORMED, f"version is not {VERSION}")
    if not isinstance(op, str) or op not in _FIELDS:
        return refuse(MALFORMED, "op is neither sign nor describe")
    if set(fields) != _FIELDS[op]:
        return refuse(MALFORMED, "fields are missing or unknown")
    if op == "describe":
        return SigningRequest(op)
    scheme, request_id = fields["scheme"], fields["request_id"]
    if not isinstance(scheme, str):
        return refuse(SCHEME)
    if not isinstance(request_id, str) or not _REQUEST_ID.fullmatch(request_id):
        return refuse(MALFORMED, "request_id is not 1 to 64 letters, digits or _ . : -")
    return SigningRequest(op, scheme, request_id, fields["payload"])
