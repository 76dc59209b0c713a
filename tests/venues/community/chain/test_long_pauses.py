"""A runner that comes back long after it sent: the transaction that used its nonce is found however many blocks ago it was."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from counter_chain import Account, account, call_node
from eth_account import Account as Keys

from pitboss.venues.community.chain import transaction_sender

SCANNED = 4


@pytest.fixture
def sender(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Account]:
    with account(tmp_path, f"long {request.node.name}") as made:
        yield made


def use_nonce_elsewhere(sender: Account) -> None:
    fees = {"maxFeePerGas": 10**11, "maxPriorityFeePerGas": 10**9}
    fields = {"type": 2, "chainId": sender.node.chain_id, "nonce": 0, "to": "0x" + "11" * 20, "value": 1, "gas": 21_000}
    signed = Keys.sign_transaction({**fields, **fees}, sender.key)
    call_node(sender.node, "eth_sendRawTransaction", "0x" + bytes(signed.raw_transaction).hex())
    sender.node.mine()


@pytest.mark.parametrize("blocks", [SCANNED - 1, SCANNED, 5 * SCANNED])
def test_a_nonce_that_another_program_used_many_blocks_ago_is_found(
    sender: Account, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_sender, "MOST_SCANNED_BLOCKS", SCANNED)

    async def pause(seconds: float) -> None:
        del seconds  # nothing is mined

    mining, sender.pause = sender.pause, pause
    assert asyncio.run(sender.send("a", 1)).status == "unknown"
    sender.node.drop_pool()
    use_nonce_elsewhere(sender)
    sender.node.mine(blocks)
    sender.pause = mining
    sender.start()

    async def resumed() -> str:
        (outcome,) = await (await sender.opened()).resume()
        return outcome.status

    assert asyncio.run(resumed()) == "replaced"
    assert asyncio.run(sender.send("b", 2)).status == "mined"
