"""The predict world as one frozen value: oracles, the vault as counterparty of every trade, and accounts.

All numbers are integers in the protocol's units: prices, probabilities and strikes in billionths (`FLOAT`), money and
contracts in millionths (`QUOTE`; one contract pays one quote unit). `world` and `trade` change it; `quote` computes
prices.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import field, replace
from decimal import Decimal
from typing import Literal

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.venues.predict.surface import synthetic
from pitboss.venues.predict.svi import FLOAT, Generation, Svi

QUOTE = 1_000_000
"""One unit of the quote asset, and one contract."""

Side = Literal["YES", "NO"]
"""YES is the protocol's UP: it wins if the settlement is strictly above the strike. A tie goes to NO."""

ContractSide = Literal["YES", "NO", "RANGE"]
SIDES: tuple[Side, ...] = ("YES", "NO")
Status = Literal["inactive", "active", "pending", "settled"]
TICK_UNIT = 10_000
ACCOUNT = "agent"
"""Account id of a run with one agent."""


@noun
class Grid:
    """The strikes of an oracle: `ticks` steps of `tick`, starting at `min_strike`."""

    min_strike: int = 50_000 * FLOAT
    tick: int = FLOAT
    ticks: int = 100_000

    @property
    def max_strike(self) -> int:
        """Return the highest strike."""
        return self.min_strike + self.tick * self.ticks

    def holds(self, strike: int) -> bool:
        """Whether a strike is on the grid."""
        return self.min_strike <= strike <= self.max_strike and (strike - self.min_strike) % self.tick == 0

    def spans(self, price: int) -> bool:
        """Whether a price lies among the strikes."""
        return self.min_strike <= price <= self.max_strike

    def sound(self) -> bool:
        """Whether the protocol would register this grid."""
        return (
            self.tick > 0
            and self.tick % TICK_UNIT == 0
            and self.min_strike > 0
            and self.min_strike % self.tick == 0
            and self.ticks > 0
        )


@noun
class MarketTerms:
    """Settings of the operator: pricing generation, spreads, ask bounds, the vault's exposure cap, freshness."""

    generation: Generation = "v1"
    base_spread: int = 20_000_000
    min_spread: int = 5_000_000
    utilisation_multiplier: int = 2_000_000_000
    min_ask: int = 10_000_000
    max_ask: int = 990_000_000
    max_exposure: int = 800_000_000
    """Maximum liability after a mint, as a share of the vault's balance."""
    freshness_ms: int = 30_000
    curve_points: int = 50
    paused: bool = False
    halted: bool = False
    """Whether pitboss itself has stopped minting, because a rule failed. No update of the operator ends that."""


@noun
class Oracle:
    """One market: an underlying and an expiry, with the newest price and surface pushed to it."""

    id: str
    underlying: str
    expiry_at: Instant
    grid: Grid = Grid()
    active: bool = False
    spot: int = 0
    forward: int = 0
    priced_at: Instant | None = None
    svi: Svi | None = None
    surfaced_at: Instant | None = None
    settlement: int | None = None
    settled_at: Instant | None = None
    ask_bounds: tuple[int, ...] | None = None
    """An override (lowest, highest) that can only tighten the general bounds."""
    fed: bool = False
    """Whether its price is that of its underlying's feed; read such an oracle through `oracle_of`."""


@noun
class Feed:
    """One price shared by all fed markets of an underlying, so that a tick without events allocates one value.

    With a `volatility` their surfaces are flat, computed from it and the time left. Until `quiet_until` no market of
    the feed settles and none is due to be listed.
    """

    spot: int
    forward: int
    at: Instant
    volatility: float | None
    quiet_until: Instant


def status(oracle: Oracle, now: Instant) -> Status:
    """Return the status of an oracle at an instant."""
    if oracle.settlement is not None:
        return "settled"
    if now >= oracle.expiry_at:
        return "pending"
    return "active" if oracle.active else "inactive"


@noun
class StrikeLevel:
    """Open contracts of all accounts at one strike."""

    strike: int
    up: int = 0
    down: int = 0


