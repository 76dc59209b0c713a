"""The signing process as a program: its socket, its files, kill -9, and that its key is nowhere else."""

import asyncio
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from forked_process import ForkedProcess
from pitboss.core.errors import TransientError, UserError
from pitboss.signer.__main__ import main
from pitboss.signer.client import SignatureReply, SignerClient
from pitboss.signer.keystore import keystore_address, open_keystore, read_secret
from pitboss.signer.program import KEYSTORE, POLICY, describe_files, make_files
from pitboss.signer.protocol import MOST_LINE_BYTES, SigningRefusal
from process_memory import memory_of
from signer.hostile_requests import ADDRESS, CHAIN_ID, KEY, VAULT, line, payload
from signer.signer_process import (
    FAST_SCRYPT,
    JOURNAL,
    PASSPHRASE,
    SOCKET,
    make_folder,
    passphrase_pipe,
    run_program,
    running_signer,
)
from simulated_kill import Killed

POLICY_TEXT = f"""
version = 1
scheme = "evm_transaction"
chain_id = {CHAIN_ID}
[caps]
value_wei = 5_000_000_000_000_000
gas = 200_000
max_fee_per_gas_wei = 50_000_000_000
max_priority_fee_per_gas_wei = 3_000_000_000
spend_per_day_wei = 100_000_000_000_000_000
transactions_per_day = 3
[[contracts]]
address = "{VAULT}"
functions = ["deposit()", "withdraw(uint256)"]
payable = ["deposit()"]
"""
SCHEME = "evm_transaction"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "signer", POLICY_TEXT)


@dataclass(frozen=True)
class RunningSigner:
    """A signing process that several tests use; each has nonces of its own."""

    folder: Path
    process: "subprocess.Popen[str]"


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSigner]:
    policy = POLICY_TEXT.replace("transactions_per_day = 3", "transactions_per_day = 30")
    folder = make_folder(tmp_path_factory.mktemp("shared") / "signer", policy)
    with running_signer(folder) as process:
        yield RunningSigner(folder, process)


def sign(folder: Path, request_id: str, nonce: int) -> SignatureReply | SigningRefusal:
    return asyncio.run(SignerClient(folder / SOCKET).sign(SCHEME, request_id, payload(nonce=nonce)))


def test_counters_and_bytes_survive_a_kill(folder: Path) -> None:
    with running_signer(folder, is_forked=True) as process:
        first = sign(folder, "a", 0)
        assert isinstance(first, SignatureReply)
        assert isinstance(sign(folder, "b", 1), SignatureReply)
        process.send_signal(signal.SIGKILL)
        process.wait()
        with pytest.raises(TransientError, match="does not answer"):
            sign(folder, "c", 2)
    with running_signer(folder, is_forked=True):  # the socket that is left over is replaced
        assert sign(folder, "a", 0) == first
        assert isinstance(sign(folder, "c", 2), SignatureReply)
        refusal = sign(folder, "d", 3)
        assert isinstance(refusal, SigningRefusal)
        assert refusal.code == "S12_DAY_COUNT"
        description = asyncio.run(SignerClient(folder / SOCKET).describe())
        assert (description.address, description.transactions_left) == (ADDRESS, 0)


def test_the_files_and_the_socket_are_for_their_owner_alone(signer: RunningSigner) -> None:
    folder = signer.folder
    modes = {name: stat.S_IMODE((folder / name).stat().st_mode) for name in (KEYSTORE, JOURNAL, SOCKET)}
    assert modes == dict.fromkeys(modes, 0o600)
    arguments = Path(f"/proc/{signer.process.pid}/cmdline")
    if arguments.exists():
        assert PASSPHRASE.encode() not in arguments.read_bytes()
    with pytest.raises(UserError, match="exists"):
        make_files(folder, None, None, False)
    second = run_program("run", folder)
    assert (second.returncode, "listens" in second.stderr) == (2, True)
    for text in (line_ for path in folder.iterdir() if path.is_file() for line_ in [path.read_bytes()]):
        assert KEY not in text
        assert KEY.hex().encode() not in text


