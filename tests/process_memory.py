"""Reads the memory of a running process through /proc and searches it for secrets. Linux only."""

import base64
import re
from collections.abc import Iterable, Iterator
from pathlib import Path


def memory_of(pid: int) -> Iterator[bytes]:
    """The readable memory of a process, mapping by mapping."""
    with open(f"/proc/{pid}/maps") as places, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for place in places:
            match = re.match(r"([0-9a-f]+)-([0-9a-f]+) r", place)
            if match is None or "[v" in place:
                continue
            start, end = int(match[1], 16), int(match[2], 16)
            try:
                memory.seek(start)
                yield memory.read(end - start)
            except (OSError, ValueError, OverflowError):
                continue


def key_forms(key: bytes) -> list[bytes]:
    """A key as it may lie in memory: raw, in hexadecimal of both cases, in base64."""
    return [key, key.hex().encode(), key.hex().upper().encode(), base64.b64encode(key).rstrip(b"=")]


def secrets_in(pid: int, secrets: Iterable[bytes]) -> set[bytes]:
    """Those of the secrets that are in the memory, the environment or the arguments of a process."""
    wanted = set(secrets)
    texts = [Path(f"/proc/{pid}/{name}").read_bytes() for name in ("environ", "cmdline")]
    present = {secret for secret in wanted for text in texts if secret in text}
    for block in memory_of(pid):
        present |= {secret for secret in wanted - present if secret in block}
    return present
