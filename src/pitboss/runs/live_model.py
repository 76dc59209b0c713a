"""The model of a live run, with a cost limit in total and per UTC day.

Keys, prices, rate limits and the total limit are those of a backtest; this module adds only the daily limit around
them. If either limit is exhausted the model is not called, and the tick is a hold with the flag `budget`.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from decimal import Decimal

from pitboss.bootstrap.decider_source import open_model
from pitboss.bootstrap.mcp_tools import open_server_tools
from pitboss.bootstrap.model_stack import ModelConnection, known_price, route_of
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import Instant, day_of
from pitboss.core.money import ZERO
from pitboss.core.past import NO_RECORDINGS
from pitboss.core.ports import Model, ModelReply, ModelRequest
from pitboss.models.budget import Budget, usd
from pitboss.models.budgeted import Budgeted
from pitboss.models.cached import Cached
from pitboss.models.call import ModelClient
from pitboss.models.prices import FREE, ModelPrice
from pitboss.models.providers import LOCAL, REPLAY
from pitboss.sim.connections import NO_SERVER_TOOLS, UNCONNECTED, Connections
from pitboss.sim.request import BacktestRequest
from pitboss.skill.schema import SkillDocument
from pitboss.store.recordings import StoredRecordings
from pitboss.tools.registry import Registry


class Day(Budget):
    """The budget of one UTC day."""

    def _refusal(self, worst: Decimal) -> str:
        spent = usd(self.spent + self.uncertain)
        return f"{spent} of {usd(self.limit_usd or ZERO)} spent today; the next call could cost {usd(worst)}"


class Daily:
    """A model client with a cost limit per UTC day, checked before each call against the maximum cost of that call."""

    def __init__(
        self,
        inner: ModelClient,
        most_usd: Decimal,
        price: ModelPrice | None,
        now: Callable[[], Instant],
        spent_usd: Decimal,
    ) -> None:
        self.name = inner.name
        self._inner = inner
        self._most_usd = most_usd
        self._price = price
        self._now = now
        self._day = day_of(now())
        self._today = Budgeted(inner, Day(most_usd, spent_usd), price)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Call the model if the day's budget covers the maximum cost."""
        day = day_of(self._now())
        if day != self._day:
            self._day, self._today = day, Budgeted(self._inner, Day(self._most_usd), self._price)
        return await self._today.complete(request)


class FreshReplies:
    """A model client whose every request is sent: an agent that is asked again wants another answer.

    The cache under it keeps each reply under the instant of its request. Without this an agent that sees the same prompt as
    before, after a reply that could not be read, would get that reply again until something else happens.
    """

    def __init__(self, inner: Model, cached: Cached, now: Callable[[], Instant]) -> None:
        self.name = inner.name
        self._inner = inner
        self._cached = cached
        self._now = now

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Send a request."""
        self._cached.repeat = self._now()
        return await self._inner.complete(request)


@asynccontextmanager
async def connected(
    workspace: Workspace,
    request: BacktestRequest,
    skill: SkillDocument,
    run_id: str,
    most_usd_per_day: Decimal | None,
    spent_usd: Decimal,
    registry: Registry | None = None,
) -> AsyncIterator[tuple[Connections, ModelConnection | None]]:
    """Open the model of a live run for the duration of the block. `spent_usd` is today's cost so far.

    With a `registry`, the built-in tools of the venue, the MCP servers that the skill names are connected too.
    """
    async with AsyncExitStack() as stack:
        server_tools, recordings = NO_SERVER_TOOLS, NO_RECORDINGS
        if registry is not None and not request.is_program:
            # their answers are recorded, so that a tick can be replayed
            offered = open_server_tools(workspace, skill, registry, simulated=False, record=True)
            server_tools = await stack.enter_async_context(offered)
            recordings = StoredRecordings(workspace.database)
        connection = await open_model(stack, workspace, request, skill, run_id)
        if connection is None:
            yield UNCONNECTED, None
            return
        model_client = connection.model
        if most_usd_per_day is not None:
            price = _price(workspace, request)
            model_client = Daily(model_client, most_usd_per_day, price, workspace.now, spent_usd)
        if connection.cached is not None:
            model_client = FreshReplies(model_client, connection.cached, workspace.now)
        yield (
            Connections(model=model_client, policy=connection.policy, server_tools=server_tools, recordings=recordings),
            connection,
        )


def _price(workspace: Workspace, request: BacktestRequest) -> ModelPrice | None:
    if request.source.partition("/")[0] in (LOCAL, REPLAY):
        return FREE
    return known_price(request, route_of(workspace, request.source))
