"""Creates the folder of a signing process and runs the program on it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forked_process import ForkedProcess
from pitboss.signer.keystore import create_keystore
from pitboss.signer.program import JOURNAL, KEYSTORE, POLICY
from pitboss.signer.protocol import SOCKET
from signer.hostile_requests import KEY

PASSPHRASE = "correct horse battery"
FAST_SCRYPT = 1024
"""A work factor for tests: opening the file takes a millisecond instead of a second."""

PATIENCE_S = 60

__all__ = ["JOURNAL", "PASSPHRASE", "SOCKET", "make_folder", "passphrase_pipe", "run_program", "running_signer"]


def make_folder(folder: Path, policy: str, key: bytes = KEY, address: str = "") -> Path:
    folder.mkdir(mode=0o700, parents=True)
    create_keystore(folder / KEYSTORE, key, PASSPHRASE, FAST_SCRYPT, address)
    (folder / POLICY).write_text(policy)
    (folder / POLICY).chmod(0o600)
    return folder


def passphrase_pipe(text: str = PASSPHRASE) -> int:
    """The reading end of a pipe that holds a passphrase."""
    reading, writing = os.pipe()
    os.write(writing, text.encode() + b"\n")
    os.close(writing)
    return reading


def run_program(
    command: str, folder: Path, *words: str, passphrase: str = PASSPHRASE
) -> subprocess.CompletedProcess[str]:
    """One command of the program on a folder, in a forked process, until it ends."""
    words = ("-m", "pitboss.signer", command, "--folder", str(folder), "--passphrase-fd", "0", *words)
    process = ForkedProcess(*words, stdin=True)
    out, err = process.communicate(passphrase, PATIENCE_S)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


@contextmanager
def running_signer(
    folder: Path, words: tuple[str, ...] = ("-m", "pitboss.signer"), is_forked: bool = False
) -> Iterator[subprocess.Popen[str]]:
    """A listening signing process, killed at the end of the block. Forked is faster, for tests of other subjects."""
    words = (*words, "run", "--folder", str(folder), "--passphrase-fd", "0")
    pipe = subprocess.PIPE
    if is_forked:  # by its own id, so that a kill has happened when it returns
        process = ForkedProcess(*words, stdin=True)
    else:
        process = subprocess.Popen([sys.executable, *words], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert process.stdin is not None
    process.stdin.write(PASSPHRASE + "\n")
    process.stdin.close()
    process.stdin = None
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("signing for 0x"), process.communicate()
        yield process
    finally:
        process.kill()
        process.communicate()
