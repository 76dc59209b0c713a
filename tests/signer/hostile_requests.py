"""Hostile requests for the signing process, and an independent reading of what it signed."""

import json
import random
from collections.abc import Mapping
from typing import Any

import rlp
from eth_abi.abi import encode
from eth_account import Account
from eth_utils.crypto import keccak

from pitboss.signer.evm.policy import EvmPolicy

KEY = keccak(text="the key of these tests")
PASSPHRASE_FORMS = (KEY.hex(), KEY.hex().upper(), "correct horse battery")
"""Secrets of the signing process that no other process may have."""
ADDRESS = str(Account.from_key(KEY).address).lower()
VAULT = "0x" + "a1" * 20
TOKEN = "0x" + "b2" * 20
OTHER = "0x" + "c3" * 20
CHAIN_ID = 1337
GWEI = 10**9
VALUE_CAP, GAS_CAP, FEE_CAP, PRIORITY_CAP = 5 * 10**15, 200_000, 50 * GWEI, 3 * GWEI
DAY_SPEND_CAP, DAY_COUNT_CAP = 10**17, 40
FUNCTIONS: Mapping[str, Mapping[str, bool]] = {
    VAULT: {
        "deposit()": True,
        "withdraw(uint256)": False,
        "note(uint256,string)": False,
        "move((address,uint8)[])": False,
    },
    TOKEN: {"transfer(address,uint256)": False, "approve(address,uint256)": False},
}
"""By address the allowed signatures, and whether they take value."""
POLICY = EvmPolicy.model_validate(
    {
        "version": 1,
        "scheme": "evm_transaction",
        "chain_id": CHAIN_ID,
        "caps": {
            "value_wei": VALUE_CAP,
            "gas": GAS_CAP,
            "max_fee_per_gas_wei": FEE_CAP,
            "max_priority_fee_per_gas_wei": PRIORITY_CAP,
            "spend_per_day_wei": DAY_SPEND_CAP,
            "transactions_per_day": DAY_COUNT_CAP,
            "replacements": 3,
        },
        "contracts": [
            {
                "address": address,
                "functions": tuple(functions),
                "payable": tuple(name for name, payable in functions.items() if payable),
                "allow_denied": ("approve(address,uint256)",) if address == TOKEN else (),
            }
            for address, functions in FUNCTIONS.items()
        ],
    }
)


def selector(signature: str) -> str:
    return keccak(text=signature)[:4].hex()


CALLS = (
    selector("deposit()"),
    selector("withdraw(uint256)") + encode(["uint256"], [7]).hex(),
    selector("note(uint256,string)") + encode(["uint256", "string"], [7, "hello"]).hex(),
    selector("move((address,uint8)[])") + encode(["(address,uint8)[]"], [[(OTHER, 3)]]).hex(),
)


def payload(**changes: Any) -> dict[str, Any]:
    """A transaction that the policy allows, with changes."""
    content: dict[str, Any] = {
        "chain_id": CHAIN_ID,
        "nonce": 0,
        "to": VAULT,
        "data": "0x" + CALLS[1],
        "value": 0,
        "gas": 100_000,
        "max_fee_per_gas": 10 * GWEI,
        "max_priority_fee_per_gas": GWEI,
    }
    return {**content, **changes}


def line(request_id: Any = "a", content: Any = None, **changes: Any) -> bytes:
    request = {
        "version": 1,
        "op": "sign",
        "scheme": "evm_transaction",
        "request_id": request_id,
        "payload": payload() if content is None else content,
    }
    return json.dumps({**request, **changes}).encode() + b"\n"


HUGE = (2**255, 2**256 - 1, 2**256, -1, 2**63, 10**400)
ODD: tuple[Any, ...] = (None, True, 1.5, "1", "0x1", [], {}, "é" * 50, float("inf"), [[[]]], {"a": 1})
DENIED = (
    "approve(address,uint256)",
    "setApprovalForAll(address,bool)",
    "transferOwnership(address)",
    "increaseAllowance(address,uint256)",
    "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)",
    "withdraw(uint128)",
    "withdraw(uint256,address)",
    "withdraw()",
)


