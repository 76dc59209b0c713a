"""One allowed server: how it is started or reached, and which of its tools may be used.

Plain values. Entries are read from the catalogue (`catalog`), which the operator controls and a skill cannot. Apart from
the pinned digests, nothing that the server says about itself is part of an entry.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from pitboss.core.noun import noun

Transport = Literal["stdio", "sse", "http"]

TIMEOUT_S = 10.0
CONCURRENCY = 4


@noun
class ToolPolicy:
    """Permissions of one tool. `as_of_safe`: a later call gives the same answer about the same past."""

    as_of_safe: bool = False


@noun
class ServerEntry:
    """A server of the catalogue.

    `tools` is the allowlist: other tools are never offered, even if the server marks them read-only. `env` names the
    variables of a child process; `secret` names the value in the secret store that is sent as a bearer token, or verbatim
    in the header `secret_header`. `loopback` allows an HTTP address on this machine. `pins` are the digests shipped with
    the catalogue, by tool.
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
    """Limits on time and output of a server. Exceeding one ends the connection, not the run."""

    connect_s: float = 10.0
    """For starting, initialising and listing the tools together."""
    line_bytes: int = 8 * 2**20
    """One message, and one response that is not a stream."""
    flood_bytes: int = 64 * 2**20
    brackets: int = 100_000
    """Opening brackets of objects and lists, including those inside strings: a measure of the cost of parsing."""
    messages: int = 10_000
    bad_lines: int = 100
    requests: int = 50
    """HTTP requests to the server, which can ask for a stream to be reopened any number of times.

    These five are counted from the last request of pitboss."""
    parts: int = 1_000
    """Elements of any list in a result."""
    tools: int = 100
    pages: int = 20
    grace_s: float = 2.0
    """Time between closing a child's input and SIGTERM, and between SIGTERM and SIGKILL."""
    stderr_bytes: int = 4_096


LIMITS = ServerLimits()
