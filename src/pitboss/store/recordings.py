"""Recorded results of MCP tools with the time at which they were known: the only results that a simulation may use.

Append only: a recording is never changed, and the same result at the same time is stored once, so a file can be imported
again. Recordings are found by the digest of the canonical arguments; the key of the table is the index for it.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Select, bindparam, func, select

from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, iso, parse_instant
from pitboss.core.past import Recording
from pitboss.core.suggestion import suggestion
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.schema import SEAL, recordings

PAGE = 500
MOST_CHARS = 1_000_000
"""The longest result that is stored."""
_FIELDS = frozenset({"server", "tool", "arguments", "known_at", "result", "failed", "definition_digest"})
_KEY = tuple(recordings.c[name] for name in ("server", "tool", "arguments_sha256", "known_at"))


@dataclass(frozen=True, slots=True)
class StoredRecording:
    """A recording, and the digest of the tool's definition at that time (empty if unknown)."""

    recording: Recording
    definition_digest: str = ""


class StoredRecordings:
    """The recordings in a database; a `core.past.Recordings`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def latest(self, server: str, tool: str, arguments: str, by: Instant) -> Recording | None:
        """The newest result for exactly these arguments that was known by `by`."""
        key = {"of_server": server, "of_tool": tool, "of_arguments": _sha256(arguments), "of_by": by}
        with self._database.read() as connection:
            row = connection.execute(_latest(), key).mappings().first()
        return None if row is None else _stored({str(name): value for name, value in row.items()}).recording

    def count(self, server: str, tool: str, by: Instant) -> int:
        """How many results of a tool, for any arguments, were known by `by`."""
        query = select(func.count()).select_from(recordings).where(*_of_tool(server, tool), recordings.c.known_at <= by)
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def of(self, server: str, tool: str) -> Iterator[StoredRecording]:
        """Every recording of a tool, by arguments and time."""
        after: tuple[str, Instant] | None = None
        while True:
            query = rows.raw(recordings).where(*_of_tool(server, tool))
            if after is not None:
                digest, at = recordings.c.arguments_sha256, recordings.c.known_at
                query = query.where((digest > after[0]) | ((digest == after[0]) & (at > after[1])))
            with self._database.read() as connection:
                page = rows.fetch_all(connection, query.order_by(*_KEY).limit(PAGE))
            yield from map(_stored, page)
            if len(page) < PAGE:
                return
            after = page[-1]["arguments_sha256"], page[-1]["known_at"]

    def add(self, many: Iterable[StoredRecording]) -> int:
        """Store recordings, all or none; returns how many were new. A different result at the same time is refused."""
        new = 0
        with self._database.write() as connection:
            self._database.lock_name(connection, "recordings")
            for recording in many:
                row = _row(recording)
                existing = rows.fetch(connection, recordings, {column.name: row[column.name] for column in _KEY})
                if existing is None:
                    rows.add(connection, recordings, row)
                    new += 1
                elif _stored(existing).recording != _stored({**row, SEAL: rows.seal_of(recordings, row)}).recording:
                    raise UserError(
                        f"another result of {row['tool']} is recorded for {iso(row['known_at'])}",
                        "recordings are never changed: leave it out, or set known_at to the time at which it was really known",
                    )
        return new

    def digest(self, tools: Mapping[str, Collection[str]] | None, until: Instant) -> str:
        """One digest over all recordings known by `until` of these tools (by server); None: of all tools."""
        digest = hashlib.sha256()
        if tools is None:
            conditions = [recordings.c.known_at <= until]
        else:
            conditions = [
                (recordings.c.server == server)
                & recordings.c.tool.in_(sorted(names))
                & (recordings.c.known_at <= until)
                for server, names in sorted(tools.items())
            ]
        with self._database.read() as connection:
            for condition in conditions:
                for (seal,) in connection.execute(select(recordings.c[SEAL]).where(condition).order_by(*_KEY)):
                    digest.update(str(seal).encode())
        return digest.hexdigest()


def write_line(stored: StoredRecording) -> str:
    """A recording as one line of JSON."""
    recording = stored.recording
    plain = {
        "server": recording.server,
        "tool": recording.tool,
        "arguments": codec.fragment(recording.arguments.encode()),
        "known_at": iso(recording.known_at),
        "result": recording.result,
        "failed": recording.failed,
        "definition_digest": stored.definition_digest,
    }
    return codec.dumps(plain).decode()


def read_lines(lines: Iterable[str], server: str, tool: str) -> Iterator[StoredRecording]:
    """Recordings of one tool from JSON lines. Raises `UserError` with the number of an invalid line."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield _read(codec.loads_exact(line), server, tool)
        except UserError as error:
            raise UserError(f"line {number}: {error.message}", error.hint) from None
        except (ValueError, RecursionError):
            raise UserError(
                f"line {number}: is not a JSON object on one line",
                'for example {"arguments": {}, "known_at": "2025-06-01T12:00:00Z", "result": "…"}',
            ) from None


