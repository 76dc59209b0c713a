"""The external connections of a run: its model, the tools of MCP servers, their recordings, a tracer.

`bootstrap` opens all of them first; a venue then builds the ports of the run once, from these values and its own data.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pitboss.agent.decider import Decider
from pitboss.agent.request_policy import DEFAULT_POLICY, RequestPolicy
from pitboss.core.instant import Instant
from pitboss.core.past import NO_RECORDINGS, Recordings
from pitboss.core.ports import Model, Tool, ToolSpec
from pitboss.core.trace import SILENT, Tracer
from pitboss.sim.speculation import Speculation


@dataclass(frozen=True, slots=True)
class ServerTools:
    """The tools of MCP servers that a run can use while they are connected.

    `at` binds them to an instant. `notes` says at each tick which of them are not available.
    """

    specs: tuple[ToolSpec, ...] = ()
    at: Callable[[Instant], Mapping[str, Tool]] = lambda at: {}
    notes: Callable[[], tuple[str, ...]] = tuple


NO_SERVER_TOOLS = ServerTools()


@dataclass(frozen=True, slots=True, eq=False)
class Connections:
    """Everything outside the venue that the ports of a run are built with.

    Without a `model` no request can be sent, which is enough to rebuild prompts and states. `policy` is how
    the model is made to decide. `decider` replaces the decider of the request, for replays of
    recorded decisions; `model` then answers reflections only.
    """

    model: Model | None = None
    policy: RequestPolicy = DEFAULT_POLICY
    speculation: Speculation | None = None
    server_tools: ServerTools = NO_SERVER_TOOLS
    recordings: Recordings = NO_RECORDINGS
    tracer: Tracer = SILENT
    decider: Decider | None = None
    tools: tuple[Any, ...] = ()
    """Further tools (`tools.define.ToolDefinition`) that are offered besides those of the skill, as an audit does."""


UNCONNECTED = Connections()
