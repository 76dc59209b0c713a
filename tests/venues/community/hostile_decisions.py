"""Replies of a model under an attacker's control: seeded, mostly well formed, each spoiled in a way that has a name."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

from hostile_scenes import ABI, COLLISION, FOREIGN, MAINNET, ODD, SECOND, SLUG, VAULT

from pitboss.core.ports import ModelReply, ToolCall
from pitboss.venues.community.intents import DECISION

HUGE: tuple[Any, ...] = (
    2**256 - 1, 2**256, 2**255, str(2**256 - 1), str(2**256), 10**77, -1, "-1", -(2**255), 10**400, "9" * 78, "1" + "0" * 300,
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 1.5, 1e18, 1e308, -0.0, float("nan"), float("inf"), "", " ", "1e18", "0x10", "0x", "1_000", "+1", "٣",
    "1.0", " 1", "1\n", "NaN", [], {}, [[]], [1], {"value": 1}, "é", "\ud800", "\u202e1", "\x00", b"x".hex(), ["5", ["5", [5]]],
)  # fmt: skip
ADDRESSES: tuple[Any, ...] = (
    FOREIGN, MAINNET, ODD, SECOND, VAULT.upper(), VAULT[:-2] + "A1", VAULT + "00", VAULT[2:], " " + VAULT, VAULT + "\u200b",
    VAULT.replace("a", "\u0430", 1), "0x", "", "5", "None", "0x" + "0" * 40, "vault.eth", VAULT[:-1], str([VAULT]), "k1", 5, None, [VAULT],
)  # fmt: skip
NAMES: tuple[Any, ...] = (
    "approve", "Approve", "transfer", "transferOwnership", "set_Approval_For_All", COLLISION, "fallback", "receive", "",
    "with\u200bdraw", "withdr\u0430w", "deposit ", "deposit()()", "deposit(", "withdraw(uint)", "withdraw(uint256,uint256)",
    "withdraw(uint256", "WITHDRAW", "constructor", "transferFrom(address,address,uint256)", "“deposit”", "de“posit",
    "selfdestruct()", "0xa9059cbb", "set", "naked", "old", "approve(address,uint256)", f"{COLLISION}(address,bool)", 5, None, ["deposit"],
)  # fmt: skip
VALID_ARGS: dict[str, tuple[Any, ...]] = {
    "uint256": (0, "7", 10**6, str(2**256 - 1), 2**255),
    "uint8": (0, 255, "7"),
    "int16": (-32768, "-5", 32767),
    "string": ("text", "", "é😀", "x" * 70, "7"),
    "bytes32": ("0x" + "ab" * 32,),
    "bytes": ("0x", "0x1234", "0x" + "ff" * 40),
    "bool": (True, False),
    "address": (VAULT, FOREIGN, "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"),
    "uint256[]": ([], [1, "2"], [str(2**256 - 1)] * 3),
    "tuple[]": ([], [[VAULT, 255]], [[FOREIGN, "1"], [VAULT, 0]]),
}
FUNCTIONS = [entry for entry in ABI if entry["type"] == "function"]
ODD_FUNCTIONS = (
    "naked", "old", "withdraw", "approve", "balanceOf", "wide", "deep", "bad", "tangled", "empty", "d\u0435posit", "deposit(uint256)",
    "with\u200bdraw", "approve\n",
)  # fmt: skip
TEXT = "because the vault pays out twice and nobody noticed"


def transaction(chance: Random) -> dict[str, Any]:
    """A transaction or call that an honest agent could send."""
    entry = chance.choice(FUNCTIONS[:10] if chance.random() < 0.85 else FUNCTIONS)
    types = [one["type"] for one in entry["inputs"]]
    is_full = entry["name"] == "set" or chance.random() < 0.3
    written = ",".join("(address,uint8)[]" if kind == "tuple[]" else kind for kind in types)
    action: dict[str, Any] = {
        "action": "tx",
        "communitySlug": SLUG,
        "threadId": "t1",
        "contractAddress": VAULT if chance.random() < 0.8 else chance.choice((SECOND, ODD, MAINNET)),
        "functionName": f"{entry['name']}({written})" if is_full else entry["name"],
        "args": [chance.choice(VALID_ARGS[kind]) for kind in types],
    }
    if entry["name"] == "deposit":
        action["value"] = chance.choice(("0", "1", "500", "500", "501", "600", 600, "1000", "1001"))
    return action


def post(chance: Random) -> dict[str, Any]:
    """A thread, comment, status or reading that an honest agent could want."""
    body = f"{TEXT} {chance.randrange(10**9)}" if chance.random() < 0.85 else TEXT
    roll = chance.random()
    if roll < 0.4:
        kind = chance.choice(("DISCUSSION", "REPORT_TO_HUMAN", "REQUEST_TO_HUMAN"))
        return {
            "action": "create_thread",
            "communitySlug": SLUG,
            "title": body[:60] + body[-9:],
            "body": body,
            "threadType": kind,
        }
    if roll < 0.75:
        return {"action": "comment", "communitySlug": SLUG, "threadId": chance.choice(("t1", "t2")), "body": body}
    if roll < 0.9:
        thread = chance.choice(("t1", "t2", "t3"))
        return {"action": "set_request_status", "communitySlug": SLUG, "threadId": thread, "status": "resolved"}
    return {
        "action": "request_contract_source",
        "communitySlug": SLUG,
        "contractAddress": chance.choice((VAULT, FOREIGN, "5")),
    }


Spoil = Callable[[Random, dict[str, Any]], None]


def _field(chance: Random, action: dict[str, Any]) -> str:
    return chance.choice(list(action))


def _argument(value: Callable[[Random], Any]) -> Spoil:
    def spoil(chance: Random, action: dict[str, Any]) -> None:
        arguments = action.get("args")
        if isinstance(arguments, list) and arguments:
            arguments[chance.randrange(len(arguments))] = value(chance)
        else:
            action["args"] = [value(chance)]

    return spoil


def _set(name: str, values: tuple[Any, ...]) -> Spoil:
    return lambda chance, action: action.update({name: chance.choice(values)})


def _nested(chance: Random) -> Any:
    value: Any = chance.choice((1, "x", VAULT))
    for _ in range(chance.choice((2, 3, 5, 70))):
        value = [value]
    return value


ATTACKS: dict[str, Spoil] = {
    "other type": lambda chance, action: action.update({_field(chance, action): chance.choice(ODD_VALUES)}),
    "huge value": _set("value", HUGE),
    "odd value": _set("value", ODD_VALUES),
    "value of a function that takes none": _set("value", ("1", "500")),
    "huge argument": _argument(lambda chance: chance.choice(HUGE)),
    "odd argument": _argument(lambda chance: chance.choice(ODD_VALUES)),
    "nested argument": _argument(_nested),
    "wrong number of arguments": lambda chance, action: action.update(args=[5] * chance.choice((0, 2, 3, 64, 65))),
    "foreign contract": _set("contractAddress", ADDRESSES),
    "other chain": _set("contractAddress", (MAINNET, MAINNET.upper(), "0x" + MAINNET[2:].upper())),
    "function name": _set("functionName", NAMES),
    "overloaded name": lambda chance, action: action.update(functionName="set", args=[chance.choice(("7", 7, True, "0x" + "ab" * 32))]),
    "selector collision": lambda chance, action: action.update(
        functionName=chance.choice((COLLISION, f"{COLLISION}(address,bool)")), args=[FOREIGN, True]
    ),
    "function of a hostile ABI": lambda chance, action: action.update(
        contractAddress=ODD, functionName=chance.choice(ODD_FUNCTIONS), args=chance.choice(([], [], ["5"], [FOREIGN], [FOREIGN, "5"]))
    ),
    "denied function": lambda chance, action: action.update(
        functionName=chance.choice(("approve", "transfer", "approve(address,uint256)")), args=[FOREIGN, str(2**256 - 1)]
    ),
    "other community": _set("communitySlug", ("other", "Vault", "vault ", "vau\u200blt", "", "vault\x00")),
    "other thread": _set("threadId", ("t9", "", "T1", "t1 ", "t1\u200b", "../t1", "t3")),
    "more fields": lambda chance, action: action.update({chance.choice(("gas", "chainId", "from", "nonce", "chain", "to")): chance.choice((1, "0x1", 10**9))}),
    "missing field": lambda chance, action: action.pop(_field(chance, action)) and None,
    "long text": lambda chance, action: action.update({chance.choice(("body", "title", "functionName")): "x" * chance.choice((181, 8_001, 12_001))}),
}  # fmt: skip
RARE: dict[str, Spoil] = {
    "100 KB text": lambda chance, action: action.update(
        {_field(chance, action): chance.choice("xé\u200b'\"{[") * 100_000}
    ),
}


def hostile_reply(chance: Random) -> tuple[ModelReply, list[dict[str, Any]], list[str]]:
    """A reply, the actions that it was made from, and the names of what is wrong with it."""
    names: list[str] = []
    count = chance.choices((1, 2, 3, 16, 17), (80, 12, 5, 2, 1))[0]
    actions: list[dict[str, Any]] = []
    for _ in range(count):
        action = transaction(chance) if chance.random() < 0.7 else post(chance)
        for _ in range(chance.choice((0, 0, 1, 1, 1, 2, 3))):
            attacks = RARE if chance.random() < 0.001 else ATTACKS
            name = chance.choice(list(attacks))
            attacks[name](chance, action)
            names.append(name)
        actions.append(action)
    if count > 1:
        names.append("several actions")
        roll = chance.random()
        if roll < 0.2:
            actions = [post(chance) for _ in range(count)]
        elif roll < 0.6:  # together they break a limit, alone they do not
            deposit = {**transaction(chance), "contractAddress": VAULT, "functionName": "deposit", "args": []}
            actions = [{**deposit, "value": str(chance.choice((500, 600)) + number % 3)} for number in range(count)]
    return _written(chance, actions, names), actions, names


def _written(chance: Random, actions: list[dict[str, Any]], names: list[str]) -> ModelReply:
    """The actions as a call or as text, in one of the forms that models use."""
    roll = chance.random()
    if roll < 0.02:
        names.append("key given twice")
        first = json.dumps(actions[0])
        return _call('{"actions": [' + first[:-1] + ', "value": "999", "value": "1"}]}')
    content = json.dumps({"actions": actions}, ensure_ascii=chance.random() < 0.5)
    if roll < 0.6:
        return _call(content)
    if roll < 0.62:
        names.append("two calls")
        call = ToolCall("a", DECISION.tool, content)
        other = json.dumps({"actions": [{**actions[0], "value": "5"}]})
        return ModelReply(calls=(call, ToolCall("b", DECISION.tool, other)), finish_reason="tool_calls")
    if roll < 0.7:
        return ModelReply(json.dumps(actions))
    if roll < 0.78:
        return ModelReply(f"[1] I see {{}} and answer:\n```json\n{content}\n```\nand so on {content[:40]}")
    if roll < 0.86:
        return ModelReply(f"As told: {json.dumps(actions[0])}, then {json.dumps(actions[-1])}.")
    if roll < 0.92:
        names.append("curly quotes")
        return ModelReply(content.replace('"', "“", 1).replace('"', "”"))
    if roll < 0.97:
        names.append("lenient JSON")
        return ModelReply(f"// do it\n{content[:-1]},}} /* now */")
    names.append("cut off")
    return ModelReply(content[: chance.randrange(len(content))])


def _call(arguments: str) -> ModelReply:
    return ModelReply(calls=(ToolCall("h", DECISION.tool, arguments),), finish_reason="tool_calls")
