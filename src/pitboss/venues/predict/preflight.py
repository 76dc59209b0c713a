"""Checks everything that a live run needs, one by one: indexer, price feed, and for the Sui writer the chain.

Nothing is signed or sent. A check that depends on one that failed is reported as failed for that reason.
"""

from pitboss.bootstrap.machine import SystemClock
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.core.instant import SECOND_MS
from pitboss.data.fetch import Fetcher
from pitboss.data.hermes import Hermes
from pitboss.runs.checklist import Check, Refused, checked
from pitboss.store.database import Database
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.case import dusdc
from pitboss.venues.predict.data.indexer import Indexer
from pitboss.venues.predict.readers import indexer_of, open_fetcher
from pitboss.venues.predict.settings import PredictSettings
from pitboss.venues.predict.sui.broker import PredictSui
from pitboss.venues.predict.sui_setup import agent_object, open_writer

MOST_LAG_S = 60
"""The indexer's own default for how far it may be behind."""


async def preflight(
    settings: Settings, predict: PredictSettings, database: Database, prices_url: str, underlying: str, chain: bool
) -> list[Check]:
    """Run all checks; with `chain` also those of the Sui writer."""
    checks: list[Check] = []
    async with open_fetcher() as fetcher:
        indexer = await checked(checks, "indexer", lambda: _indexer(predict, fetcher))
        if isinstance(indexer, Indexer):
            await checked(checks, "protocol", lambda: _protocol(indexer))
            await checked(checks, "markets", lambda: _markets(indexer, underlying))
            predict = predict.model_copy(update={"predict_id": indexer.predict_id})
        await checked(checks, "prices", lambda: _prices(fetcher, prices_url or settings.hermes_url, underlying))
        if chain:
            await _chain_checks(checks, settings, predict, database, indexer)
    return checks


async def _indexer(predict: PredictSettings, fetcher: Fetcher) -> tuple[str, Indexer]:
    indexer = await indexer_of(predict, fetcher)
    health = await indexer.health()
    if not health.ok or health.lag_s > MOST_LAG_S:
        raise Refused(f"the indexer is {health.lag_s} s behind the chain")
    return f"checkpoint {health.checkpoint}, {health.lag_s} s behind the chain", indexer


async def _protocol(indexer: Indexer) -> str:
    protocol = await indexer.protocol()
    if protocol.terms.paused:
        raise Refused("the indexer reports that trading is paused")
    return f"Predict object {indexer.predict_id}, trading is not paused"


async def _markets(indexer: Indexer, underlying: str) -> str:
    markets, now = await indexer.markets(underlying), SystemClock().now()
    fresh = [market for market in markets if market.priced_at is not None and now - market.priced_at <= 30 * SECOND_MS]
    if not fresh:
        raise Refused(f"{len(markets)} open markets of {underlying}, none with a price of the last 30 s")
    quoted = [market for market in fresh if market.svi is not None and market.grid.spans(market.spot)]
    if not quoted:
        raise Refused(f"{len(fresh)} open markets of {underlying}, none of which can be quoted at its price")
    return f"{len(quoted)} of {len(markets)} open markets of {underlying} can be quoted"


async def _prices(fetcher: Fetcher, url: str, underlying: str) -> str:
    price = await Hermes(fetcher, url).latest(underlying)
    age_s = (SystemClock().now() - price.published_at) / SECOND_MS
    if age_s > MOST_LAG_S:
        raise Refused(f"the newest price of {underlying} is {age_s:.0f} s old")
    return f"{underlying} {price.price:f} USD, {age_s:.0f} s old"


async def _chain_checks(
    checks: list[Check], settings: Settings, predict: PredictSettings, database: Database, indexer: Indexer | None
) -> None:
    try:
        async with open_writer(settings, database, PredictCaps(), predict=predict) as broker:
            checks.append(Check("key", True, f"signs for {broker.sender.address}"))
            balance = await checked(checks, "manager", lambda: _manager(broker))
            if balance is not None and indexer is not None:
                await checked(checks, "positions", lambda: _positions(indexer, broker))
            await checked(checks, "pause flag", lambda: _pause_flag(broker))
            if predict.predict_agent_id:
                await checked(checks, "agent", lambda: _agent(broker, predict))
    except UserError as error:
        checks.append(Check("writer", False, f"{error.message}; {error.hint}" if error.hint else error.message))


async def _manager(broker: PredictSui) -> tuple[str, int]:
    """Read the network, the objects, the gas coin and the balance, each of which would prevent every order."""
    balance = await broker.sender.check()
    return f"{broker.sender.objects.manager} on {broker.sender.settings.network} holds {dusdc(balance)} DUSDC", balance


async def _positions(indexer: Indexer, broker: PredictSui) -> str:
    positions = await indexer.positions(broker.sender.objects.manager)
    return f"{sum(position.quantity > 0 for position in positions)} open positions"


async def _pause_flag(broker: PredictSui) -> str:
    predict = broker.sender.objects.predict
    fields = (await broker.sender.contents([predict])).get(predict)
    if fields is None:
        raise Refused(f"there is no object {predict}")
    if fields.get("trading_paused") is True:
        raise Refused("trading is paused on the chain")
    return "trading is not paused on the chain"


async def _agent(broker: PredictSui, predict: PredictSettings) -> str:
    agent_id = agent_object(predict)
    fields = (await broker.sender.contents([agent_id])).get(agent_id, {})
    if fields.get("is_active") is not True:
        raise Refused(f"the agent {agent_id} is not active on the chain")
    return f"the agent {agent_id} is active"
