"""The signing process for Hyperliquid as a program: init, kill -9, halts over restarts, the lift by a person, and that its key is nowhere else."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import pytest
from eth_account import Account

from pitboss.core.errors import UserError
from pitboss.signer.client import SignerClient
from pitboss.signer.hyperliquid.action_hash import ActionSignature, action_hash, agent_digest
from pitboss.signer.hyperliquid.actions import Action, cancel_action, noop_action, order_action
from pitboss.signer.hyperliquid.client import HyperliquidSignature, HyperliquidSignerClient
from pitboss.signer.hyperliquid.verdict_terms import SignedVerdict
from pitboss.signer.keystore import open_keystore
from pitboss.signer.policy_file import read_policy
from pitboss.signer.program import KEYSTORE, POLICY, describe_files, lift_halts, make_files
from pitboss.signer.protocol import SigningRefusal
from pitboss.signer.scheme_definition import PolicyAnswers
from process_memory import key_forms, secrets_in
from signer.hyperliquid.agent_signer import AGENT, KEY, MASTER, order, payload, recover_address, verdict
from signer.signer_process import (
    FAST_SCRYPT,
    PASSPHRASE,
    SOCKET,
    make_folder,
    passphrase_pipe,
    run_program,
    running_signer,
)

POLICY_TEXT = f"""
version = 1
scheme = "hyperliquid_action"
network = "testnet"
account = "{MASTER}"
[caps]
order_notional_usd = 500
opened_notional_per_day_usd = "2000"
orders_per_minute = 100
orders_per_day = 100
[[assets]]
index = 4
name = "ETH"
leverage = 3
lowest_price = 500
highest_price = 10_000
"""
ACTION = order_action([order()])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "signer", POLICY_TEXT, KEY)


def expiry() -> int:
    """Almost as far ahead of this machine's clock, which the process reads, as is allowed."""
    return time.time_ns() // 1_000_000 + 14_000


def sign(
    folder: Path, request_id: str, action: Action, decided: SignedVerdict | None, expires_after: int = 0
) -> HyperliquidSignature | SigningRefusal:
    content = payload(action, decided, expires_after=expires_after or expiry())
    return asyncio.run(HyperliquidSignerClient(folder / SOCKET).sign(request_id, content))


def code(reply: HyperliquidSignature | SigningRefusal) -> str:
    return reply.code if isinstance(reply, SigningRefusal) else ""


def test_nonces_signatures_and_a_halt_survive_kills_until_a_person_lifts_it(folder: Path) -> None:
    with running_signer(folder, is_forked=True) as process:
        until = expiry()
        first = sign(folder, "a", ACTION, verdict(), until)
        assert isinstance(first, HyperliquidSignature)
        digest = agent_digest(action_hash(ACTION, first.nonce, None, until), "testnet")
        assert recover_address(digest, ActionSignature(first.r, first.s, first.v)) == AGENT
        state = asyncio.run(HyperliquidSignerClient(folder / SOCKET).describe())
        assert (state.address, state.account, state.network, state.halt_reason) == (AGENT, MASTER, "testnet", "")
        assert state.opened_notional_left_usd == "1700"
        process.send_signal(signal.SIGKILL)
        process.wait()
    with running_signer(folder, is_forked=True) as process:
        assert sign(folder, "a", ACTION, verdict(), until) == first
        later = sign(folder, "b", noop_action(), None)
        assert isinstance(later, HyperliquidSignature)
        assert later.nonce > first.nonce
        larger = order_action([order(size=Decimal("0.11"))])
        assert code(sign(folder, "c", larger, verdict(intent="c"))) == "S29_VERDICT_MISMATCH"
        process.send_signal(signal.SIGKILL)
        process.wait()
    with running_signer(folder, is_forked=True):
        assert code(sign(folder, "d", ACTION, verdict(intent="d"))) == "S31_HALTED"
        assert code(sign(folder, "e", cancel_action([(4, 1)]), None)) == ""
        with pytest.raises(UserError, match="cannot be opened"):
            lift_halts(folder, "I may not", passphrase_pipe("a wrong passphrase"), 5)
        lifted = run_program("lift", folder, "--reason", "repaired")
        assert (lifted.returncode, lifted.stdout) == (0, "lifted 1 halt\n")
        assert code(sign(folder, "f", ACTION, verdict(intent="f"))) == ""
    (halt,) = describe_files(folder, 0)["halts"]
    assert (halt["lift_reason"], halt["request_id"]) == ("repaired", "c")


