"""Computes contract prices from a fair value: spread, ask, bid, ask bounds, and the quantity that a spend buys.

Integer arithmetic that rounds down where the protocol does. It handles numbers only; `world` and `trade` decide which
market and account they belong to and whether a trade is allowed.
"""

from math import isqrt

from pitboss.core.noun import noun
from pitboss.venues.predict.state import MarketTerms
from pitboss.venues.predict.svi import FLOAT


@noun
class Quote:
    """Prices of one contract, in billionths."""

    fair: int
    spread: int
    ask: int
    bid: int

    @property
    def opposite(self) -> "Quote":
        """Return the quote of the opposite contract. Buying both costs one plus twice the spread."""
        return Quote(FLOAT - self.fair, self.spread, FLOAT - self.bid, FLOAT - self.ask)


def utilisation(total_mtm: int, balance: int) -> int:
    """Return the share of the vault's balance that is owed, at most one; zero if either value is zero."""
    if total_mtm <= 0 or balance <= 0:
        return 0
    return min(FLOAT, total_mtm * FLOAT // balance)


def spread(terms: MarketTerms, fair: int, used: int) -> int:
    """Return half the distance between ask and bid: wider for uncertain outcomes and a highly utilised vault."""
    uncertain = terms.base_spread * isqrt(fair * (FLOAT - fair)) // FLOAT
    busy = terms.base_spread * terms.utilisation_multiplier // FLOAT * (used * used // FLOAT) // FLOAT
    return max(uncertain, terms.min_spread) + busy


def make_quote(terms: MarketTerms, fair: int, used: int) -> Quote:
    """Return ask and bid around a fair value strictly between 0 and 1."""
    half = spread(terms, fair, used)
    return Quote(fair, half, min(FLOAT, fair + half), max(0, fair - half))


def settled_quote(won: bool) -> Quote:
    """Return the quote after settlement: 0 or 1, without spread."""
    value = FLOAT if won else 0
    return Quote(value, 0, value, value)


def ask_bounds(terms: MarketTerms, override: tuple[int, ...] | None) -> tuple[int, int]:
    """Return the lowest and highest ask at which a mint is admitted: the general bounds, tightened by the oracle's own."""
    if override is None:
        return terms.min_ask, terms.max_ask
    return max(terms.min_ask, override[0]), min(terms.max_ask, override[1])


def amount(price: int, quantity: int) -> int:
    """Return price times quantity, rounded down: the amount a trade transfers."""
    return price * quantity // FLOAT


def quantity_for(spend: int, ask: int) -> int:
    """Return the number of contracts that a spend buys at an ask; they never cost more than the spend."""
    return spend * FLOAT // ask if spend > 0 and ask > 0 else 0
