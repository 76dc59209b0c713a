"""`pitboss community run` as a process: no key in it, and after a SIGKILL in the middle of a transaction nothing is done twice."""

import asyncio
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from chain.counter_chain import call_node
from vault_chain import VaultChain, skill, vault_chain

from pitboss.cli.main import main
from pitboss.signer.secp256k1_keys import address_of
from pitboss.skill.document import to_plain
from pitboss.testing.evm_server import serving_node
from pitboss.testing.provider import FakeProvider, Play, call
from process_memory import key_forms, secrets_in
from signer.hostile_requests import KEY
from signer.signer_process import PASSPHRASE, make_folder, running_signer

POLICY = """
version = 1
scheme = "evm_transaction"
chain_id = {chain_id}
[caps]
value_wei = 1_000
gas = 300_000
max_fee_per_gas_wei = 50_000_000_000
max_priority_fee_per_gas_wei = 5_000_000_000
spend_per_day_wei = 1_000_000_000_000_000_000
transactions_per_day = 50
[[contracts]]
address = "{vault}"
functions = ["deposit()"]
payable = ["deposit()"]
"""
SECRETS = (*key_forms(KEY), PASSPHRASE.encode())
HOLDER = "import sys; key = bytes.fromhex(sys.stdin.readline()); print(len(key), flush=True); sys.stdin.readline()"


class DepositingModel:
    """A model that deposits and comments at every heartbeat, with a new number each time, and keeps the results."""

    def __init__(self, scene: VaultChain) -> None:
        self.stage = scene
        self.number = 0
        self.results: list[dict[str, Any]] = []

    def reply(self, question: Mapping[str, Any]) -> Play:
        text = question["messages"][-1]["content"]
        match = re.search(r"<context>\n(.*)\n</context>", text, re.DOTALL)
        assert match is not None
        self.results += json.loads(match[1])["runnerInbox"]
        self.number += 1
        deposit = self.stage.action("deposit", value=self.number)
        comment = {name: deposit[name] for name in ("communitySlug", "threadId")}
        comment |= {"action": "comment", "body": f"Deposit number {self.number} was made."}
        return call("submit_actions", {"actions": [comment, deposit], "reason": "once more"})


@contextmanager
def serving_model(model: DepositingModel) -> Iterator[str]:
    """The model behind a server, in a thread of its own."""
    loop, ready, over, fake = asyncio.new_event_loop(), threading.Event(), asyncio.Event(), FakeProvider(model.reply)

    async def serve() -> None:
        async with fake:
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(60)
        yield fake.url
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


class KillingNode:
    """Executes the second transaction of an account, searches the memory of its sender, and kills it before it replies."""

    def __init__(self, scene: VaultChain) -> None:
        self.answer = scene.node.answer
        self.victim: subprocess.Popen[str] | None = None
        self.token = scene.forum_server.token.encode()
        self.present: set[bytes] | None = None
        self.taken = 0

    def __call__(self, body: bytes) -> bytes:
        reply = self.answer(body)
        if json.loads(body)["method"] == "eth_sendRawTransaction":
            self.taken += 1
            if self.taken == 2 and self.victim is not None:
                self.present = secrets_in(self.victim.pid, (*SECRETS, self.token))
                self.victim.send_signal(signal.SIGKILL)
                self.victim.wait()
        return reply


def comments(scene: VaultChain) -> Counter[str]:
    forum_server = scene.forum_server
    path = f"/api/agents/context?agentId={forum_server.agent_id}&commentLimit=200"
    _, answer, _ = forum_server.send("GET", path, forum_server.runner)
    return Counter(row["body"] for row in answer["context"]["communities"][0]["recentComments"])


def command(home: Path, *words: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        assert main([*words, "--home", str(home)]) == 0
    return out.getvalue()


def wait_for_end(process: "subprocess.Popen[str]") -> int:
    """Wait for the end of a process, 90 seconds at most; its output is shown where the test fails."""
    try:
        print(process.communicate(timeout=90)[0])
    except subprocess.TimeoutExpired:
        process.kill()
        print(process.communicate()[0])
    return process.returncode


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/PID/mem, which only Linux has")
def test_a_planted_key_is_found_in_the_process_that_has_it() -> None:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HOLDER], **pipes) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdin.write(KEY.hex() + "\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "32\n"
        assert {KEY, KEY.hex().encode()} <= secrets_in(holder.pid, SECRETS)
        holder.stdin.write("\n")


@pytest.mark.proof
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/PID/mem, which only Linux has")
def test_a_runner_has_no_key_and_a_killed_one_is_followed_by_one_that_does_nothing_twice(tmp_path: Path) -> None:
    home = tmp_path / "runner"
    home.mkdir()
    with vault_chain(tmp_path / "forum") as scene:
        node, model, account = KillingNode(scene), DepositingModel(scene), address_of(KEY)
        funds = {"from": scene.node.accounts[0], "to": account, "value": hex(10**18)}
        call_node(scene.node, "eth_sendTransaction", funds)
        folder = make_folder(home / "signer", POLICY.format(chain_id=scene.node.chain_id, vault=scene.vault))
        document = {**to_plain(skill(transactions_per_day=50)), "model": "llm/test", "every": "10s"}
        (tmp_path / "skill.json").write_text(json.dumps(document))
        scene.node.answer = node
        with (
            running_signer(folder, ("-m", "pitboss", "signer")),
            serving_node(scene.node) as rpc_url,
            serving_model(model) as url,
        ):
            environment = {
                **os.environ,
                "PITBOSS_COMMUNITY_RPC_URL": rpc_url,
                "PITBOSS_COMMUNITY_CHAIN_ID": str(scene.node.chain_id),
                "PITBOSS_COMMUNITY_CONFIRMATIONS": "1",
                "PITBOSS_COMMUNITY_POLL_S": "0.1",
                "LLM_BASE_URL": url,
                "LLM_API_KEY": "a-key-of-no-provider",
                "RUNNER_TOKEN": scene.forum_server.token,
            }
            words = (
                "community",
                "run",
                str(tmp_path / "skill.json"),
                "--home",
                str(home),
                "--every",
                "6s",
                "--json",
                "--yes",
            )
            words += ("--server", scene.forum_server.url, "--agent-id", scene.forum_server.agent_id)

            def start(*more: str) -> subprocess.Popen[str]:
                pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
                return subprocess.Popen([sys.executable, "-m", "pitboss", *words, *more], env=environment, **pipes)

            node.victim = start()
            assert wait_for_end(node.victim) == -signal.SIGKILL
            assert node.present == {node.token}  # its own credential, so the scan reads what is there; and nothing else
            before = model.number
            assert wait_for_end(start("--cycles", "2")) == 0
        del scene.node.answer
        sent = Counter(int(row["value"], 16) for row in scene.mined(account))
        posted = comments(scene)
    assert model.number > before
    assert set(sent.values()) == {1}
    assert set(posted.values()) == {1}
    assert len(sent) == len(posted) >= 3
    told = Counter(int(row["value"]) for row in model.results if row["type"] == "tx_feedback")
    assert told[2] == 1  # the one that was on its way
    assert set(told) <= set(sent)
    (run,) = json.loads(command(home, "runs", "list", "--json"))
    assert run["status"] == "complete"
    command(home, "runs", "verify", run["run_id"])
