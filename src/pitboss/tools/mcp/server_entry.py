"""One server that may be connected to: how it is started or reached, and which of its tools may be used.

Plain values. Entries are read from a catalogue (`catalog`), which the operator controls and a skill cannot; what the
server says about itself is no part of an entry, but for the digests that an approval pinned.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from pitboss.core.noun import noun

Transport = Literal["stdio", "sse", "http"]
TRANSPORTS: tuple[Transport, ...] = ("stdio", "sse", "http")

TIMEOUT_S = 10.0
CONCURRENCY = 4


@noun
class ToolPolicy:
    """What the catalogue allows one tool. `as_of_safe`: asked again later, it gives the same answer for the same past."""

    as_of_safe: bool = False


@noun
class ServerEntry:
    """A server of the catalogue.

    `tools` is the allowlist: a tool that is not in it is never offered, whatever the server calls read-only. `env` names
    the variables a child may see; `secret` names the value in the secret store that is sent as bearer, or as it is in the
    header `secret_header`. `loopback` allows an HTTP address on this machine. `pins` are the digests a catalogue ships
    with, by tool.
    """

    id: str
    title: str
    note: str = ""
    transport: Transport = "stdio"
    argv: tuple[str, ...] = ()
    url: str = ""
    env: tuple[str, ...] = ()
    secret: str = ""
    secret_header: str = ""
    tools: Mapping[str, ToolPolicy] = field(default_factory=dict[str, ToolPolicy])
    timeout_s: float = TIMEOUT_S
    concurrency: int = CONCURRENCY
    loopback: bool = False
    pins: Mapping[str, str] = field(default_factory=dict[str, str])


@noun
class ServerLimits:
    """How much of a server is listened to, and for how long. What goes beyond ends the connection, not the run."""

    connect_s: float = 10.0
    """To start, greet and list its tools, together."""
    line_bytes: int = 8 * 2**20
    """One message, and one response that is not a stream."""
    flood_bytes: int = 64 * 2**20
    brackets: int = 100_000
    """Opened objects and lists, in texts as well: what reading a message costs is counted in these."""
    messages: int = 10_000
    bad_lines: int = 100
    requests: int = 50
    """That we make to its address: a server can ask for a stream to be opened again and again.

    All five: since the last question we asked."""
    parts: int = 1_000
    """In any one list of an answer."""
    tools: int = 100
    pages: int = 20
    grace_s: float = 2.0
    """Between closing a child's input and telling it to end, and again before it is killed."""
    stderr_bytes: int = 4_096


LIMITS = ServerLimits()
