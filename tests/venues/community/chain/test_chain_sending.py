"""Reading, simulating and sending on a real EVM: each outcome, over HTTP too, by the signer and by a wallet."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from pitboss.core.errors import TransientError
from pitboss.store.database import open_database
from pitboss.store.outbox import StoredOutbox
from pitboss.testing.evm_node import EmbeddedEvmNode
from pitboss.testing.rpc_faults import FaultyRpc, serve_rpc
from pitboss.venues.community.chain.abi import read_abi
from pitboss.venues.community.chain.json_rpc import HttpTransport, JsonRpcClient
from pitboss.venues.community.chain.ports import ChainContract, ChainFailure, TxOutcome
from pitboss.venues.community.chain.rpc_chain import RpcChain
from pitboss.venues.community.chain.stored_transaction import StoredTransaction
from pitboss.venues.community.chain.transaction_sender import SenderSettings
from pitboss.venues.community.chain.wallet_chain import WalletChain
from venues.community.chain.counter_chain import (
    Account,
    LocalSigner,
    account,
    call_node,
    counter_chain,
    deploy,
    policy_for,
)

EXAMPLE = Path(__file__).parents[4] / "examples" / "community"
numbers = iter(range(10**30, 10**31))


@pytest.fixture
def sender(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Account]:
    with account(tmp_path, f"sending {request.node.name}") as made:
        yield made


def send(
    sender: Account, request_id: str = "a", function: str = "mark", number: int | None = None, value: int = 0
) -> TxOutcome:
    return asyncio.run(sender.send(request_id, next(numbers) if number is None else number, function, value))


def test_a_transaction_is_mined_once_and_the_same_id_gives_the_same_outcome(sender: Account) -> None:
    number = next(numbers)
    outcome = send(sender, number=number)
    assert (outcome.status, outcome.nonce) == ("mined", 0)
    assert send(sender, number=number) == outcome
    sender.start()
    assert send(sender, number=number) == outcome
    assert (sender.marks(number), sender.count()) == (1, 1)
    conflict = send(sender, number=number + 1)
    assert conflict.failure is not None
    assert conflict.failure.code == "id_conflict"


def test_reads_and_simulations_send_nothing(sender: Account) -> None:
    async def look() -> None:
        chain = await sender.opened()
        contract = sender.stage.contract
        total = await chain.call(contract, "total", [])
        assert isinstance(total.values[0], int)
        assert (await chain.simulate(contract, "mark", [1])).gas > 21_000
        reverted = await chain.simulate(contract, "fail", [10**9])
        assert reverted.failure is not None
        assert reverted.failure.code == "reverted"
        assert "not the total" in reverted.failure.message
        wrong = await chain.call(contract, "marks", ["x"])
        assert wrong.failure is not None
        assert wrong.failure.code == "bad_arguments"
        unpaid = await chain.simulate(contract, "mark", [1], 5)
        assert unpaid.failure is not None
        assert unpaid.failure.code == "bad_arguments"

    asyncio.run(look())
    assert (sender.count(), sender.entries()) == (0, ())


def test_what_would_revert_is_not_sent(sender: Account) -> None:
    outcome = send(sender, function="fail", number=10**9)
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.code, sender.count()) == ("not_sent", "reverted", 0)


def test_a_transaction_that_reverts_in_its_block_is_final_and_uses_its_nonce(sender: Account) -> None:
    total = int(call_node(sender.node, "eth_call", {"to": sender.stage.contract.address, "data": "0x2ddbd13a"}), 16)
    mining = sender.pause
    was_overtaken: list[bool] = []

    async def pause(seconds: float) -> None:
        if was_overtaken:
            return await mining(seconds)
        was_overtaken.append(True)  # another account is faster, and the call no longer fits
        pooled = dict(sender.node.pool)
        sender.node.drop_pool()
        mark = sender.stage.contract.abi.named("mark")[0].selector + "00" * 32
        contract = sender.stage.contract.address
        call_node(sender.node, "eth_sendTransaction", {"from": sender.node.accounts[1], "to": contract, "data": mark})
        sender.node.mine()
        sender.node.pool.update(pooled)

    sender.pause = pause
    outcome = send(sender, function="fail", number=total)
    assert (outcome.status, outcome.nonce, sender.count()) == ("reverted", 0, 1)
    assert send(sender, "b").nonce == 1


def test_a_transaction_that_is_not_mined_is_replaced_with_higher_fees_and_the_same_nonce(sender: Account) -> None:
    async def pause(seconds: float) -> None:
        del seconds  # nothing is mined

    mining, sender.pause = sender.pause, pause
    number = next(numbers)
    outcome = send(sender, number=number)
    assert outcome.status == "unknown"
    (entry,) = sender.entries()
    versions = StoredTransaction.loads(entry.request).versions
    assert len(versions) >= 2
    assert versions[-1].fee > versions[0].fee
    assert [pooled.nonce for pooled in sender.node.pool.values() if pooled.sender == sender.address] == [0]
    sender.pause = mining
    sender.start()
    assert send(sender, number=number).status == "mined"
    assert (sender.marks(number), sender.count()) == (1, 1)


@pytest.mark.parametrize("while_open", [False, True])
def test_a_reorganisation_that_undoes_a_mined_transaction_leaves_no_gap(sender: Account, while_open: bool) -> None:
    sender.node.mine(12)
    first, second = next(numbers), next(numbers)
    assert send(sender, "a", number=first).status == "mined"
    mining = sender.pause
    turns: list[float] = []

    async def pause(seconds: float) -> None:
        turns.append(seconds)
        if while_open and len(turns) == 1:
            sender.node.reorganise(12, keep=False)
        await mining(seconds)

    if not while_open:
        sender.node.reorganise(12, keep=False)
        assert sender.count() == 0
    sender.pause = pause
    sender.start()
    outcome = send(sender, "b", number=second)
    assert (outcome.status, outcome.nonce) == ("mined", 1)
    assert (sender.marks(first), sender.marks(second), sender.count()) == (1, 1, 2)


def test_an_open_transaction_blocks_the_next_one(sender: Account) -> None:
    async def pause(seconds: float) -> None:
        del seconds

    sender.pause = pause
    send(sender, "a")
    second = send(sender, "b")
    assert second.failure is not None
    assert (second.status, second.failure.code) == ("not_sent", "busy")


def test_a_nonce_that_another_program_used_is_reported_and_never_retried(sender: Account) -> None:
    from eth_account import Account as Keys

    async def pause(seconds: float) -> None:
        del seconds

    mining, sender.pause = sender.pause, pause
    send(sender, "a")
    sender.node.drop_pool()
    signed = Keys.sign_transaction(
        {
            "type": 2,
            "chainId": sender.node.chain_id,
            "nonce": 0,
            "to": "0x" + "11" * 20,
            "value": 1,
            "gas": 21_000,
            "maxFeePerGas": 10**11,
            "maxPriorityFeePerGas": 10**9,
        },
        sender.key,
    )
    call_node(sender.node, "eth_sendRawTransaction", "0x" + bytes(signed.raw_transaction).hex())
    sender.node.mine(5)
    sender.pause = mining
    (outcome,) = asyncio.run(resume_pending(sender))
    assert outcome.status == "replaced"
    assert (sender.count(), send(sender, "b").nonce) == (1, 1)


async def resume_pending(sender: Account) -> tuple[TxOutcome, ...]:
    return await (await sender.opened()).resume()


def test_a_node_that_counts_more_than_was_sent_gets_no_transaction(sender: Account) -> None:
    send(sender, "a")
    answer = sender.node.answer

    def ahead(body: bytes) -> bytes:
        reply = json.loads(answer(body))
        if json.loads(body)["method"] == "eth_getTransactionCount":
            reply["result"] = "0x9"
        return json.dumps(reply).encode()

    sender.node.answer = ahead
    try:
        outcome = send(sender, "b")
    finally:
        del sender.node.answer
    assert outcome.failure is not None
    assert outcome.failure.code == "nonce_mismatch"
    assert send(sender, "b").nonce == 1


def test_an_account_that_another_program_has_used_goes_on_from_the_nonce_of_the_settings(sender: Account) -> None:
    send(sender, "a")
    key, nonce = sender.key, sender.count()
    foreign = SenderSettings(turns=12, max_fee_per_gas_wei=500 * 10**9, max_priority_fee_per_gas_wei=100 * 10**9)

    async def use_elsewhere(path: Path) -> TxOutcome:
        signer = LocalSigner(key, policy_for(sender.stage), path / "other-journal.db")
        outbox = StoredOutbox(sender.stack.enter_context(open_database(path / "other.db")), lambda: 0)
        client = JsonRpcClient(FaultyRpc(sender.node, "x", 0), sender.node.chain_id)
        chain = await RpcChain.open(client, signer, outbox, foreign, "x", lambda: 0, sender.pause)
        return await chain.send("foreign", sender.stage.contract, "mark", [next(numbers)])

    with TemporaryDirectory() as folder:
        assert asyncio.run(use_elsewhere(Path(folder))).nonce == nonce
        refused = send(sender, "b")
        assert refused.failure is not None
        assert refused.failure.code == "nonce_mismatch"
        sender.settings = replace(sender.settings, first_nonce=nonce + 1)
        sender.start()
        assert [send(sender, name).nonce for name in "bc"] == [nonce + 1, nonce + 2]


def test_the_first_nonce_of_the_settings_is_not_replaced_by_what_a_node_counts(tmp_path: Path) -> None:
    settings = replace(SenderSettings(turns=2), first_nonce=2)
    with account(tmp_path, "first nonce", settings=settings) as sender:
        behind = send(sender, "a")
        assert behind.failure is not None
        assert behind.failure.code == "chain_behind"
        answer = sender.node.answer

        def ahead(body: bytes) -> bytes:
            reply = json.loads(answer(body))
            if json.loads(body)["method"] == "eth_getTransactionCount":
                reply["result"] = "0x9"
            return json.dumps(reply).encode()

        sender.node.answer = ahead
        try:
            mismatch = send(sender, "a")
        finally:
            del sender.node.answer
        assert mismatch.failure is not None
        assert mismatch.failure.code == "nonce_mismatch"


def test_a_refusal_of_the_signer_is_a_value_and_leaves_the_nonce_for_the_next(sender: Account) -> None:
    refused = send(sender, "a", "pay", value=10**16)
    assert refused.failure is not None
    assert refused.status == "not_sent"
    assert refused.failure.message.startswith("S08_VALUE")
    assert send(sender, "b", "pay", value=10**15).nonce == 0


def test_a_node_of_another_chain_is_not_believed(sender: Account) -> None:
    async def look() -> str:
        client = JsonRpcClient(FaultyRpc(sender.node, "x", 0), sender.node.chain_id + 1)
        with pytest.raises(TransientError, match="not one of chain") as error:
            await client.ask("eth_blockNumber", [])
        with pytest.raises(TransientError, match="signs for chain"):
            await RpcChain.open(client, sender.signer, sender.outbox, SenderSettings(), "x", lambda: 0)
        return str(error.value)

    assert asyncio.run(look())


def test_the_chain_is_checked_again_on_every_new_connection() -> None:
    class Counting:
        def __init__(self) -> None:
            self.methods: list[str] = []
            self.connection = 0

        async def post(self, body: bytes) -> tuple[bytes, int]:
            request = json.loads(body)
            self.methods.append(request["method"])
            return json.dumps({"id": request["id"], "result": "0x5"}).encode(), self.connection

    async def look() -> list[str]:
        transport = Counting()
        client = JsonRpcClient(transport, 5)
        for connection in (1, 1, 2, 2):
            transport.connection = connection
            await client.ask("eth_blockNumber", [])
        return transport.methods

    block = "eth_blockNumber"
    assert asyncio.run(look()) == [block, "eth_chainId", block, block, "eth_chainId", block]


def test_the_whole_works_over_http_with_faults(sender: Account) -> None:
    number = next(numbers)

    async def work() -> TxOutcome:
        faulty = FaultyRpc(sender.node, "over http", 15)
        async with serve_rpc(faulty.post) as url:
            transport = HttpTransport(url)
            client = JsonRpcClient(transport, sender.node.chain_id)
            chain = await RpcChain.open(
                client, sender.signer, sender.outbox, sender.settings, "x", lambda: 0, sender.pause
            )
            try:
                outcome = await chain.send("a", sender.stage.contract, "mark", [number])
                faulty.heal()
                while not outcome.is_final:
                    outcome = await chain.send("a", sender.stage.contract, "mark", [number])
                return outcome
            finally:
                await transport.close()

    assert asyncio.run(work()).status == "mined"
    assert (sender.marks(number), sender.count()) == (1, 1)


def wallet(sender: Account, path: Path, transport: Any = None) -> WalletChain:
    outbox = StoredOutbox(sender.stack.enter_context(open_database(path / "wallet.db")), lambda: 0)
    client = JsonRpcClient(transport or FaultyRpc(sender.node, "x", 0), sender.node.chain_id)
    return WalletChain(client, sender.node.accounts[2], outbox, sender.settings, "x", lambda: 0, sender.pause)


def test_a_wallet_signs_and_sends_with_the_given_nonce(sender: Account, tmp_path: Path) -> None:
    number = next(numbers)

    async def work() -> tuple[TxOutcome, TxOutcome]:
        chain = wallet(sender, tmp_path)
        first = await chain.send("a", sender.stage.contract, "mark", [number])
        return first, await chain.send("a", sender.stage.contract, "mark", [number])

    first, second = asyncio.run(work())
    assert first.status == "mined"
    assert (first, sender.marks(number)) == (second, 1)


def test_a_wallet_whose_answer_is_lost_is_not_asked_again_and_the_transaction_is_found_by_its_nonce(
    sender: Account, tmp_path: Path
) -> None:
    number = next(numbers)
    sends: list[int] = []

    class LosesAnswer:
        async def post(self, body: bytes) -> tuple[bytes, int]:
            reply = sender.node.answer(body)
            if json.loads(body)["method"] == "eth_sendTransaction":
                sends.append(1)
                raise TransientError("lost")
            return reply, 1

    async def work() -> TxOutcome:
        chain = wallet(sender, tmp_path, LosesAnswer())
        return await chain.send("a", sender.stage.contract, "mark", [number])

    outcome = asyncio.run(work())
    assert outcome.status == "mined"
    assert (len(sends), sender.marks(number)) == (1, 1)


class RefusingWallet:
    """A wallet that answers `eth_sendTransaction` with these error objects in turn, then sends."""

    def __init__(self, sender: Account, errors: list[dict[str, Any]]) -> None:
        self._desk, self.errors = sender, errors

    async def post(self, body: bytes) -> tuple[bytes, int]:
        request = json.loads(body)
        if request["method"] == "eth_sendTransaction" and self.errors:
            return json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": self.errors.pop(0)}).encode(), 1
        return self._desk.node.answer(body), 1


def test_what_the_wallet_refuses_ends_and_the_next_transactions_are_sent(sender: Account, tmp_path: Path) -> None:
    numbers_ = [next(numbers) for _ in range(4)]
    rejected = {"code": 4001, "message": "User rejected the request."}
    refusing = RefusingWallet(sender, [rejected, {"code": -32000, "message": "insufficient funds"}])

    async def work() -> list[TxOutcome]:
        chain = wallet(sender, tmp_path, refusing)
        outcomes = [
            await chain.send(name, sender.stage.contract, "mark", [number])
            for name, number in zip("abc", numbers_, strict=False)
        ]
        assert await chain.resume() == ()
        refusing.errors = [rejected]
        outcomes.append(await chain.send("d", sender.stage.contract, "mark", [numbers_[3]]))
        outcomes.append(
            await chain.send("d", sender.stage.contract, "mark", [numbers_[3]])
        )  # refused: nothing is in doubt
        outcomes.append(chain.outcome("a") or outcomes[0])
        return outcomes

    first, second, third, refused, sent, stored = asyncio.run(work())
    assert [one.status for one in (first, second, third)] == ["not_sent", "not_sent", "mined"]
    assert first.failure == ChainFailure("signer_refused", "refused by the wallet: User rejected the request.")
    assert second.failure is not None
    assert second.failure.message == "refused by the wallet: insufficient funds"
    assert (refused.status, sent.status, stored) == ("not_sent", "mined", first)
    assert (sent.nonce or 0) == (third.nonce or 0) + 1
    assert [sender.marks(number) for number in numbers_] == [0, 0, 1, 1]


@pytest.mark.parametrize("message", ["already known", "Request timed out", "Internal error"])
def test_an_error_after_which_the_wallet_may_have_sent_stays_open(
    sender: Account, tmp_path: Path, message: str
) -> None:
    refusing = RefusingWallet(sender, [{"code": -32000, "message": message}])

    async def work() -> tuple[TxOutcome, TxOutcome]:
        chain = wallet(sender, tmp_path, refusing)
        first = await chain.send("a", sender.stage.contract, "mark", [next(numbers)])
        return first, await chain.send("b", sender.stage.contract, "mark", [next(numbers)])

    first, second = asyncio.run(work())
    assert first.status in ("dropped", "unknown")
    assert second.failure is not None
    assert second.failure.code == "busy"


def test_the_example_vault_holds_its_mistake() -> None:
    contract = json.loads((EXAMPLE / "vault.json").read_text())
    assert "The mistake" in contract["source"]
    node = EmbeddedEvmNode()
    address = deploy(node, contract["bytecode"])
    selectors = {one.name: one.selector for one in read_abi(contract["abi"]).functions}
    assert "faucet" in selectors
    for sender, value in ((node.accounts[3], 5_000), (node.accounts[4], 1_000)):
        call_node(
            node,
            "eth_sendTransaction",
            {"from": sender, "to": address, "data": selectors["deposit"], "value": hex(value)},
        )
    for _ in range(3):  # three times what was deposited
        data = selectors["withdraw"] + (1_000).to_bytes(32, "big").hex()
        tx_hash = call_node(node, "eth_sendTransaction", {"from": node.accounts[4], "to": address, "data": data})
        assert call_node(node, "eth_getTransactionReceipt", tx_hash)["status"] == "0x1"
    assert int(call_node(node, "eth_getBalance", address), 16) == 3_000


def test_the_compiled_example_is_that_of_its_source() -> None:
    import runpy

    compiled = runpy.run_path(str(EXAMPLE / "compile.py"))["compiled"]()
    assert compiled == json.loads((EXAMPLE / "vault.json").read_text())
    assert ChainContract(counter_chain().contract.address, read_abi(compiled["abi"])).abi.named("withdraw(uint256)")
