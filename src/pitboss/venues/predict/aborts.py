"""Abort codes of the predict protocol as values: module, code and reason. An aborted call changes nothing."""

from pitboss.core.noun import noun
from pitboss.venues.predict.svi import Flaw


@noun
class Abort:
    """One abort code of the protocol."""

    module: str
    code: int
    reason: str

    @property
    def name(self) -> str:
        """Module and code in the chain's notation."""
        return f"{self.module}:{self.code}"


PAUSED = Abort("predict", 0, "trading is paused")
NO_QUANTITY = Abort("predict", 3, "the quantity is zero")
ASK_OUT_OF_BOUNDS = Abort("predict", 7, "the ask is outside the ask bounds")
LOOSER_BOUNDS = Abort("predict", 8, "ask bounds of an oracle may not be looser than the general ones")
NOT_SETTLED = Abort("predict", 9, "the market is not settled")
OFF_GRID = Abort("oracle_config", 2, "the strike is not on the grid")
SETTLED = Abort("oracle_config", 3, "the market is settled")
EXPIRED = Abort("oracle_config", 4, "the market has expired and waits for its settlement")
INACTIVE = Abort("oracle_config", 5, "the market is not activated")
STALE = Abort("oracle_config", 6, "the market's price is stale")
BAD_BOUND = Abort("oracle_config", 11, "ask bounds need 0 < lowest < highest < 1")
ALREADY_ACTIVE = Abort("oracle", 1, "the oracle is active already")
ORACLE_EXPIRED = Abort("oracle", 2, "the oracle has expired")
ZERO_FORWARD = Abort("oracle", 3, "the forward price is not above zero")
NEGATIVE_BRACKET = Abort("oracle", 4, "the surface's bracket is negative")
ZERO_VARIANCE = Abort("oracle", 5, "the surface has no variance at this strike")
ORACLE_SETTLED = Abort("oracle", 6, "the oracle is settled")
VAULT_SHORT = Abort("vault", 0, "the vault cannot pay")
EXPOSURE = Abort("vault", 1, "the vault's liability would pass its exposure cap")
UNKNOWN = Abort("vault", 2, "no such market")
NO_POSITION = Abort("manager", 1, "the account does not hold so many contracts")
NO_RANGE = Abort("manager", 2, "the account does not hold so many of the range")
PRICE_AT_EDGE = Abort("pricing_config", 1, "the fair price is 0 or 1")
TOO_LITTLE_CASH = Abort("balance_manager", 3, "the account's balance is too low")
BAD_ORACLE = Abort("registry", 0, "an oracle needs a new id and a sound grid")
RISING = Abort("pitboss", 0, "under this surface the price of UP would rise with the strike")
OLD_PUSH = Abort("pitboss", 1, "a push may not be older than the one before it")
BAD_PRICE = Abort("pitboss", 2, "a price must be above zero")
"""The last three aborts are the paper venue's own: it rejects out-of-order updates and surfaces that are no
distribution.
"""

OF_FLAW: dict[Flaw, Abort] = {
    "zero_forward": ZERO_FORWARD,
    "bad_strike": OFF_GRID,
    "negative_bracket": NEGATIVE_BRACKET,
    "zero_variance": ZERO_VARIANCE,
    "not_finite": ZERO_VARIANCE,
}
UNQUOTED = frozenset({OFF_GRID, ZERO_FORWARD, NEGATIVE_BRACKET, ZERO_VARIANCE, PRICE_AT_EDGE})
"""Aborts that mean the strike has no quote."""
