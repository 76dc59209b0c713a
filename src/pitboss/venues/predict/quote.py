"""From a fair value to what a contract costs: spread, ask, bid, ask bounds, and how many a spend buys.

Integer arithmetic that rounds down where the protocol does. It looks at numbers only: which market, which account and
whether it may trade at all is `world`'s business.
"""

from math import isqrt

from pitboss.core.noun import noun
from pitboss.venues.predict.aborts import BAD_BOUND, LOOSER_BOUNDS, Abort
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
    def other(self) -> "Quote":
        """The contract that wins when this one loses. Buying both costs one and twice the spread."""
        return Quote(FLOAT - self.fair, self.spread, FLOAT - self.bid, FLOAT - self.ask)


def utilisation(total_mtm: int, balance: int) -> int:
    """How much of the vault is spoken for, at most one; nothing where either is nothing."""
    if total_mtm <= 0 or balance <= 0:
        return 0
    return min(FLOAT, total_mtm * FLOAT // balance)


def spread(terms: MarketTerms, fair: int, used: int) -> int:
    """Half the distance of ask and bid: wider for uncertain outcomes and for a busy vault."""
    uncertain = terms.base_spread * isqrt(fair * (FLOAT - fair)) // FLOAT
    busy = terms.base_spread * terms.utilisation_multiplier // FLOAT * (used * used // FLOAT) // FLOAT
    return max(uncertain, terms.min_spread) + busy


def make_quote(terms: MarketTerms, fair: int, used: int) -> Quote:
    """Ask and bid around a fair value strictly between 0 and 1."""
    half = spread(terms, fair, used)
    return Quote(fair, half, min(FLOAT, fair + half), max(0, fair - half))


def settled_quote(won: bool) -> Quote:
    """After settlement there is nothing to be uncertain about."""
    value = FLOAT if won else 0
    return Quote(value, 0, value, value)


def ask_bounds(terms: MarketTerms, override: tuple[int, ...] | None) -> tuple[int, int]:
    """The lowest and highest ask at which a mint is admitted: the general bounds, tightened by an oracle's own."""
    if override is None:
        return terms.min_ask, terms.max_ask
    return max(terms.min_ask, override[0]), min(terms.max_ask, override[1])


def check_bounds(terms: MarketTerms, lowest: int, highest: int) -> Abort | None:
    """Whether bounds may be set for one oracle."""
    if not 0 < lowest < highest < FLOAT:
        return BAD_BOUND
    return LOOSER_BOUNDS if lowest < terms.min_ask or highest > terms.max_ask else None


def amount(price: int, quantity: int) -> int:
    """Price times quantity, rounded down: what a trade moves."""
    return price * quantity // FLOAT


def quantity_for(spend: int, ask: int) -> int:
    """The contracts a spend buys at an ask; they never cost more than it."""
    return spend * FLOAT // ask if spend > 0 and ask > 0 else 0


def kelly(probability: int, ask: int) -> float:
    """The share of a bankroll a sure believer would stake; below zero means stay out."""
    return (probability - ask) / (FLOAT - ask) if ask < FLOAT else 0.0
