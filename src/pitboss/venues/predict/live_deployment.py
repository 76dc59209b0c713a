"""Opens a deployment of a predict skill: on paper with the prices of the protocol, or on the chain through the Sui writer.

It is the same side as that of `pitboss predict run`; what differs is who drives it. Without an indexer in the settings the
markets are those of the protocol's schedule.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pitboss.core.errors import UserError
from pitboss.live.board import display_text
from pitboss.runs.live_deployment import LiveDeployment
from pitboss.venues.predict.deployment import PredictDeployment
from pitboss.venues.predict.live import PredictLive, make_plan
from pitboss.venues.predict.live_feed import check_markets, open_feed
from pitboss.venues.predict.live_writer import open_live_writer
from pitboss.venues.predict.settings import PredictSettings
from pitboss.venues.predict.skill import PredictSkill


@asynccontextmanager
async def open_live(live: LiveDeployment) -> AsyncIterator[PredictLive]:
    """Open the feed and the writer of a deployment."""
    workspace, deployment = live.workspace, predict_deployment(live)
    check_markets(workspace.settings, deployment)
    async with (
        open_feed(workspace.settings, deployment, live.notify) as feed,
        open_live_writer(workspace, deployment, feed, live.notify) as writer,
    ):
        plan = make_plan(deployment, deployment.model, writer, workspace.now(), writer.notes)
        yield PredictLive(deployment, feed, writer, plan)


def predict_deployment(live: LiveDeployment) -> PredictDeployment:
    """Return the configuration of a live run that a stored deployment stands for."""
    skill: PredictSkill = live.skill
    settings = PredictSettings.of(live.workspace.settings)
    on_chain = live.deployment.mode == "live"
    scheduled = not settings.predict_server_url
    if on_chain and scheduled:
        raise UserError("markets on the chain need an indexer", "set predict_server_url")
    return PredictDeployment(
        skill=skill,
        model=live.request.source,
        every_ms=skill.schedule.every_ms,
        equity=live.request.equity_usd,
        name=display_text(skill.name, 80),
        mandate=skill.strategy.mandate or display_text(skill.strategy.text or ""),
        max_cost_usd=live.request.max_cost_usd,
        max_cost_usd_per_day=live.most_usd_per_day,
        price_in=live.request.price_in,
        price_out=live.request.price_out,
        any_price=live.request.any_price,
        scheduled=scheduled,
        writer="sui" if on_chain else "paper",
    )