@noun
class StrikeBook:
    """The vault's obligations for one oracle: levels by strike, and their totals.

    A range is an UP at its lower strike plus a DOWN at its higher one, minus the one unit that always pays (`ranges`).
    `lowest` and `highest` are the extreme strikes ever minted; the curve of `mtm` spans them.
    """

    levels: tuple[StrikeLevel, ...] = ()
    ranges: int = 0
    lowest: int = 0
    highest: int = 0
    mtm: int = 0
    max_payout: int = 0


NO_BOOK = StrikeBook()


def changed(levels: tuple[StrikeLevel, ...], strike: int, up: int, down: int) -> tuple[StrikeLevel, ...]:
    """Return the levels after adding or removing contracts at one strike; empty levels are dropped."""
    index = bisect_left(levels, strike, key=_strike)
    existing = levels[index] if index < len(levels) and levels[index].strike == strike else None
    level = (
        StrikeLevel(strike, up, down)
        if existing is None
        else StrikeLevel(strike, existing.up + up, existing.down + down)
    )
    after = levels[index + (existing is not None) :]
    return (*levels[:index], *((level,) if level.up or level.down else ()), *after)


def _strike(level: StrikeLevel) -> int:
    return level.strike


def worst_payout(levels: tuple[StrikeLevel, ...], ranges: int) -> int:
    """Return the maximum payout over all settlements: exact, in one pass over the strikes."""
    down = 0
    swing = most = 0
    for level in levels:
        down += level.down
        swing += level.up - level.down
        most = max(most, swing)
    return down + most - ranges


def payout_at(levels: tuple[StrikeLevel, ...], ranges: int, settlement: int) -> int:
    """Return the vault's payout at one settlement."""
    return sum(level.up if settlement > level.strike else level.down for level in levels) - ranges


@noun
class Vault:
    """The counterparty of every contract. The totals are the sums over its books, updated with each book."""

    balance: int
    books: Mapping[str, StrikeBook] = field(default_factory=dict[str, StrikeBook])
    total_mtm: int = 0
    total_max_payout: int = 0


@noun
class Contract:
    """Pays one if lower < settlement ≤ higher; None is no bound. YES has only a lower strike, NO only a higher one."""

    market_id: str
    lower: int | None
    higher: int | None

    @property
    def side(self) -> ContractSide:
        """Return the side: YES, NO or a range."""
        if self.higher is None:
            return "YES"
        return "NO" if self.lower is None else "RANGE"

    @property
    def strikes(self) -> tuple[int, ...]:
        """Return its one or two strikes."""
        return tuple(strike for strike in (self.lower, self.higher) if strike is not None)

    @property
    def key(self) -> str:
        """Return the key of the contract in an account and among the shown asks."""
        if self.higher is None:
            return f"{self.market_id}|YES|{self.lower}" if self.lower is not None else f"{self.market_id}|YES"
        if self.lower is None:
            return f"{self.market_id}|NO|{self.higher}"
        return f"{self.market_id}|RANGE|{self.lower}|{self.higher}"

    def wins(self, settlement: int) -> bool:
        """Whether it pays: ties go to NO, and to the lower of two adjacent ranges."""
        return (self.lower is None or settlement > self.lower) and (self.higher is None or settlement <= self.higher)


def binary(market_id: str, side: Side, strike: int) -> Contract:
    """Return a YES or NO contract at a strike."""
    return Contract(market_id, strike, None) if side == "YES" else Contract(market_id, None, strike)


@noun
class ContractPosition:
    """Open contracts of one kind in one account; `cost` is their purchase cost."""

    contract: Contract
    expiry_at: Instant
    quantity: int
    cost: int
    opened_at: Instant


@noun
class Account:
    """The cash and contracts of one owner (a PredictManager), keyed by `Contract.key`."""

    cash: int = 0
    positions: Mapping[str, ContractPosition] = field(default_factory=dict[str, ContractPosition])


NO_ACCOUNT = Account()


@noun
class PredictWorld:
    """The complete state of the venue. The total money of vault and accounts is constant."""

    vault: Vault
    accounts: Mapping[str, Account] = field(default_factory=dict[str, Account])
    oracles: Mapping[str, Oracle] = field(default_factory=dict[str, Oracle])
    terms: MarketTerms = MarketTerms()
    next_trade: int = 1
    feeds: Mapping[str, Feed] = field(default_factory=dict[str, Feed])


