"""An embedded EVM chain with a counting contract, and accounts whose sender can be killed at any step."""

import inspect
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eth_utils.crypto import keccak

from pitboss.core.errors import TransientError
from pitboss.core.noun import noun
from pitboss.signer.client import SignerClient, _reply
from pitboss.signer.evm.policy import EvmPolicy
from pitboss.signer.journal import SigningJournal
from pitboss.signer.request_handler import RequestHandler
from pitboss.signer.schemes.evm_transaction import EvmScheme
from pitboss.signer.secp256k1_keys import address_of
from pitboss.store.database import open_database
from pitboss.store.outbox import OutboxEntry, StoredOutbox
from pitboss.testing.evm_node import EmbeddedEvmNode
from pitboss.testing.rpc_faults import FaultyRpc, SeededChoices
from pitboss.venues.community.chain.abi import read_abi
from pitboss.venues.community.chain.json_rpc import JsonRpcClient
from pitboss.venues.community.chain.ports import ChainContract, TxOutcome
from pitboss.venues.community.chain.rpc_chain import RpcChain
from pitboss.venues.community.chain.transaction_sender import SenderSettings
from simulated_kill import Killed

SOURCE = """
marks: public(HashMap[uint256, uint256])
total: public(uint256)

@external
def mark(number: uint256):
    self.marks[number] += 1
    self.total += 1

@external
@payable
def pay(number: uint256):
    self.marks[number] += 1

@external
def fail(number: uint256):
    assert self.total == number, "not the total"
    self.total += 1
"""


@noun
class CounterChain:
    """The chain of a test process, with the contract."""

    node: EmbeddedEvmNode
    contract: ChainContract
    bytecode: str


@cache
def counter_chain() -> CounterChain:
    """The chain of this process; it takes seconds to create."""
    from vyper import compile_code

    compiled: Any = compile_code(SOURCE, output_formats=["abi", "bytecode"])
    node = EmbeddedEvmNode()
    address = deploy(node, compiled["bytecode"])
    node.auto_mine = False
    return CounterChain(node, ChainContract(address, read_abi(compiled["abi"])), compiled["bytecode"])


