"""The model of a live run connected, with its money bounded in all and for each UTC day.

Keys, prices, limits and the bound on everything ever spent are `gateway`'s, the same as for a backtest; only the bound on a
day is added here, around it. Where either is used up the model is not asked, and the tick is a hold with the flag `budget`.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from pitboss.agent.loop import ToolLoop
from pitboss.bootstrap import decider_source as gateway
from pitboss.bootstrap.model_stack import ModelConnection, known_price, route_of
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import Instant, day_of
from pitboss.core.money import ZERO
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.models import catalog
from pitboss.models.budget import Budget, usd
from pitboss.models.budgeted import Budgeted
from pitboss.models.call import ModelClient
from pitboss.models.prices import FREE, ModelPrice
from pitboss.sim.request import BacktestRequest, PreparedRun
from pitboss.skill.document import to_plain
from pitboss.venues.predict.deployment import Deployment
from pitboss.venues.predict.ports import PredictPorts


class Day(Budget):
    """The money of one UTC day."""

    def _refusal(self, worst: Decimal) -> str:
        gone = usd(self.spent + self.uncertain)
        return f"{gone} of {usd(self.limit_usd or ZERO)} spent today; the next call could cost {usd(worst)}"


class Daily:
    """A model that may cost so much on one UTC day, judged before each call by the most it can cost."""

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
        """Ask, if the day can still pay for it."""
        day = day_of(self._now())
        if day != self._day:
            self._day, self._today = day, Budgeted(self._inner, Day(self._most_usd), self._price)
        return await self._today.complete(request)


@dataclass(frozen=True, slots=True)
class ConnectedPorts:
    """The ports with their model connected, and what has been paid for it."""

    ports: PredictPorts
    line: ModelConnection | None = None

    @property
    def paid_usd(self) -> Decimal:
        """Everything this run has paid for, used or not."""
        return ZERO if self.line is None else self.line.paid_usd


@dataclass(frozen=True, slots=True)
class _Script:
    """The part of a replay's script that binding a line looks at."""

    ports: PredictPorts
    speculation: Any = None


def request_of(deployment: Deployment, model: str) -> BacktestRequest:
    """What the gateway is asked for. A live tick cannot be asked ahead."""
    return BacktestRequest(
        skill=to_plain(deployment.skill),
        from_at=0,
        to_at=0,
        model=model,
        equity_usd=deployment.equity,
        max_cost_usd=deployment.max_cost_usd,
        price_in=deployment.price_in,
        price_out=deployment.price_out,
        any_price=deployment.any_price,
        speculate="0",
    )


@asynccontextmanager
async def connected(
    workspace: Workspace, deployment: Deployment, model: str, ports: PredictPorts, run_id: str, spent_usd: Decimal
) -> AsyncIterator[ConnectedPorts]:
    """The ports with whoever they name connected, for the length of a block. `spent_usd` is what today has cost so far."""
    request = request_of(deployment, model)
    prepared = PreparedRun(request, deployment.skill, _Script(ports), "predict", "", False)
    async with gateway.connected(workspace, prepared, run_id) as (ready, line):
        bound: PredictPorts = ready.script.ports
        most, loop = deployment.max_cost_usd_per_day, bound.decider
        if line is not None and most is not None and isinstance(loop, ToolLoop):
            daily = Daily(line.model, most, _price(workspace, request), workspace.now, spent_usd)
            bound = replace(bound, decider=replace(loop, model=daily))
        yield ConnectedPorts(bound, line)


def _price(workspace: Workspace, request: BacktestRequest) -> ModelPrice | None:
    if request.source.partition("/")[0] in (catalog.LOCAL, catalog.REPLAY):
        return FREE
    return known_price(request, route_of(workspace, request.source))
