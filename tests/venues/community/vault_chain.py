"""A chain with the example vault and a forum that lists it, for tests of live agents that send transactions.

`Echo` is a contract of a few bytes that accepts every call and returns its first argument, so its ABI may say anything.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chain.counter_chain import FaultyPort, LocalSigner, call_node, deploy
from eth_utils.crypto import keccak
from live_agent import OF_CHAIN, LiveAgent, fresh_state, no_pause
from sns.forum_server import RunningForum, serving

from pitboss.bootstrap.machine import SystemClock, random_hex
from pitboss.core.errors import TransientError
from pitboss.core.state import State
from pitboss.signer.evm.policy import EvmPolicy
from pitboss.signer.secp256k1_keys import address_of
from pitboss.store.approval_requests import ApprovalRequests
from pitboss.store.database import Database
from pitboss.store.outbox import StoredOutbox
from pitboss.terminal.workspace_options import WorkspaceOptions
from pitboss.testing.evm_node import EmbeddedEvmNode
from pitboss.venues.community.chain.json_rpc import JsonRpcClient
from pitboss.venues.community.chain.rpc_chain import RpcChain
from pitboss.venues.community.chain.transaction_sender import SenderSettings
from pitboss.venues.community.scenario import read_scenario
from pitboss.venues.community.skill import CommunitySkill
from pitboss.venues.community.sns.app import open_server
from pitboss.venues.community.sns.client import SnsClient
from pitboss.venues.community.sns.seed import seed_forum
from pitboss.venues.community.sns.serve_options import SnsOptions

VAULT = json.loads((Path(__file__).parents[3] / "examples" / "community" / "vault.json").read_text("utf-8"))
ECHO_CODE = "0x600b600c600039600b6000f3" + "60043560005260206000f3"
CHAIN = "Local"
RISK: dict[str, Any] = {
    "chain": CHAIN,
    "value_wei": str(10**20),
    "spend_wei_per_day": str(10**21),
    "transactions_per_day": 5,
    "gas": 300_000,
}


def function(name: str, types: str, mutability: str, output: str = "") -> dict[str, Any]:
    """One function of an ABI; `types` are separated by spaces."""
    inputs = [{"name": f"a{number}", "type": kind} for number, kind in enumerate(types.split())]
    outputs = [{"name": "", "type": output}] if output else []
    return {"type": "function", "name": name, "stateMutability": mutability, "inputs": inputs, "outputs": outputs}


ECHO_ABI = [
    function("echo", "uint256", "view", "uint256"),
    function("echo", "uint256 uint256", "view", "uint256"),
    function("echo", "bytes32", "view", "bytes32"),
    function("keep", "uint256", "nonpayable", "uint256"),
    function("keep", "uint256 uint256", "nonpayable", "uint256"),
    function("approve", "address uint256", "nonpayable", "uint256"),
    function("transfer", "address uint256", "payable", "uint256"),
]


def skill(**risk: Any) -> CommunitySkill:
    return CommunitySkill.model_validate(
        {"name": "tester", "venue": "community", "model": "policy/silent", "risk": {**RISK, **risk}}
    )


class NodeTransport:
    """The embedded node in this process. From a method on that `silent_from` names, it does requests and answers none."""

    def __init__(self, node: EmbeddedEvmNode, breaks: Callable[[str], None]) -> None:
        self.node = node
        self.breaks = breaks
        self.silent_from = ""
        self.ignores_fees = False
        """Whether calls and estimates succeed for an account that cannot pay for them, as at most nodes."""
        self._is_silent = False

    async def post(self, body: bytes) -> tuple[bytes, int]:
        method = json.loads(body)["method"]
        reply = self.node.answer(body)
        if self.ignores_fees and method in ("eth_call", "eth_estimateGas"):
            reply = json.dumps(
                {"id": json.loads(body)["id"], "result": "0x" if method == "eth_call" else hex(90_000)}
            ).encode()
        if method == "eth_sendRawTransaction":
            self.breaks("after broadcast")
        self._is_silent = bool(self.silent_from) and (self._is_silent or method == self.silent_from)
        if self._is_silent:
            raise TransientError("the node does not answer")
        return reply, 1


@dataclass
class VaultChain:
    """The chain, its contracts, and the forum."""

    node: EmbeddedEvmNode
    vault: str
    echo: str
    forum_server: RunningForum
    text: str = ""
    _accounts: int = field(default=0, init=False)

    def action(self, name: str, *args: Any, value: int = 0, contract: str = "") -> dict[str, Any]:
        """A `tx` action of the agent."""
        action = {
            "action": "tx",
            "communitySlug": self.forum_server.seeded["community"]["slug"],
            "threadId": self.forum_server.thread("DISCUSSION"),
            "contractAddress": contract or self.vault,
            "functionName": name,
            "args": list(args),
        }
        return {**action, "value": str(value)} if value else action

    def balance(self, address: str) -> int:
        return int(call_node(self.node, "eth_getBalance", address), 16)

    def mined(self, sender: str, since: int = 0) -> list[dict[str, Any]]:
        """The transactions of an account in the blocks of the chain."""
        blocks = [
            call_node(self.node, "eth_getBlockByNumber", hex(number), True)
            for number in range(since, self.node.height() + 1)
        ]
        return [tx for block in blocks for tx in block["transactions"] if tx["from"].lower() == sender]

    def account(self, folder: Path) -> "VaultAccount":
        """A new funded account with its signer."""
        self._accounts += 1
        key = keccak(text=f"{folder} {self._accounts}")
        return VaultAccount(self, key, folder / f"journal-{self._accounts}.db")


class VaultAccount:
    """An account whose key a signer in this process has; every agent on it is like a new process."""

    def __init__(self, stage: VaultChain, key: bytes, journal: Path) -> None:
        self.stage, self.key, self.address = stage, key, address_of(key)
        self.policy = policy(stage)
        self.journal = journal
        node = stage.node
        self.first_block = node.height()
        call_node(node, "eth_sendTransaction", {"from": node.accounts[2], "to": self.address, "value": hex(2 * 10**20)})

    async def agent(
        self,
        client: SnsClient,
        database: Database,
        state: State | None = None,
        breaks: Callable[[str], None] = lambda step: None,
        approvals: ApprovalRequests | None = None,
        scope: str = "community:test",
        skill: CommunitySkill = skill(),  # noqa: B008  frozen
    ) -> LiveAgent:
        """A new process of the agent, which continues from a state."""
        self.transport = NodeTransport(self.stage.node, breaks)
        signer: Any = FaultyPort(LocalSigner(self.key, self.policy, self.journal), breaks)
        outbox: Any = FaultyPort(StoredOutbox(database, SystemClock().now), lambda step: breaks(step + OF_CHAIN))
        settings = SenderSettings(confirmations=1, turns=4, replace_turns=9, max_gas=skill.risk.gas)
        json_rpc = JsonRpcClient(self.transport, self.stage.node.chain_id)
        chain = await RpcChain.open(json_rpc, signer, outbox, settings, "agent", SystemClock().now, no_pause)
        return LiveAgent(
            client,
            database,
            state or fresh_state(self.stage.forum_server),
            breaks,
            chain,
            skill,
            scope,
            approvals=approvals,
        ).begin()

    def mined(self) -> list[dict[str, Any]]:
        return self.stage.mined(self.address, self.first_block)


def policy(stage: VaultChain) -> EvmPolicy:
    """A policy of the signer that allows far more than the skill, so that a test sees what the rules hold back."""
    caps = {
        "value_wei": 10**21,
        "gas": 1_000_000,
        "max_fee_per_gas_wei": 500 * 10**9,
        "max_priority_fee_per_gas_wei": 100 * 10**9,
        "spend_per_day_wei": 10**22,
        "transactions_per_day": 1_000,
        "replacements": 10,
    }
    echo = ("keep(uint256)", "keep(uint256,uint256)", "approve(address,uint256)", "transfer(address,uint256)")
    contracts = [
        {"address": stage.vault, "functions": ("deposit()", "withdraw(uint256)"), "payable": ("deposit()",)},
        {"address": stage.echo, "functions": echo, "payable": ("transfer(address,uint256)",), "allow_denied": echo},
    ]
    return EvmPolicy.model_validate(
        {
            "version": 1,
            "scheme": "evm_transaction",
            "chain_id": stage.node.chain_id,
            "caps": caps,
            "contracts": contracts,
        }
    )


@contextmanager
def vault_chain(home: Path, hostile_text: str = "Are deposits safe?") -> Iterator[VaultChain]:
    """A new chain, and a forum server whose community lists its contracts and has a thread with a hostile text."""
    node = EmbeddedEvmNode()
    vault, echo = deploy(node, VAULT["bytecode"]), deploy(node, ECHO_CODE)
    call_node(
        node, "eth_sendTransaction", {"from": node.accounts[1], "to": vault, "value": hex(10**21), "data": "0xd0e30db0"}
    )
    rows = [("vault", vault, VAULT["abi"]), ("echo", echo, ECHO_ABI)]
    contracts = [
        {"id": name, "name": name, "address": address, "chain": CHAIN, "abi": abi, "source": name}
        for name, address, abi in rows
    ]
    document = {
        "name": "vault",
        "community": "Vault",
        "agent": "auditor",
        "contracts": contracts,
        "posts": [{"id": "first", "author": "mallory", "title": "Deposits", "body": hostile_text}],
    }
    server = open_server(WorkspaceOptions(home, None), SnsOptions(), SystemClock(), random_hex)
    with server.database:
        seeded = seed_forum(server, random_hex, read_scenario(document))
    with serving(home, seeded=seeded) as forum_server:
        yield VaultChain(node, vault, echo, forum_server, hostile_text)