def test_lines_are_bounded_and_one_bad_client_does_not_stop_the_others(signer: RunningSigner) -> None:
    path = str(signer.folder / SOCKET)
    with socket.socket(socket.AF_UNIX) as silent, socket.socket(socket.AF_UNIX) as loud:
        silent.connect(path)
        loud.connect(path)
        loud.sendall(b"x" * (MOST_LINE_BYTES + 10))
        assert json.loads(loud.makefile("rb").readline())["code"] == "S01_MALFORMED"
        assert isinstance(sign(signer.folder, "a", 0), SignatureReply)
    with socket.socket(socket.AF_UNIX) as again:
        again.connect(path)
        again.sendall(line("b", payload(nonce=1)) + b"nonsense\n" + line("a", payload(nonce=0)))
        replies = again.makefile("rb")
        assert [json.loads(replies.readline())["ok"] for _ in range(3)] == [True, False, True]


def test_a_wrong_passphrase_is_one_line_and_shows_nothing(folder: Path) -> None:
    done = run_program("run", folder, passphrase="a wrong passphrase")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert "a wrong passphrase" not in done.stdout + done.stderr
    assert KEY.hex() not in done.stdout + done.stderr


def test_a_damaged_journal_and_a_socket_path_that_is_too_long_are_one_line(folder: Path) -> None:
    done = run_program("run", folder, "--socket", str(folder / ("s" * 120)))
    assert (done.returncode, done.stderr) == (1, f"error: {folder}: AF_UNIX path too long\n")
    (folder / "journal.db").write_bytes(b"no database" * 100)
    for path in folder.glob("journal.db-*"):
        path.unlink()
    done = run_program("run", folder)
    assert done.returncode == 1
    assert done.stderr == f"error: {folder / 'journal.db'}: file is not a database\n"


