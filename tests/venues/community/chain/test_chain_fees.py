"""What a transaction is sent for: never with a fee that no block takes now."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from counter_chain import Account, account

GWEI = 10**9


@pytest.fixture
def sender(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Account]:
    with account(tmp_path, f"fees {request.node.name}") as made:
        yield made


def with_base_fee(sender: Account, base_fee: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the node show another base fee than that of its blocks."""
    answer = sender.node.answer

    def changed(body: bytes) -> bytes:
        reply = json.loads(answer(body))
        if json.loads(body)["method"] == "eth_getBlockByNumber":
            reply["result"]["baseFeePerGas"] = hex(base_fee)
        return json.dumps(reply).encode()

    monkeypatch.setattr(sender.node, "answer", changed)


def test_while_gas_costs_more_than_allowed_nothing_is_sent_and_the_nonce_stays_free(
    sender: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = sender.settings.max_fee_per_gas_wei
    with monkeypatch.context() as patch:
        with_base_fee(sender, most + 1, patch)
        outcome = asyncio.run(sender.send("a", 1))
        assert outcome.failure is not None
        assert (outcome.status, outcome.failure.code) == ("not_sent", "too_expensive")
        assert (sender.entries(), sender.node.pool) == ((), {})
    mined = asyncio.run(sender.send("a", 1))
    assert (mined.status, mined.nonce) == ("mined", 0)


def test_gas_that_costs_as_much_as_allowed_is_paid(sender: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    most = sender.settings.max_fee_per_gas_wei
    with_base_fee(sender, most, monkeypatch)
    outcome = asyncio.run(sender.send("a", 2))
    assert (outcome.status, outcome.max_fee_wei_per_gas) == ("mined", most)
