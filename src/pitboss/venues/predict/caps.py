"""Hard limits of an agent on this venue, their usage, and what remains. Used by the rules and the prompt."""

from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal
from math import ceil

from pitboss.core.instant import SECOND_MS, Instant, day_of
from pitboss.core.noun import noun
from pitboss.core.verdict import Margin
from pitboss.venues.predict.state import NO_ACCOUNT, QUOTE, PredictWorld, contracts
from pitboss.venues.predict.svi import FLOAT

UNIT = "dusdc"


@noun
class PredictCaps:
    """Limits of one skill. Amounts are in millionths of the quote unit, `min_edge` in billionths."""

    max_spend_per_tick: int = 2 * QUOTE
    max_spend_per_day: int = 50 * QUOTE
    max_total_spend: int = 200 * QUOTE
    max_exposure_per_expiry: int = 50 * QUOTE
    """Limit on the cost of open contracts per expiry."""
    max_slippage_bps: int = 200
    min_edge: int | None = None
    min_ms_to_expiry: int = 60 * SECOND_MS
    max_price_age_ms: int = 30 * SECOND_MS
    underlying: str | None = None
    """The only underlying that may be traded; None allows any."""


def make_caps(
    max_spend_per_tick: Decimal = Decimal(2),
    max_spend_per_day: Decimal = Decimal(50),
    max_total_spend: Decimal = Decimal(200),
    max_exposure_per_expiry: Decimal = Decimal(50),
    max_slippage_bps: int = 200,
    min_edge: Decimal | None = None,
    min_seconds_to_expiry: Decimal = Decimal(60),
    max_price_age_s: Decimal = Decimal(30),
    underlying: str | None = None,
) -> PredictCaps:
    """Build the limits from a skill's values in plain units.

    Values finer than the venue's units are rounded to the stricter side.
    """
    return PredictCaps(
        int(max_spend_per_tick * QUOTE),
        int(max_spend_per_day * QUOTE),
        int(max_total_spend * QUOTE),
        int(max_exposure_per_expiry * QUOTE),
        max_slippage_bps,
        None if min_edge is None else ceil(min_edge * FLOAT),
        ceil(min_seconds_to_expiry * SECOND_MS),
        int(max_price_age_s * SECOND_MS),
        underlying,
    )


@noun
class Spent:
    """Usage of the limits, and the asks shown to the model. Amounts are costs of executed mints.

    `today` counts for the UTC day `day`, `tick` for the tick at `tick_at`. `shown` maps `Contract.key` to the
    ask shown to the model at the tick that is judged; a stored desk has none, except those of earlier versions.
    """

    today: int = 0
    day: int = 0
    total: int = 0
    tick: int = 0
    tick_at: Instant = 0
    shown: Mapping[str, int] = field(default_factory=dict[str, int])

    def today_at(self, now: Instant) -> int:
        """Amount spent on the UTC day of an instant. For a day before `day` (a clock set back) the total: an upper bound."""
        day = day_of(now)
        return self.today if day == self.day else 0 if day > self.day else self.total

    def tick_spend(self, tick_at: Instant) -> int:
        """Amount spent at a tick."""
        return self.tick if tick_at == self.tick_at else 0

    def after(self, cost: int, tick_at: Instant, now: Instant) -> "Spent":
        """Return a copy with one more executed mint. The spend of an older tick than `self.tick_at` is not counted by tick."""
        tick = self.tick if tick_at < self.tick_at else self.tick_spend(tick_at) + cost
        return Spent(
            (0 if day_of(now) > self.day else self.today) + cost,
            max(day_of(now), self.day),
            self.total + cost,
            tick,
            max(tick_at, self.tick_at),
            self.shown,
        )


NOTHING_SPENT = Spent()


def exposure(world: PredictWorld, account_id: str, expiry_at: Instant) -> int:
    """Cost of the open contracts of one expiry, including those of twin oracles and ranges."""
    positions = world.accounts.get(account_id, NO_ACCOUNT).positions
    return sum(position.cost for position in positions.values() if position.expiry_at == expiry_at)


def amount_margin(code: str, limit: int, used: int) -> Margin:
    """Build a margin in quote units."""
    return Margin(code, contracts(limit), contracts(used), contracts(limit - used), UNIT)


def seconds(ms: int) -> Decimal:
    """Convert milliseconds to exact seconds."""
    return Decimal(ms).scaleb(-3)


def room(caps: PredictCaps, world: PredictWorld, spent: Spent, account_id: str, now: Instant) -> list[Margin]:
    """Return every amount cap with its limit, current usage and remainder."""
    lines = [
        amount_margin("B9_SPEND_TICK", caps.max_spend_per_tick, spent.tick_spend(now)),
        amount_margin("B10_SPEND_DAY", caps.max_spend_per_day, spent.today_at(now)),
        amount_margin("B11_SPEND_TOTAL", caps.max_total_spend, spent.total),
    ]
    account = world.accounts.get(account_id, NO_ACCOUNT)
    for expiry_at in sorted({position.expiry_at for position in account.positions.values()}):
        used = exposure(world, account_id, expiry_at)
        lines.append(amount_margin(f"B12_EXPOSURE {expiry_at}", caps.max_exposure_per_expiry, used))
    lines.append(amount_margin("B13_BALANCE", account.cash, 0))
    return lines
