"""The MCP servers known to this workspace: connecting with their credentials, and the approval state of their tools.

The catalogue defines which servers may be contacted; a tool may be shown to a model if the user approved it or the
catalogue pins it. The selection for a run is in `bootstrap.mcp_tools`.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from pitboss.bootstrap.keys import key_for, open_secrets, owners
from pitboss.bootstrap.machine import environment
from pitboss.bootstrap.redact import REDACTOR, secrets_of
from pitboss.bootstrap.settings import Settings
from pitboss.core import codec
from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.core.suggestion import suggestion
from pitboss.models.secret import Secret
from pitboss.store.approvals import Approval
from pitboss.tools.mcp import catalog
from pitboss.tools.mcp import definition as definitions
from pitboss.tools.mcp.catalog import Catalog
from pitboss.tools.mcp.definition import Definition
from pitboss.tools.mcp.server_entry import ServerEntry

if TYPE_CHECKING:
    from pitboss.tools.mcp.connection import Connection

Variables = Callable[[str], str | None]
State = Literal["approved", "changed", "not approved", "not allowed", "missing"]
"""State of one tool. changed: differs from the approved definition. missing: allowed, but the server lacks it."""


@dataclass(frozen=True, slots=True)
class ToolStatus:
    """The state of one tool of a server, with its current definition (None if it is missing)."""

    tool: str
    state: State
    definition: Definition | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """The credentials of a server: environment variables for a local process, a key for a remote server."""

    variables: Mapping[str, str]
    bearer: Secret | None


def catalogue(settings: Settings) -> Catalog:
    """The shipped catalogue of servers, extended by the operator's own file."""
    return catalog.load_catalog(settings.mcp_catalog, reserved=owners())


def allowed_tools(settings: Settings) -> dict[str, frozenset[str]]:
    """The tools that each server may offer, by server id: the names a skill may use."""
    return {server_id: frozenset(entry.tools) for server_id, entry in catalogue(settings).items()}


def key_users(settings: Settings) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """By key name: the servers that receive it, and their hosts."""
    users: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for entry in catalogue(settings).values():
        if entry.secret:
            ids, hosts = users.get(entry.secret, ((), ()))
            host = urlsplit(entry.url).hostname
            users[entry.secret] = (*ids, entry.id), (*hosts, *((host,) if host else ()))
    return users


def find_tool(entry: ServerEntry, tool: str) -> str:
    """The catalogue's name of an allowed tool. Raises `UserError` for any other."""
    if tool not in entry.tools:
        raise UserError(
            f"{tool!r} is not a tool that {entry.id} may offer",
            suggestion(tool, entry.tools, "allowed:") or "it may offer none",
        )
    return tool


def access(home: Path, entry: ServerEntry, variables: Variables = environment) -> Access:
    """The variables and the key that an entry names; nothing else of the environment or the store is passed on."""
    passed = {name: value for name in entry.env if (value := variables(name))}
    REDACTOR.add(*secrets_of(passed))
    return Access(passed, key_for((entry.secret,), variables, open_secrets(home)) if entry.secret else None)


@asynccontextmanager
async def open_connection(home: Path, entry: ServerEntry) -> "AsyncIterator[Connection]":
    """Connect to a server for the duration of a block.

    Raises `UserError` for an incomplete entry and `TransientError` if the server does not answer. A missing key is
    not sent: some servers work without one.
    """
    from pitboss.tools.mcp.connection import connect
    from pitboss.tools.mcp.transport import CheckedTransport

    credentials = access(home, entry)
    problem = catalog.missing_setup(entry)
    if problem:
        raise UserError(problem, " ".join(entry.note.split()).partition(". ")[0])
    async with connect(
        entry,
        environment=credentials.variables,
        bearer=credentials.bearer,
        hide=REDACTOR.redact,
        transport=CheckedTransport,
    ) as connection:
        yield connection


def tool_statuses(
    entry: ServerEntry, approved: Mapping[str, Approval], definitions: Mapping[str, Definition]
) -> list[ToolStatus]:
    """The status of every tool that the catalogue allows or the server has, by name."""

    def status(tool: str) -> ToolStatus:
        digest = approved[tool].digest if tool in approved else ""
        return ToolStatus(tool, state_of(entry, tool, digest, definitions.get(tool)), definitions.get(tool))

    return [status(tool) for tool in sorted({*entry.tools, *definitions})]


def state_of(entry: ServerEntry, tool: str, approved: str, definition: Definition | None) -> State:
    """The state of a tool, from the approved digest (empty: none) and the server's current definition."""
    if definition is None:
        return "missing"
    if tool not in entry.tools:
        return "not allowed"
    trusted_digests = trusted(entry, tool, approved)
    return "approved" if definition.digest in trusted_digests else "changed" if trusted_digests else "not approved"


def trusted(entry: ServerEntry, tool: str, approved: str) -> frozenset[str]:
    """The digests under which a tool may be offered: the approved one, and the one that the catalogue pins."""
    return frozenset({entry.pins.get(tool, ""), approved} - {""})


def write_definition(definition: Definition) -> bytes:
    """A definition in the bytes that an approval stores. Their SHA-256 is the definition's digest."""
    return codec.dumps(
        {"server": definition.server, "version": definition.version, "tool": codec.number_fragments(definition.raw)}
    )


def approved_definition(entry: ServerEntry, tool: str, approval: Approval | None) -> Definition | None:
    """The definition of a tool that the user approved, else the one that is shipped for its pin; None if there is none."""
    return read_definition(approval) if approval else _shipped_definitions().get(entry.pins.get(tool, ""))


def read_definition(approval: Approval) -> Definition:
    """The definition that was approved."""
    if hashlib.sha256(approval.definition).hexdigest() != approval.digest:
        raise ReplayMismatch(f"the approval of {approval.tool} of {approval.server} is not what was approved")
    return _parse_definition(approval.definition)


@cache
def _shipped_definitions() -> dict[str, Definition]:
    """By digest, the definitions of the servers that are approved as shipped, in the bytes of `write_definition`."""
    lines = files("pitboss.tools.mcp").joinpath("shipped_definitions.jsonl").read_bytes().splitlines()
    return {hashlib.sha256(line).hexdigest(): _parse_definition(line) for line in lines}


def _parse_definition(content: bytes) -> Definition:
    # Not the codec, which changes integers of more than 64 bits.
    plain = json.loads(content)
    return definitions.read_definition(plain["server"], plain["version"], plain["tool"])
