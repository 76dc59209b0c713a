"""Strikes of a market with their prices, ordered outward from spot. Used by a tool and by the heuristics."""

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.venues.predict.quote import Quote, ask_bounds
from pitboss.venues.predict.schedule import rungs
from pitboss.venues.predict.state import PredictWorld, Side, binary, oracle_of
from pitboss.venues.predict.svi import FLOAT
from pitboss.venues.predict.trade import preview

STEP = 50 * FLOAT


@noun
class Rung:
    """One strike with the quote of YES; `other` is the quote of NO. `sides` are those whose ask is within the bounds."""

    strike: int
    quote: Quote
    sides: tuple[Side, ...]

    def ask(self, side: Side) -> int:
        """Return the ask of a side."""
        return self.quote.ask if side == "YES" else self.quote.opposite.ask


def ladder(world: PredictWorld, market_id: str, now: Instant, step: int = STEP, count: int = 10) -> tuple[Rung, ...]:
    """Return the strikes that are quoted now, nearest to spot first; empty if the market is not quoted."""
    oracle = oracle_of(world, market_id)
    if oracle is None or oracle.spot <= 0:
        return ()
    lowest, highest = ask_bounds(world.terms, oracle.ask_bounds)
    result: list[Rung] = []
    for strike in rungs(oracle.grid, oracle.spot, step, count):
        quote = preview(world, binary(market_id, "YES", strike), now)
        if not isinstance(quote, Quote):
            continue
        sides: tuple[Side, ...] = ("YES",) if lowest <= quote.ask <= highest else ()
        result.append(Rung(strike, quote, (*sides, "NO") if lowest <= quote.opposite.ask <= highest else sides))
    return tuple(result)


def first_rung(
    world: PredictWorld, market_id: str, side: Side, now: Instant, step: int = STEP, count: int = 10
) -> Rung | None:
    """Return the first strike outward from spot at which a side can be minted."""
    for rung in ladder(world, market_id, now, step, count):
        if side in rung.sides:
            return rung
    return None