def open_world(vault: int, cash: int, terms: MarketTerms | None = None, account: str = ACCOUNT) -> PredictWorld:
    """Return a fresh venue with one account."""
    return PredictWorld(Vault(vault), {account: Account(cash)}, {}, terms or MarketTerms())


def oracle_of(world: PredictWorld, name: str) -> Oracle | None:
    """Return a market with its newest price and surface."""
    oracle = world.oracles.get(name)
    return oracle if oracle is None else _fed(world, oracle)


def _fed(world: PredictWorld, oracle: Oracle) -> Oracle:
    feed = world.feeds.get(oracle.underlying) if oracle.fed and oracle.settlement is None else None
    if feed is None or feed.at >= oracle.expiry_at:
        return oracle
    # Cached by identity: a tick needs each market several times, and both inputs are frozen.
    cached = _FED.get(id(oracle))
    if cached is not None and cached[0] is oracle and cached[1] is feed:
        return cached[2]
    fed = _with_feed(oracle, feed)
    if len(_FED) >= _MOST_FED:
        _FED.clear()
    _FED[id(oracle)] = oracle, feed, fed
    return fed


_FED: dict[int, tuple[Oracle, Feed, Oracle]] = {}
_MOST_FED = 256


def _with_feed(oracle: Oracle, feed: Feed) -> Oracle:
    svi, surfaced_at = oracle.svi, oracle.surfaced_at
    if feed.volatility is not None:
        svi, surfaced_at = synthetic(feed.volatility, oracle.expiry_at, feed.at), feed.at
    return Oracle(
        oracle.id,
        oracle.underlying,
        oracle.expiry_at,
        oracle.grid,
        oracle.active,
        feed.spot,
        feed.forward,
        feed.at,
        svi,
        surfaced_at,
        None,
        None,
        oracle.ask_bounds,
        True,
    )


def open_markets(
    world: PredictWorld, now: Instant, underlying: str | None = None, priced: bool = True
) -> tuple[Oracle, ...]:
    """Return the active oracles by expiry, one per (underlying, expiry): of twins the one with the freshest price.

    Without `priced`, fed markets are returned as stored, which suffices for names and expiries.
    """
    best: dict[tuple[int, str], Oracle] = {}
    for oracle in world.oracles.values():
        if (underlying is not None and oracle.underlying != underlying) or status(oracle, now) != "active":
            continue
        key = (oracle.expiry_at, oracle.underlying)
        current = best.get(key)
        if current is None or _freshness(_fed(world, oracle)) < _freshness(_fed(world, current)):
            best[key] = oracle
    markets = [best[key] for key in sorted(best)]
    return tuple(_fed(world, oracle) for oracle in markets) if priced else tuple(markets)


def fresher_twin(world: PredictWorld, oracle: Oracle, now: Instant) -> Oracle | None:
    """Return another active oracle of the same underlying and expiry that `open_markets` would prefer."""
    best = oracle
    for candidate in world.oracles.values():
        if (
            candidate.expiry_at != oracle.expiry_at
            or candidate.underlying != oracle.underlying
            or candidate.id == oracle.id
        ):
            continue
        twin = _fed(world, candidate)
        if status(twin, now) == "active" and _freshness(twin) < _freshness(best):
            best = twin
    return best if best is not oracle else None


def _freshness(oracle: Oracle) -> tuple[int, int, str]:
    """Sort key, freshest first; ties are broken by id, so that the choice is independent of any order."""
    return -(oracle.priced_at or 0), -(oracle.surfaced_at or 0), oracle.id


def with_oracle(world: PredictWorld, oracle: Oracle) -> PredictWorld:
    """Return the world with one oracle added or replaced."""
    return replace(world, oracles={**world.oracles, oracle.id: oracle})


def usd(units: int) -> Decimal:
    """Convert billionths to a plain amount: a price, a strike, a probability."""
    return Decimal(units).scaleb(-9)


def contracts(units: int) -> Decimal:
    """Convert millionths to a plain amount: money, a number of contracts."""
    return Decimal(units).scaleb(-6)
