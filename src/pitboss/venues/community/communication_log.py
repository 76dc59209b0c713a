"""The communication log: what an agent sent to its runner and what the runner sent to the agent, one JSON object a line.

`<folder>/<instance>/<UTC day>.jsonl`, readable by the owner alone. An instance is one start of a runner, so no two processes
write to one file. An entry is one `write` to a file opened for appending; the rest of a process that was killed while writing is
at most one unfinished line, which `log_reader.py` skips. Files older than `RETENTION_DAYS` are deleted when a file is opened.

Secrets are removed by value: from the content before it is cut, because half a key would not be recognised, and from the whole
line as the last step.
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from pitboss.bootstrap.machine import random_hex
from pitboss.core.codec import printable
from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, Instant, iso
from pitboss.core.ports import Clock
from pitboss.core.redaction import HIDDEN

Direction = Literal["agent_to_runner", "runner_to_agent"]
DIRECTIONS: tuple[Direction, ...] = ("agent_to_runner", "runner_to_agent")
RETENTION_DAYS = 14
MOST_CONTENT_CHARS = 256 << 10
MOST_CHECKED_CHARS = 1 << 20
"""A longer content is left out: to look for secrets in it would take too long, and it must not be cut before."""
FILE_NAME = re.compile(r"(\d{4}-\d\d-\d\d)\.jsonl")
_INSTANCE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


def log_folder(home: Path) -> Path:
    """The folder of the communication logs of a workspace."""
    return home / "community" / "log"


def random_uuid() -> str:
    """A new random id in the form of a UUID, version 4."""
    digits = random_hex(16)
    variant = "89ab"[int(digits[16], 16) % 4]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


class CommunicationLog:
    """Writes the log of one instance. Close it, or use it in a `with`."""

    def __init__(
        self,
        *,
        folder: Path,
        clock: Clock,
        instance_id: str,
        port: int | None,
        pid: int,
        agent_id: str,
        redact: Callable[[str], str],
        new_id: Callable[[], str] = random_uuid,
    ) -> None:
        if not _INSTANCE_ID.fullmatch(instance_id):
            raise ValueError("an instance id has letters, digits, - and _ only")
        self._folder = folder
        self._clock = clock
        self._stamp = {"instanceId": instance_id, "port": port, "pid": pid, "agentId": agent_id}
        self._directory = folder / instance_id
        self._redact = redact
        self._new_id = new_id
        self._day = ""
        self._file: int | None = None
        self._is_torn = False

    def agent_to_runner(self, content: str | Mapping[str, Any], action_types: Sequence[str]) -> None:
        """Log what the agent sent."""
        self._append("agent_to_runner", content, action_types)

    def runner_to_agent(self, content: str | Mapping[str, Any], action_types: Sequence[str]) -> None:
        """Log what the agent is sent."""
        self._append("runner_to_agent", content, action_types)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> "CommunicationLog":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _append(self, direction: Direction, content: str | Mapping[str, Any], action_types: Sequence[str]) -> None:
        now = self._clock.now()
        entry = {
            "id": self._new_id(),
            "createdAt": iso(now),
            "direction": direction,
            "actionTypes": list(dict.fromkeys(printable(kind) for kind in action_types)),
            **self._stamp,
            "content": self._bounded(content if isinstance(content, str) else _compact(content)),
        }
        line = self._redact(_compact(entry))
        if not _is_entry(line):  # a secret spanned the punctuation of the line, or the line was too long to search
            line = self._redact(_compact({**entry, "actionTypes": [], "content": HIDDEN}))
        try:
            self._write(now, line.encode() + b"\n")
        except OSError as error:
            raise UserError(
                f"the communication log in {self._directory} cannot be written: {error.strerror}",
                "free some space, or correct the rights of the folder",
            ) from None

    def _bounded(self, text: str) -> str:
        if len(text) > MOST_CHECKED_CHARS:
            return f"[{len(text):,} characters left out]"
        text = self._redact(printable(text))
        if len(text) <= MOST_CONTENT_CHARS:
            return text
        return f"{text[:MOST_CONTENT_CHARS]} [cut: {len(text) - MOST_CONTENT_CHARS:,} more characters]"

    def _write(self, now: Instant, line: bytes) -> None:
        day = iso(now)[:10]
        if self._file is None or day != self._day:
            self.close()
            self._file, self._is_torn = _open(self._directory, day)
            self._day = day
            prune(self._folder, now)
        data = b"\n" + line if self._is_torn else line
        self._is_torn = True
        if os.write(self._file, data) < len(data):
            raise OSError(0, "the file system is full")
        self._is_torn = False


def prune(folder: Path, now: Instant) -> None:
    """Delete the files of all instances that are older than the retention, and folders without files."""
    first_day = iso(now - RETENTION_DAYS * DAY_MS)[:10]
    for path in folder.glob("*/*.jsonl"):
        name = FILE_NAME.fullmatch(path.name)
        if name is not None and name[1] < first_day:
            with suppress(OSError):  # another instance was faster
                path.unlink()
            with suppress(OSError):  # it has other files
                path.parent.rmdir()


def _open(directory: Path, day: str) -> tuple[int, bool]:
    """The file of a day, and whether it ends within a line."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    file = os.open(directory / f"{day}.jsonl", flags, 0o600)
    size = os.fstat(file).st_size
    return file, bool(size) and os.pread(file, 1, size - 1) != b"\n"


def _compact(value: Mapping[str, Any]) -> str:
    return printable(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))


def _is_entry(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