def hostile_line(chance: random.Random) -> bytes:
    """One request: an allowed one with up to three fields spoiled, a replay, a replacement, or noise."""
    content = payload(
        nonce=chance.randrange(60),
        to=chance.choice((VAULT, VAULT, VAULT, TOKEN)),
        data="0x" + chance.choice(CALLS),
        gas=chance.choice((21_000, 90_000, GAS_CAP, GAS_CAP, GAS_CAP + 1)),
        max_fee_per_gas=chance.choice((GWEI, 10 * GWEI, 12 * GWEI, FEE_CAP, FEE_CAP + 1)),
        max_priority_fee_per_gas=chance.choice((0, GWEI // 2, GWEI, PRIORITY_CAP, PRIORITY_CAP + 1)),
    )
    if chance.random() < 0.3:
        content["value"] = chance.choice((0, 1, VALUE_CAP, VALUE_CAP + 1, *HUGE))
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
        _spoil(chance, content)
    roll = chance.random()
    if roll < 0.02:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(200))) + b"\n"
    if roll < 0.04:
        return chance.choice((b"[" * 5_000, b'{"version":1}', b"9" * 9_000, b'"x"', b"null")) + b"\n"
    request_id: Any = f"r{chance.randrange(80)}"
    if chance.random() < 0.03:
        request_id = chance.choice((*ODD, "", "x" * 65, "a b", "a\n"))
    changes: dict[str, Any] = {}
    if chance.random() < 0.05:
        changes = chance.choice(
            ({"version": 2}, {"scheme": "raw_hash"}, {"op": "export"}, {"key": "please"}, {"scheme": []})
        )
    return line(request_id, content, **changes)


def _spoil(chance: random.Random, content: dict[str, Any]) -> None:
    kind = chance.randrange(8)
    name = chance.choice(tuple(content) or ("to",))
    if kind == 0:
        content[name] = chance.choice(ODD)
    elif kind == 1:
        content[name] = chance.choice(HUGE)
    elif kind == 2:
        content["to"] = chance.choice((OTHER, VAULT.upper(), "0x" + "A1b2" * 10, "0x", VAULT + "00", " " + VAULT))
    elif kind == 3:
        call = chance.choice(DENIED)
        content["data"] = "0x" + selector(call) + "00" * 32 * chance.randrange(8)
    elif kind == 4:
        content["data"] = str(content.get("data")) + chance.choice(("00", "00" * 32, "zz", "f"))
    elif kind == 5:
        data = str(content.get("data"))
        place = chance.randrange(2, max(3, len(data)))
        content["data"] = data[:place] + chance.choice("0123456789abcdef") + data[place + 1 :]
    elif kind == 6:
        content["chain_id"] = chance.choice((1, 0, 11155111, 1338, -1337))
    elif name in content and chance.random() < 0.5:
        del content[name]
    else:
        content["accessList"] = []


def breaches(raw: str) -> list[str]:
    """What is wrong with signed bytes by the numbers above. Shares no code with the signer."""
    data = bytes.fromhex(raw[2:])
    assert data[0] == 2
    chain_id, nonce, priority, fee, gas, to, value, call, access, *_ = rlp.decode(data[1:])
    number = lambda field: int.from_bytes(field, "big")  # noqa: E731
    address = "0x" + to.hex()
    allowed = {selector(name): (name, payable) for name, payable in FUNCTIONS.get(address, {}).items()}
    signature, payable = allowed.get(call[:4].hex(), ("", False))
    del nonce
    checks = {
        "chain": number(chain_id) == CHAIN_ID,
        "contract": address in FUNCTIONS,
        "function": bool(signature),
        "value": number(value) <= (VALUE_CAP if payable else 0),
        "gas": number(gas) <= GAS_CAP,
        "fee": number(fee) <= FEE_CAP and number(priority) <= PRIORITY_CAP,
        "access list": list(access) == [],
        "signer": str(Account.recover_transaction(data)).lower() == ADDRESS,
        "arguments": signature == "move((address,uint8)[])"
        or "string" in signature
        or len(call) == 4 + 32 * _words(signature),
    }
    return [name for name, holds in checks.items() if not holds]


def _words(signature: str) -> int:
    arguments = signature.partition("(")[2].rstrip(")")
    return len(arguments.split(",")) if arguments else 0


def nonce_and_spend(raw: str) -> tuple[int, int]:
    """The nonce of signed bytes and the most that they can cost."""
    fields = rlp.decode(bytes.fromhex(raw[4:]))
    nonce, fee, gas, value = (int.from_bytes(fields[place], "big") for place in (1, 3, 4, 6))
    return nonce, value + fee * gas
