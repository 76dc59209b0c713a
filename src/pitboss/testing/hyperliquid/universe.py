"""The perpetuals that the fake exchange lists: sizes, leverage, margin tiers, and which prices and sizes are valid."""

from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal

from pitboss.core.errors import UserError
from pitboss.core.noun import noun

MOST_DECIMALS = 6
SIGNIFICANT = 5
MICRO = Decimal("0.000001")
"""All amounts of USDC are multiples of this: a valid price times a valid size always is."""

POWERS = {exponent: Decimal(1).scaleb(exponent) for exponent in range(-8, 1)}


@noun
class MarginTier:
    """From this notional on, at most this leverage."""

    lower_bound: Decimal
    max_leverage: int


@noun
class ListedPerp:
    """One perpetual of the universe. Its asset id is its place in the list."""

    name: str
    size_decimals: int
    tiers: tuple[MarginTier, ...]
    start_price: Decimal
    margin_table: int
    only_isolated: bool = False

    @property
    def max_leverage(self) -> int:
        """The leverage of the first tier."""
        return self.tiers[0].max_leverage

    @property
    def price_step(self) -> Decimal:
        """The smallest difference of two prices by decimals; significant figures may demand a larger one."""
        return POWERS[self.size_decimals - MOST_DECIMALS]

    def valid_price(self, price: Decimal) -> bool:
        """Whether a limit price is on the grid: an integer, or at most 5 significant figures and 6 - szDecimals decimals."""
        if not price.is_finite() or price <= 0:
            return False
        sign, digits, exponent = price.normalize().as_tuple()
        del sign
        if not isinstance(exponent, int) or exponent >= 0:
            return True
        return len(digits) <= SIGNIFICANT and -exponent <= MOST_DECIMALS - self.size_decimals

    def valid_size(self, size: Decimal) -> bool:
        """Whether a size has at most szDecimals decimals."""
        return size.is_finite() and size > 0 and size == round(size, self.size_decimals)

    def on_grid(self, price: Decimal) -> Decimal:
        """The nearest valid price; what the exchange itself quotes."""
        if price <= 0:
            return price
        exponent = max(min(price.adjusted() - SIGNIFICANT + 1, 0), self.size_decimals - MOST_DECIMALS)
        step = POWERS[exponent]
        return max(step, price.quantize(step, ROUND_HALF_EVEN))

    def size_down(self, size: Decimal) -> Decimal:
        """A size rounded down to the lot."""
        return size.quantize(POWERS[-self.size_decimals], ROUND_DOWN)

    def tier(self, notional: Decimal) -> MarginTier:
        """The tier of a notional."""
        return next(tier for tier in reversed(self.tiers) if notional >= tier.lower_bound)

    def maintenance(self, notional: Decimal) -> Decimal:
        """Maintenance margin: notional x rate - deduction, continuous over the tiers."""
        amount, rate = Decimal(0), Decimal(0)
        for tier in self.tiers:
            if notional < tier.lower_bound:
                break
            next_rate = 1 / Decimal(2 * tier.max_leverage)
            amount, rate = amount + tier.lower_bound * (next_rate - rate), next_rate
        return notional * rate - amount


def _perp(
    name: str, size_decimals: int, price: str, table: int, *tiers: tuple[int, int], only_isolated: bool = False
) -> ListedPerp:
    steps = tuple(MarginTier(Decimal(bound), leverage) for bound, leverage in tiers or ((0, table),))
    return ListedPerp(name, size_decimals, steps, Decimal(price), table, only_isolated)


MILLION = 1_000_000
LISTED = (
    _perp("BTC", 5, "68000", 56, (0, 40), (150 * MILLION, 20)),
    _perp("ETH", 4, "2500", 55, (0, 25), (100 * MILLION, 15)),
    _perp("SOL", 2, "150", 54, (0, 20), (70 * MILLION, 10)),
    _perp("XRP", 0, "0.55", 53, (0, 20), (40 * MILLION, 10)),
    _perp("DOGE", 0, "0.15", 52, (0, 10), (20 * MILLION, 5)),
    _perp("ARB", 1, "0.8", 51, (0, 10), (3 * MILLION, 5)),
    _perp("kPEPE", 0, "0.01", 10),
    _perp("TST", 0, "0.05", 3, only_isolated=True),
)
"""A part of the exchange's own list, with its tiers."""


def listed(names: str) -> tuple[ListedPerp, ...]:
    """The perpetuals of a list of names such as `BTC,ETH`."""
    every = {perp.name: perp for perp in LISTED}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if missing := [name for name in wanted if name not in every]:
        raise UserError(f"the fake exchange does not list {', '.join(missing)}", f"some of {', '.join(every)}")
    return tuple(every[name] for name in wanted)
