"""Reads the communication logs of all instances of a workspace in the order of time, and goes on with what is appended.

The files are written by `communication_log.py`, maybe at this moment by several processes. Only finished lines are read; a line
that is no entry, such as the rest of a process that was killed, is skipped. Nothing is created or changed.
"""

import asyncio
import heapq
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, parse_instant
from pitboss.core.noun import noun
from pitboss.venues.community.communication_log import FILE_NAME, Direction

POLL_S = 0.5
FIRST_BLOCK_BYTES, BLOCK_BYTES = 1 << 10, 16 << 10
"""How much is read at a time from the end of a file: little at first, because every file of a day is read once, then twice as much."""


class LogEntry(BaseModel):
    """One entry of the log. Its content and action types are text of models and other participants."""

    model_config = ConfigDict(alias_generator=to_camel, frozen=True, strict=True)

    id: str
    created_at: str
    direction: Direction
    action_types: list[str]
    instance_id: str
    port: int | None
    pid: int
    agent_id: str
    content: str

    def document(self) -> dict[str, Any]:
        """The entry as it is stored."""
        return self.model_dump(by_alias=True)


@noun
class EntryFilter:
    """Which entries to read. An empty field selects all."""

    agent_id: str = ""
    direction: Direction | None = None
    action_type: str = ""

    def matches(self, entry: LogEntry) -> bool:
        """Whether an entry is selected."""
        return (
            self.agent_id in ("", entry.agent_id)
            and self.direction in (None, entry.direction)
            and (not self.action_type or self.action_type in entry.action_types)
        )


ALL_ENTRIES = EntryFilter()


class LogReader:
    """Reads what was written since the previous call; at the first call everything."""

    def __init__(self, folder: Path, selected: EntryFilter = ALL_ENTRIES) -> None:
        self._folder = folder
        self._selected = selected
        self._offsets: dict[Path, int] = {}

    def read(self, last: int | None = None) -> Iterator[LogEntry]:
        """New entries of all instances in the order of time; with `last` only so many, the newest."""
        places: list[tuple[Instant, Path, int]] = []
        for paths in _files_by_day(self._folder):
            if last is not None and len(places) >= last:
                self._offsets |= {path: path.stat().st_size for path in paths if path.exists()}
                continue
            places = sorted(place for path in paths for place in self._scan(path)) + places
        for _, path, offset in places if last is None else places[max(len(places) - last, 0) :]:
            _, entry = next(_entries(path, offset), (0, None))
            if entry is not None:
                yield entry

    def _scan(self, path: Path) -> Iterator[tuple[Instant, Path, int]]:
        """The time and the place of the new entries of a file. Contents are not kept: a log may be large."""
        offset = self._offsets.get(path, 0)
        for end, entry in _entries(path, offset):
            if entry is not None and self._selected.matches(entry):
                yield parse_instant(entry.created_at), path, offset
            self._offsets[path] = offset = end


async def follow(reader: LogReader, last: int | None = None, poll_s: float = POLL_S) -> AsyncIterator[LogEntry]:
    """The entries so far, or the newest `last` of them, and then those that are appended, without end."""
    for entry in reader.read(last):
        yield entry
    while True:
        await asyncio.sleep(poll_s)
        for entry in reader.read():
            yield entry


def read_entries(folder: Path, selected: EntryFilter = ALL_ENTRIES) -> Iterator[LogEntry]:
    """The entries of all instances below a folder in the order of time."""
    return LogReader(folder, selected).read()


@noun
class LogPage:
    """The newest entries, newest first. Without `has_searched_all`, older ones were not searched."""

    entries: tuple[LogEntry, ...]
    has_searched_all: bool


def read_newest(folder: Path, selected: EntryFilter, most: int, most_bytes: int) -> LogPage:
    """The newest entries of all instances, read from the ends of the files until there are `most`, or `most_bytes` are read."""
    entries: list[LogEntry] = []
    budget = _ByteBudget(most_bytes)
    for paths in _files_by_day(folder):
        files = [_entries_backwards(path, budget) for path in sorted(paths, key=_changed_at, reverse=True)]
        for _, entry in heapq.merge(*files, key=lambda pair: pair[0], reverse=True):
            if budget.is_used_up:  # what comes next may be older than what was not read
                return LogPage(tuple(entries), False)
            if selected.matches(entry):
                entries.append(entry)
            if len(entries) == most:
                return LogPage(tuple(entries), True)
        if budget.is_used_up:
            return LogPage(tuple(entries), False)
    return LogPage(tuple(entries), True)


class _ByteBudget:
    """How many bytes may still be read."""

    def __init__(self, most_bytes: int) -> None:
        self._left = most_bytes
        self.is_used_up = False
        """Whether something was not read."""

    def take(self, size: int) -> int:
        """How many bytes of the next `size` may be read."""
        taken = min(size, self._left)
        self._left -= taken
        self.is_used_up |= not taken
        return taken


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # it was deleted meanwhile
        return 0.0


def _entries_backwards(path: Path, budget: _ByteBudget) -> Iterator[tuple[Instant, LogEntry]]:
    """The finished lines of a file that are entries, newest first, while the budget lasts."""
    try:
        with path.open("rb") as file:
            start = file.seek(0, os.SEEK_END)
            blocks = [b""]  # the line that begins before `start`, and is not complete, in reversed order
            is_end, block = True, min(FIRST_BLOCK_BYTES, BLOCK_BYTES)
            while start and (size := budget.take(min(start, block))):
                block = min(2 * block, BLOCK_BYTES)
                start -= size
                file.seek(start)
                first, *lines = file.read(size).split(b"\n")
                if not lines:
                    blocks.append(first)
                    continue
                lines[-1] += b"".join(reversed(blocks))
                blocks = [first]
                for line in reversed(lines[:-1] if is_end else lines):
                    if (entry := _entry(line)) is not None:
                        yield parse_instant(entry.created_at), entry
                is_end = False
            if not start and not is_end and (entry := _entry(b"".join(reversed(blocks)))) is not None:
                yield parse_instant(entry.created_at), entry
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unreadable(path, error) from None


def _files_by_day(folder: Path) -> list[list[Path]]:
    """The files, newest day first."""
    days: dict[str, list[Path]] = defaultdict(list)
    for path in folder.glob("*/*.jsonl"):
        if FILE_NAME.fullmatch(path.name):
            days[path.name].append(path)
    return [days[name] for name in sorted(days, reverse=True)]


def _entries(path: Path, offset: int) -> Iterator[tuple[int, LogEntry | None]]:
    """The finished lines of a file from an offset on: where each ends, and its entry unless it is none."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                offset += len(line)
                yield offset, _entry(line)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> UserError:
    return UserError(f"{path} cannot be read: {error.strerror}", "correct the rights of the file")


def _entry(line: bytes) -> LogEntry | None:
    try:
        entry = LogEntry.model_validate_json(line)
        parse_instant(entry.created_at)
    except (ValidationError, UserError, OverflowError):
        return None
    return entry
