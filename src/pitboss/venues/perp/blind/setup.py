"""Sets up blind runs: creates a run's anonymiser.

The anonymiser is `venues.perp.blind.anonymiser`. It is created when a run begins, from the run's seed, its symbols and
the prices known by then, and is stored with the run: resuming, verifying and reading the run use the stored one.
"""

from collections.abc import Sequence

from pitboss.core.asof import Market
from pitboss.core.instant import Instant
from pitboss.venues.perp.blind.anonymiser import PerpAnonymiser, make_anonymiser


def anonymiser_for(market: Market, symbols: Sequence[str], base: str, seed: int, start: Instant) -> PerpAnonymiser:
    """Create the anonymiser of a run that begins at `start`; it reads only the last closes before that."""
    view = market.view(start)
    levels: dict[str, float] = {}
    for symbol in symbols:
        closed = view.bars(symbol, base, 1) if view.has_bars(symbol, base) else ()
        if len(closed):
            levels[symbol] = float(closed.close[-1])  # pyright: ignore[reportAttributeAccessIssue]
    return make_anonymiser(symbols, seed, levels)