def _read(plain: Any, server: str, tool: str) -> StoredRecording:
    if not isinstance(plain, dict):
        raise ValueError
    unknown = sorted(set(plain) - _FIELDS)
    if unknown:
        raise UserError(f"unknown field {unknown[0]!r}", suggestion(unknown[0], sorted(_FIELDS), "fields:"))
    for name, value in (("server", server), ("tool", tool)):
        if plain.get(name, value) != value:
            raise UserError(f"is of {name} {str(plain[name])[:80]!r}, not {value}", f"import it under its own {name}")
    arguments, result = plain.get("arguments", {}), plain.get("result")
    if not isinstance(arguments, dict):
        raise UserError("arguments must be a JSON object", 'write {} for none, or {"symbol": "BTC"}')
    if not isinstance(result, str):
        raise UserError("result must be text", "as the tool returned it")
    failed, digest = plain.get("failed", False), plain.get("definition_digest", "")
    if not isinstance(failed, bool) or not isinstance(digest, str) or len(digest) > 64:
        raise UserError("failed must be true or false, definition_digest text of at most 64 characters")
    return StoredRecording(Recording(server, tool, canonical(arguments), _known_at(plain), result, failed), digest)


def _known_at(plain: Mapping[str, Any]) -> Instant:
    value = plain.get("known_at")
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**53:
        return value
    if isinstance(value, str):
        try:
            return parse_instant(value)
        except (OverflowError, OSError):
            pass
    raise UserError("known_at is missing or no time", "when the result could first be known, as 2025-06-01T12:00:00Z")


def canonical(arguments: Any) -> str:
    """The arguments of a call in the form in which they are compared: canonical JSON with exact numbers."""
    return codec.dumps(codec.number_fragments(arguments)).decode()


def _row(stored: StoredRecording) -> dict[str, Any]:
    recording = stored.recording
    if len(recording.result) > MOST_CHARS:
        raise UserError(f"a result of {len(recording.result):,} characters is too long", f"the limit is {MOST_CHARS:,}")
    return {
        "server": recording.server,
        "tool": recording.tool,
        "arguments_sha256": _sha256(recording.arguments),
        "known_at": recording.known_at,
        "failed": recording.failed,
        "definition_digest": stored.definition_digest,
        "arguments": recording.arguments,
        "result": codec.printable(recording.result).replace("\0", ""),  # which text columns of Postgres do not accept
    }


def _stored(row: Mapping[str, Any]) -> StoredRecording:
    rows.require_intact(recordings, row)
    recording = Recording(
        row["server"], row["tool"], row["arguments"], row["known_at"], row["result"], bool(row["failed"])
    )
    return StoredRecording(recording, row["definition_digest"])


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _of_tool(server: str, tool: str) -> tuple[Any, ...]:
    return recordings.c.server == server, recordings.c.tool == tool


@cache
def _latest() -> Select[*tuple[Any, ...]]:
    return (
        rows.raw(recordings)
        .where(
            recordings.c.server == bindparam("of_server"),
            recordings.c.tool == bindparam("of_tool"),
            recordings.c.arguments_sha256 == bindparam("of_arguments"),
            recordings.c.known_at <= bindparam("of_by"),
        )
        .order_by(recordings.c.known_at.desc())
        .limit(1)
    )