def test_without_a_terminal_the_option_for_that_secret_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_terminal(prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr("getpass.getpass", no_terminal)
    for name, option in (
        ("key", "--key-fd"),
        ("passphrase", "--passphrase-fd"),
        ("passphrase again", "--passphrase-fd"),
    ):
        with pytest.raises(UserError) as error:
            read_secret(name, None)
        assert error.value.hint == f"use {option}"


def test_an_interrupt_at_the_prompt_ends_the_program_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(prompt: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("getpass.getpass", interrupted)
    assert main(["init", "--folder", str(tmp_path / "new")]) == 130


def test_init_makes_a_private_key_file_that_opens_with_its_passphrase(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    address = make_files(folder, passphrase_pipe(), None, False, FAST_SCRYPT)
    key = open_keystore(folder / KEYSTORE, PASSPHRASE)
    assert len(key) == 32
    assert keystore_address(folder / KEYSTORE) == address
    assert describe_files(folder, 0)["address"] == address
    assert key.hex() not in json.dumps(describe_files(folder, 0))
    (folder / KEYSTORE).chmod(0o640)
    with pytest.raises(UserError, match="open to other users"):
        open_keystore(folder / KEYSTORE, PASSPHRASE)


KEYSTORE_STEPS = ("os.open", "os.fdopen", "os.fsync")
POLICY_STEPS = ("pathlib.Path.write_text", "pathlib.Path.chmod", "pathlib.Path.replace")


@pytest.mark.parametrize("step", [*KEYSTORE_STEPS, *POLICY_STEPS])
def test_init_that_was_killed_is_repeated_or_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def kill(*_: object, **__: object) -> None:
        raise Killed

    folder = tmp_path / "new"
    monkeypatch.setattr("pitboss.signer.program.read_secret", lambda *_: PASSPHRASE)
    with monkeypatch.context() as patch:
        patch.setattr(step, kill)
        with pytest.raises(Killed):
            make_files(folder, 0, None, False, FAST_SCRYPT)
    if step == "os.fdopen":  # a file without content: whose key it was to hold is not known
        with pytest.raises(UserError, match="is empty") as error:
            make_files(folder, 0, None, False, FAST_SCRYPT)
        assert error.value.hint == f"an earlier `init` was interrupted: remove {folder / KEYSTORE} and run it again"
        (folder / KEYSTORE).unlink()
    there = keystore_address(folder / KEYSTORE) if (folder / KEYSTORE).exists() else None
    address = make_files(folder, 0, None, False, FAST_SCRYPT)
    assert there in (None, address)
    assert (there is None) == (step in ("os.open", "os.fdopen"))
    assert describe_files(folder, 0)["address"] == address
    assert sorted(path.name for path in folder.iterdir()) == [JOURNAL, KEYSTORE, POLICY]
    assert stat.S_IMODE((folder / POLICY).stat().st_mode) == 0o600


def test_init_beside_a_key_without_a_policy_makes_sure_that_it_is_the_key(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "signer", POLICY_TEXT)
    (folder / POLICY).unlink()
    with pytest.raises(UserError, match="cannot be opened"):
        make_files(folder, passphrase_pipe("a wrong passphrase"), None, False, FAST_SCRYPT)
    with pytest.raises(UserError, match="holds another key"):
        make_files(folder, passphrase_pipe(), passphrase_pipe("0x" + "11" * 32), False, FAST_SCRYPT)
    with pytest.raises(UserError, match="holds a key of another scheme"):
        make_files(folder, passphrase_pipe(), None, False, FAST_SCRYPT, scheme="sui_transaction")
    assert not (folder / POLICY).exists()
    assert make_files(folder, passphrase_pipe(), passphrase_pipe("0x" + KEY.hex()), False, FAST_SCRYPT) == ADDRESS
    assert describe_files(folder, 0)["address"] == ADDRESS


def test_init_takes_a_given_key_from_a_descriptor(tmp_path: Path) -> None:
    made = make_files(tmp_path / "new", passphrase_pipe(), passphrase_pipe("0x" + KEY.hex()), False, FAST_SCRYPT)
    assert made == ADDRESS
    with pytest.raises(UserError, match="cannot be read") as error:
        make_files(tmp_path / "other", passphrase_pipe(), passphrase_pipe("0x" + KEY.hex()[:-1]), False, FAST_SCRYPT)
    assert KEY.hex()[:20] not in str(error.value)


def test_the_command_starts_the_same_program(folder: Path) -> None:
    with running_signer(folder, ("-m", "pitboss", "signer")):
        assert isinstance(sign(folder, "a", 0), SignatureReply)
    shown, _ = ForkedProcess("-m", "pitboss", "signer", "show", "--folder", folder).communicate(timeout=60)
    assert json.loads(shown)["today"]["transactions"] == 1


ASKING = """
import asyncio, json, sys
from pathlib import Path
from pitboss.signer.client import SignerClient
path, content = Path(sys.argv[1]), json.loads(sys.argv[2])
reply = asyncio.run(SignerClient(path).sign("evm_transaction", "a-request-id-to-find", content))
print(reply.hash, flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/PID/mem, which only Linux has")
def test_the_asking_process_never_has_the_key_in_its_memory_or_environment(signer: RunningSigner) -> None:
    asking = subprocess.Popen(
        [sys.executable, "-c", ASKING, str(signer.folder / SOCKET), json.dumps(payload(nonce=7))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert asking.stdout is not None
        assert asking.stdout.readline().startswith("0x")
        secrets = (KEY, KEY.hex().encode(), KEY.hex().upper().encode(), PASSPHRASE.encode())
        try:
            blocks = list(memory_of(asking.pid))
        except PermissionError:
            pytest.skip("this system forbids reading the memory of a child process")
        assert any(b"a-request-id-to-find" in block for block in blocks)  # the scan reads what is there
        assert not any(secret in block for block in blocks for secret in secrets)
        environment = Path(f"/proc/{asking.pid}/environ").read_bytes()
        assert not any(secret in environment for secret in secrets)
        assert not any(secret in Path(f"/proc/{signer.process.pid}/cmdline").read_bytes() for secret in secrets)
        if os.getuid() != 0:  # root may read everything
            with pytest.raises(PermissionError):
                next(memory_of(signer.process.pid))
    finally:
        asking.kill()
        asking.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, which only Linux has")
def test_the_signer_leaves_no_core_dump(signer: RunningSigner) -> None:
    limits = Path(f"/proc/{signer.process.pid}/limits").read_text()
    assert re.search(r"Max core file size\s+0\s+0", limits)
    owner = Path(f"/proc/{signer.process.pid}/status").stat().st_uid
    assert owner == 0  # files in /proc of a process that is not dumpable belong to root
