"""Real processes: a runner that is killed with SIGKILL while its transaction is on its way, a signer, and a node over HTTP."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from example_counts import cases
from forked_process import forked_command
from pitboss.signer.secp256k1_keys import address_of
from pitboss.testing.rpc_faults import serve_rpc
from signer.hostile_requests import KEY, PASSPHRASE_FORMS
from signer.signer_process import make_folder, running_signer
from venues.community.chain.counter_chain import CounterChain, call_node, counter_chain, empty_database

POLICY = """
version = 1
scheme = "evm_transaction"
chain_id = {chain_id}
[caps]
value_wei = 0
gas = 300_000
max_fee_per_gas_wei = 500_000_000_000
max_priority_fee_per_gas_wei = 100_000_000_000
spend_per_day_wei = 1_000_000_000_000_000_000
transactions_per_day = 5
[[contracts]]
address = "{address}"
functions = ["mark(uint256)"]
"""


class KillingNode:
    """The embedded chain; it kills the sender of a transaction, before or after accepting it."""

    def __init__(self, stage: CounterChain, takes_it: bool) -> None:
        self.node, self.takes_it = stage.node, takes_it
        self.victim: int | None = None
        self.leaks: list[str] = []

    async def post(self, body: bytes) -> tuple[bytes, int]:
        if json.loads(body)["method"] == "eth_sendRawTransaction" and self.victim is not None:
            self.leaks = leaks_of(self.victim)
            reply = self.node.answer(body) if self.takes_it else b""
            os.kill(self.victim, 9)
            self.victim = None
            return reply, 1
        self.node.mine()
        return self.node.answer(body), 1


def leaks_of(pid: int) -> list[str]:
    """Forms of the key in the environment or the arguments of a process."""
    if sys.platform != "linux":
        return []
    data = b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("environ", "cmdline"))
    return [form for form in PASSPHRASE_FORMS if form.encode() in data]


@pytest.mark.parametrize("takes_it", cases((False, True), (True,)))
def test_a_runner_killed_while_it_sends_is_followed_by_one_that_sends_nothing_twice(
    tmp_path: Path, takes_it: bool
) -> None:
    scene = counter_chain()
    contract, number = scene.contract.address, 10**50 + takes_it
    folder = make_folder(tmp_path / "signer", POLICY.format(chain_id=scene.node.chain_id, address=contract), KEY)
    (tmp_path / "pitboss.db").write_bytes(empty_database())
    account = address_of(KEY)
    scene.node.drop_pool()
    call_node(scene.node, "eth_sendTransaction", {"from": scene.node.accounts[0], "to": account, "value": hex(10**18)})
    scene.node.mine()
    before = int(call_node(scene.node, "eth_getTransactionCount", account), 16)

    async def run(node: KillingNode, kill: bool) -> tuple[int | None, str]:
        async with serve_rpc(node.post) as url:
            words = (
                "-m",
                "venues.community.chain.sender_process",
                tmp_path,
                url,
                scene.node.chain_id,
                contract,
                number,
            )
            process = await asyncio.create_subprocess_exec(
                *((sys.executable, *map(str, words)) if kill else forked_command(*words)),
                stdout=asyncio.subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            node.victim = process.pid if kill else None
            output, _ = await process.communicate()
            return process.returncode, output.decode()

    node = KillingNode(scene, takes_it)
    with running_signer(folder, is_forked=True):
        assert asyncio.run(run(node, kill=True)) == (-9, "")
        assert node.leaks == []
        assert asyncio.run(run(node, kill=False)) == (0, '"mined"\n')
    marks = scene.contract.abi.named("marks")[0].selector + number.to_bytes(32, "big").hex()
    assert int(call_node(scene.node, "eth_call", {"to": contract, "data": marks}), 16) == 1
    assert int(call_node(scene.node, "eth_getTransactionCount", account), 16) == before + 1
