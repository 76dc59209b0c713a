"""Communities as an honest or a hostile server shows them, and skill documents with limits, for hostile decisions."""

from dataclasses import dataclass
from typing import Any

VAULT, SECOND, MAINNET, ODD = ("0x" + byte * 20 for byte in ("a1", "b2", "c3", "d4"))
FOREIGN = "0x" + "11" * 20
SLUG = "vault"


def function(name: Any, *types: Any, mutability: Any = "nonpayable") -> dict[str, Any]:
    """An entry of an ABI."""
    inputs = [{"name": f"a{number}", "type": kind} for number, kind in enumerate(types)]
    return {"type": "function", "name": name, "inputs": inputs, "outputs": [], "stateMutability": mutability}


COLLISION = "join_tg_invmru_haha_fd06787"
"""With (address,bool) it has the selector of transfer(address,uint256)."""
PAIRS = {"name": "a0", "type": "tuple[]", "components": [{"type": "address"}, {"type": "uint8"}]}
ABI: list[Any] = [
    function("deposit", mutability="payable"),
    function("withdraw", "uint256"),
    function("note", "uint256", "string"),
    function("set", "uint256"),
    function("set", "string"),
    function("set", "bytes32"),
    function("small", "uint8", "int16"),
    function("flag", "bool", "address"),
    function("many", "uint256[]", "bytes"),
    {**function("move"), "inputs": [PAIRS]},
    function("balanceOf", "address", mutability="view"),
    function("approve", "address", "uint256"),
    function("transfer", "address", "uint256"),
    function("transferOwnership", "address"),
    function("set_Approval_For_All", "address", "bool"),
    function(COLLISION, "address", "bool"),
    {"type": "event", "name": "Deposit", "inputs": []},
]
HOSTILE_ABI: list[Any] = [
    5, None, [], {}, {"name": "naked"}, {"type": "function"}, {"type": "function", "name": ["deposit"], "inputs": []},
    function("with\u200bdraw", "uint256"), function("d\u0435posit", mutability="payable"), function("", "uint256"),
    function("deposit(uint256)"), function("wide", "uint512"), function("deep", "uint256" + "[2]" * 30), function("bad", {}),
    function("withdraw", "uint256", mutability="payable"), function("withdraw", "uint256", mutability="view"),
    function("withdraw", "uint", mutability="view"), function("approve", "address", "uint256", mutability="payable"),
    function("balanceOf", "address", mutability=["view"]), function("approve\n", "address", "uint256"),
    {**function("tangled"), "inputs": [{"type": "tuple", "components": "none"}]}, {**function("empty"), "inputs": 5},
    {"name": "old", "inputs": [], "payable": "yes", "constant": 1},
]  # fmt: skip
THREADS: list[Any] = [
    {"id": "t1", "title": "Registry", "type": "SYSTEM", "body": None, "author": "system"},
    {"id": "t2", "title": "Please fund", "type": "REQUEST_TO_HUMAN", "body": "I need gas.", "author": "alpha"},
    {"id": "t3", "title": "Fund me", "type": "REQUEST_TO_HUMAN", "body": "too", "author": "beta"},
]
CONTRACTS: list[Any] = [
    {"id": "k1", "name": "Vault", "chain": "Sepolia", "address": VAULT, "abi": ABI},
    {"id": "k2", "name": "Second", "chain": "Sepolia", "address": SECOND.upper().replace("X", "x"), "abi": ABI},
    {"id": "k3", "name": "Other chain", "chain": "Ethereum", "address": MAINNET, "abi": ABI},
]
HOSTILE_CONTRACTS: list[Any] = [
    None, 5, [], {}, {"id": "k9"}, {"id": ["k1"], "address": [VAULT], "abi": ABI, "chain": "Sepolia"},
    {"id": "k4", "chain": "Sepolia", "address": 5, "abi": ABI}, {"id": "k5", "chain": "Sepolia", "address": None, "abi": ABI},
    {"id": "k6", "chain": "Sepolia", "address": VAULT[:-1], "abi": ABI}, {"id": "k7", "chain": ["Sepolia"], "address": FOREIGN, "abi": ABI},
    {"id": "k8", "chain": "Sepolia", "address": ODD, "abi": HOSTILE_ABI}, {"id": "k8", "chain": "Sepolia", "address": MAINNET, "abi": "[]"},
]  # fmt: skip


def community(**changes: Any) -> dict[str, Any]:
    """The community of a context document."""
    content = {"id": "c1", "slug": SLUG, "status": "ACTIVE", "contracts": CONTRACTS, "threads": THREADS}
    return {
        **content,
        "recentComments": [{"id": "m1", "threadId": "t1", "body": "A summary.", "author": "b"}],
        **changes,
    }


RISK: dict[str, Any] = {
    "posts_per_day": 3,
    "transactions_per_day": 5,
    "value_wei": "1000",
    "spend_wei_per_day": "90000000000001200",
    "gas": 400_000,
    "fee_wei_per_gas": "50000000000",
    "approval_above_wei": "500",
    "chain": "Sepolia",
}
"""The day's limit of money is that of four transactions; the fifth is within the limit of their number."""
ROOMY = {**RISK, "spend_wei_per_day": "1000000000000000000", "approval_above_wei": None}


@dataclass(frozen=True)
class HostileScene:
    """A community as the server shows it, and the `risk` section of the agent's skill document."""

    name: str
    community: dict[str, Any] | None
    risk: dict[str, Any]


SCENES = (
    HostileScene("plain", community(), RISK),
    HostileScene("number of transactions", community(), ROOMY),
    HostileScene("listed contracts", community(), {**ROOMY, "contracts": [VAULT.upper().replace("X", "x")]}),
    HostileScene(
        "listed functions", community(), {**RISK, "functions": ["deposit()", "set(string)", "approve(address,uint256)"]}
    ),
    HostileScene(
        "allowed from the deny list", community(), {**RISK, "allowed_denied": ["approve"], "threads_per_tick": 2}
    ),
    HostileScene("hostile server", community(contracts=[*HOSTILE_CONTRACTS, *CONTRACTS]), RISK),
    HostileScene("no chain", community(), {**RISK, "chain": ""}),
    HostileScene("closed community", community(status="CLOSED"), RISK),
    HostileScene("no community", None, RISK),
)