@cache
def empty_database() -> bytes:
    """The bytes of an empty database, to be copied."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pitboss.db"
        with open_database(path) as database:
            StoredOutbox(database, lambda: 0).get("none")
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        return path.read_bytes()


def call_node(node: EmbeddedEvmNode, method: str, *params: object) -> Any:
    reply = json.loads(node.answer(json.dumps({"id": 1, "method": method, "params": params}).encode()))
    assert "error" not in reply, reply
    return reply["result"]


def deploy(node: EmbeddedEvmNode, bytecode: str) -> str:
    tx_hash = call_node(node, "eth_sendTransaction", {"from": node.accounts[0], "data": bytecode})
    return call_node(node, "eth_getTransactionReceipt", tx_hash)["contractAddress"].lower()


class LocalSigner(SignerClient):
    """A signer in this process, with the real request handler and journal."""

    def __init__(self, key: bytes, policy: EvmPolicy, path: Path) -> None:
        super().__init__(path)
        self._handler = RequestHandler(key, EvmScheme(policy), SigningJournal(path), lambda: 86_400_000 * 20_000)

    async def _ask(self, request: dict[str, object]) -> Any:
        line = json.dumps({"version": 1, **request}).encode()
        return _reply(json.dumps(self._handler.handle(line)).encode())


class FaultyPort:
    """Wraps a port and injects a fault before or after its calls."""

    def __init__(self, target: Any, breaks: Callable[[str], None]) -> None:
        self._target, self._breaks = target, breaks

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not callable(value):
            return value
        if inspect.iscoroutinefunction(value):

            async def ask_(*arguments: Any, **named: Any) -> Any:
                self._breaks(f"before {name}")
                result = await value(*arguments, **named)
                self._breaks(f"after {name}")
                return result

            return ask_

        def call(*arguments: Any) -> Any:
            self._breaks(f"before {name}")
            result = value(*arguments)
            self._breaks(f"after {name}")
            return result

        return call


def policy_for(stage: CounterChain) -> EvmPolicy:
    caps = {
        "value_wei": 10**15,
        "gas": 300_000,
        "max_fee_per_gas_wei": 500 * 10**9,
        "max_priority_fee_per_gas_wei": 100 * 10**9,
        "spend_per_day_wei": 10**22,
        "transactions_per_day": 100_000,
        "replacements": 100,
    }
    functions = ("mark(uint256)", "pay(uint256)", "fail(uint256)")
    contract = {"address": stage.contract.address, "functions": functions, "payable": ("pay(uint256)",)}
    return EvmPolicy.model_validate(
        {
            "version": 1,
            "scheme": "evm_transaction",
            "chain_id": stage.node.chain_id,
            "caps": caps,
            "contracts": [contract],
        }
    )


class Account:
    """A funded account with its outbox and signer, whose sender can be started again at any time."""

    def __init__(self, folder: Path, name: str, percent: int = 0, settings: SenderSettings | None = None) -> None:
        self.stage = counter_chain()
        self.node = self.stage.node
        self.key = keccak(text=name)
        self.address = address_of(self.key)
        self.settings = settings or SenderSettings(confirmations=2, turns=12, replace_turns=4, max_fee_per_gas_wei=500 * 10**9, max_priority_fee_per_gas_wei=100 * 10**9)  # fmt: skip
        self.choices = SeededChoices("account " + name)
        self.kills_per_mille = 0
        self.kills = 0
        self._folder = folder
        self.stack = ExitStack()
        self.node.drop_pool()
        call_node(
            self.node, "eth_sendTransaction", {"from": self.node.accounts[0], "to": self.address, "value": hex(10**20)}
        )
        self.node.mine(14 if percent else 1)  # deeper than any reorganisation
        self.rpc = FaultyRpc(self.node, name, percent)
        self.start()

    def start(self) -> None:
        """A new process: everything but the files is new."""
        self.stack.close()
        if not (self._folder / "pitboss.db").exists():
            (self._folder / "pitboss.db").write_bytes(empty_database())
        self.signer = LocalSigner(self.key, policy_for(self.stage), self._folder / "journal.db")
        database = self.stack.enter_context(open_database(self._folder / "pitboss.db"))
        self.outbox = StoredOutbox(database, lambda: 0)
        self.chain: RpcChain | None = None

    def close(self) -> None:
        self.stack.close()

    def _break(self, name: str) -> None:
        if self.kills_per_mille and self.choices.below(1000) < self.kills_per_mille:
            self.kills += 1
            raise Killed(name)

    async def pause(self, seconds: float) -> None:
        """Time goes by: blocks are mined."""
        del seconds
        for _ in range(self.choices.below(3)):
            self.node.mine()

    async def opened(self) -> RpcChain:
        if self.chain is None:
            client = JsonRpcClient(FaultyPort(self.rpc, self._break), self.node.chain_id)
            signer: Any = FaultyPort(self.signer, self._break)
            outbox: Any = FaultyPort(self.outbox, self._break)
            self.chain = await RpcChain.open(client, signer, outbox, self.settings, "test", lambda: 0, self.pause)
        return self.chain

    async def send(self, request_id: str, number: int, function: str = "mark", value: int = 0) -> TxOutcome:
        chain = await self.opened()
        return await chain.send(request_id, self.stage.contract, function, [number], value)

    async def through(self, request_id: str, number: int, tries: int) -> TxOutcome | None:
        """Send through kills and faults: every kill is followed by a new start."""
        outcome = None
        for _ in range(tries):
            try:
                outcome = await self.send(request_id, number)
                if outcome.is_final:
                    break
            except TransientError:
                continue
            except Killed:
                self.start()
        return outcome

    def entries(self) -> tuple[OutboxEntry, ...]:
        return self.outbox.with_coins(f"evm:{self.node.chain_id}:{self.address}", "", 10_000)[::-1]

    def marks(self, number: int) -> int:
        data = keccak(text="marks(uint256)")[:4].hex() + number.to_bytes(32, "big").hex()
        return int(call_node(self.node, "eth_call", {"to": self.stage.contract.address, "data": "0x" + data}), 16)

    def count(self) -> int:
        return int(call_node(self.node, "eth_getTransactionCount", self.address), 16)


@contextmanager
def account(folder: Path, name: str, **options: Any) -> Iterator[Account]:
    folder.mkdir(parents=True, exist_ok=True)
    made = Account(folder, name, **options)
    try:
        yield made
    finally:
        made.close()
