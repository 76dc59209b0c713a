"""The MCP servers that this workspace knows: reached with their keys and nothing else, and how each of their tools stands.

What may be reached is the catalogue's word, what may be shown to a model is a person's (an approval) or the catalogue's
(a pin). Which of it a run gets is `bootstrap.mcp`.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from pitboss.bootstrap.keys import key_for, open_secrets, owners
from pitboss.bootstrap.machine import environment
from pitboss.bootstrap.redact import REDACTOR, secrets_of
from pitboss.bootstrap.settings import Settings
from pitboss.core import codec
from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.models.secret import Secret
from pitboss.skill.spelling import did_you_mean, nearest
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
"""Of one tool. changed: it is not what was approved any more. missing: allowed, but the server does not have it."""


@dataclass(frozen=True, slots=True)
class ToolStatus:
    """How one tool of a server stands, with what the server says about it now (None where it is missing)."""

    tool: str
    state: State
    said: Definition | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """What a server is given: variables of the environment for a child, a key for a remote one."""

    variables: Mapping[str, str]
    bearer: Secret | None


def catalogue(settings: Settings) -> Catalog:
    """The servers that are shipped, and those of the operator's own file."""
    return catalog.load_catalog(settings.mcp_catalog, reserved=owners())


def allowed_tools(settings: Settings) -> dict[str, frozenset[str]]:
    """The tools that each server may offer, by its id: what a skill may name."""
    return {server_id: frozenset(entry.tools) for server_id, entry in catalogue(settings).items()}


def key_users(settings: Settings) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """By the name of a key: the servers that are sent it, and the hosts they are at."""
    found: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for entry in catalogue(settings).values():
        if entry.secret:
            ids, hosts = found.get(entry.secret, ((), ()))
            host = urlsplit(entry.url).hostname
            found[entry.secret] = (*ids, entry.id), (*hosts, *((host,) if host else ()))
    return found


def find_tool(entry: ServerEntry, tool: str) -> str:
    """The name of a tool that the catalogue allows, if it does."""
    if tool not in entry.tools:
        raise UserError(
            f"{tool!r} is not a tool that {entry.id} may offer",
            did_you_mean(nearest(tool, entry.tools), f"allowed: {', '.join(entry.tools) or 'none'}"),
        )
    return tool


def access(home: Path, entry: ServerEntry, variables: Variables = environment) -> Access:
    """What an entry names of the environment and the secret store; nothing else of either is ever handed on."""
    passed = {name: value for name in entry.env if (value := variables(name))}
    REDACTOR.add(*secrets_of(passed))
    return Access(passed, key_for((entry.secret,), variables, open_secrets(home)) if entry.secret else None)


@asynccontextmanager
async def reach(home: Path, entry: ServerEntry, variables: Variables = environment) -> "AsyncIterator[Connection]":
    """A connection for the length of a block. `UserError` where an entry is not complete, `TransientError` where nobody
    answers. A key that is not kept is not sent: some servers answer without."""
    from pitboss.tools.mcp.connection import connect
    from pitboss.tools.mcp.transport import guarded_transport

    given = access(home, entry, variables)
    absent = catalog.missing_setup(entry)
    if absent:
        raise UserError(absent, " ".join(entry.note.split()).partition(". ")[0])
    async with connect(
        entry, environment=given.variables, bearer=given.bearer, transport=guarded_transport
    ) as connection:
        yield connection


def standings(entry: ServerEntry, approved: Mapping[str, Approval], said: Mapping[str, Definition]) -> list[ToolStatus]:
    """How every tool stands that the catalogue allows or the server has, by name."""
    return [_standing(entry, approved, said.get(tool), tool) for tool in sorted({*entry.tools, *said})]


def _standing(entry: ServerEntry, approved: Mapping[str, Approval], said: Definition | None, tool: str) -> ToolStatus:
    return ToolStatus(tool, state_of(entry, tool, approved[tool].digest if tool in approved else "", said), said)


def state_of(entry: ServerEntry, tool: str, approved: str, said: Definition | None) -> State:
    """How a tool stands, given the digest that a person approved (empty: none) and what the server says now."""
    if said is None:
        return "missing"
    if tool not in entry.tools:
        return "not allowed"
    known = trusted(entry, tool, approved)
    return "approved" if said.digest in known else "changed" if known else "not approved"


def trusted(entry: ServerEntry, tool: str, approved: str) -> frozenset[str]:
    """The digests under which a tool may be offered: the approved one, and the one that the catalogue pins."""
    return frozenset({entry.pins.get(tool, ""), approved} - {""})


def write_definition(said: Definition) -> bytes:
    """A definition as an approval keeps it. Its SHA-256 is the definition's digest."""
    return codec.dumps({"server": said.server, "version": said.version, "tool": codec.number_fragments(said.raw)})


def read_definition(approval: Approval) -> Definition:
    """The definition that was approved."""
    if hashlib.sha256(approval.definition).hexdigest() != approval.digest:
        raise ReplayMismatch(f"the approval of {approval.tool} of {approval.server} is not what was approved")
    # Not the codec: it reads a whole number of more than 64 bits as another one.
    plain = json.loads(approval.definition)
    return definitions.read_definition(plain["server"], plain["version"], plain["tool"])
