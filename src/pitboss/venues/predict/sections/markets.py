"""`## Open markets`: one line per market with the asks at the strike nearest to spot. The asks count as shown."""

from functools import lru_cache

from pitboss.core.instant import iso
from pitboss.venues.predict import formatting
from pitboss.venues.predict.ladder import STEP, ladder
from pitboss.venues.predict.observation import PredictObservation
from pitboss.venues.predict.state import Oracle, binary

PLACE = 30
MOST = 24
"""Maximum number of markets shown; the schedule never has more open for one underlying."""

_iso = lru_cache(maxsize=256)(iso)
"""Cached: an expiry is shown at every tick of its market."""


def render(observation: PredictObservation) -> str:
    """Return the section; it states if no market is open."""
    markets = observation.markets()
    if not markets:
        return "## Open markets\nnone"
    lines = [_line(observation, market) for market in markets[:MOST]]
    if len(markets) > MOST:
        lines.append(f"and {len(markets) - MOST} that expire later")
    head = "market_id | expires (UTC) | time left | spot | strike nearest to spot: YES ask, NO ask"
    return "\n".join(("## Open markets", head, *lines))


def _line(observation: PredictObservation, market: Oracle) -> str:
    facts = f"{formatting.name(market.id)} | {_iso(market.expiry_at)} | {formatting.time_left(market.expiry_at, observation.at)}"
    rungs = ladder(observation.desk.world, market.id, observation.at, STEP * observation.price_scale, count=0)
    if not rungs:
        return f"{facts} | no quote now"
    strike, quote = rungs[0].strike, rungs[0].quote
    yes, no = quote.ask, quote.opposite.ask
    observation.shown.note(binary(market.id, "YES", strike), yes)
    observation.shown.note(binary(market.id, "NO", strike), no)
    asks = f"YES {formatting.chance(yes)}, NO {formatting.chance(no)}"
    return f"{facts} | {formatting.strike(market.spot)} | {formatting.strike(strike)}: {asks}"