def test_init_writes_an_example_policy_for_the_account(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    answers = PolicyAnswers(MASTER, "mainnet")
    address = make_files(folder, passphrase_pipe(), None, False, FAST_SCRYPT, "hyperliquid_action", answers)
    definition, policy = read_policy(folder / POLICY)
    assert (definition.name, policy.account, policy.network) == ("hyperliquid_action", MASTER, "mainnet")
    shown = describe_files(folder, 0)
    assert (shown["address"], shown["account"], shown["halted"]) == (address, MASTER, False)
    assert open_keystore(folder / KEYSTORE, PASSPHRASE).hex() not in json.dumps(shown)


def test_a_master_key_is_refused_at_init_and_at_the_start(tmp_path: Path) -> None:
    answers = PolicyAnswers(str(Account.from_key(KEY).address))  # with its checksum
    with pytest.raises(UserError, match="master key"):
        make_files(tmp_path / "new", passphrase_pipe(), passphrase_pipe(KEY.hex()), False, FAST_SCRYPT, "hyperliquid_action", answers)  # fmt: skip
    assert not (tmp_path / "new" / KEYSTORE).exists()
    with pytest.raises(UserError, match="account to trade for"):
        make_files(tmp_path / "other", passphrase_pipe(), None, False, FAST_SCRYPT, "hyperliquid_action")
    folder = make_folder(tmp_path / "signer", POLICY_TEXT.replace(MASTER, AGENT), KEY)
    started = run_program("run", folder)
    assert started.returncode == 2
    assert "master key" in started.stderr
    assert KEY.hex() not in started.stderr


def test_a_key_of_another_scheme_is_refused_at_the_start(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "signer", POLICY_TEXT, KEY, "0x" + "77" * 32)
    started = run_program("run", folder)
    assert started.returncode == 2
    assert "another scheme" in started.stderr


ASKING = """
import asyncio, json, sys, time
from pathlib import Path
from pitboss.signer.hyperliquid.client import HyperliquidSignerClient
client = HyperliquidSignerClient(Path(sys.argv[1]))
content = {**json.loads(sys.argv[2]), "expires_after": time.time_ns() // 1_000_000 + 14_000}
kept = asyncio.run(client.sign("a-request-id-to-find", content)), asyncio.run(client.describe())
print(kept[0].r, flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/PID/mem, which only Linux has")
def test_the_asking_process_never_has_the_key_in_its_memory_or_environment(folder: Path) -> None:
    with running_signer(folder, is_forked=True) as process:
        content = json.dumps(payload(ACTION, verdict()))
        asking = subprocess.Popen(
            [sys.executable, "-c", ASKING, str(folder / SOCKET), content],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert asking.stdout is not None
            assert asking.stdout.readline().startswith("0x")
            try:
                there = [b"a-request-id-to-find", AGENT.encode()]
                assert secrets_in(asking.pid, there) == set(there)  # the scan finds what is there
                assert secrets_in(asking.pid, [*key_forms(KEY), PASSPHRASE.encode()]) == set()
            except PermissionError:
                pytest.skip("this system forbids reading the memory of a child process")
            command_line = Path(f"/proc/{process.pid}/cmdline").read_bytes()
            assert not any(secret in command_line for secret in (*key_forms(KEY), PASSPHRASE.encode()))
        finally:
            asking.kill()
            asking.communicate()
    for path in folder.iterdir():
        if path.is_file():
            assert not any(form in path.read_bytes() for form in key_forms(KEY))


def test_a_description_of_another_scheme_is_not_taken_for_this_one(tmp_path: Path) -> None:
    from signer.test_signer_process import POLICY_TEXT as EVM_POLICY

    folder = make_folder(tmp_path / "signer", EVM_POLICY, KEY)
    with running_signer(folder, is_forked=True):
        assert asyncio.run(SignerClient(folder / SOCKET).ask_for_description())["schemes"] == ["evm_transaction"]
        with pytest.raises(Exception, match="does its policy name this scheme"):
            asyncio.run(HyperliquidSignerClient(folder / SOCKET).describe())
        assert code(sign(folder, "a", noop_action(), None)) == "S02_SCHEME"
