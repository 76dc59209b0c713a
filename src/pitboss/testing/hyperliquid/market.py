"""`CoinMarket`: prices, book, candles and funding premium of one coin. It knows no accounts.

The book is made anew at every step of the price: `LEVELS` levels a side around the middle price, with seeded sizes. What takers
consume is gone until the next step.
"""

from collections import deque
from decimal import Decimal
from itertools import takewhile

from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS, Instant
from pitboss.core.money import ZERO
from pitboss.testing.hyperliquid.price_path import PricePath
from pitboss.testing.hyperliquid.rules import VenueRules
from pitboss.testing.hyperliquid.seeded import GOLDEN, MASK, SeededNumbers, mixed
from pitboss.testing.hyperliquid.universe import POWERS, ListedPerp

LEVELS = 20
MOST_MINUTES = 31 * 24 * 60
MOST_FUNDING = 5_000
DEPTH_USD = 50_000
"""Notional of one level, on average."""
INTEREST = Decimal("0.0001")
CLAMP = Decimal("0.0005")
FUNDING_CAP = Decimal("0.04")
EIGHT = Decimal(8)
RATE_STEP = Decimal("0.0000000001")


class BookLevel:
    """A price, and the size that is left there."""

    __slots__ = ("count", "price", "size")

    def __init__(self, price: Decimal, size: Decimal, count: int) -> None:
        self.price = price
        self.size = size
        self.count = count


class BookSide:
    """Levels from the best price outwards, made when they are looked at; their sizes follow from the key. None at a price of zero."""

    def __init__(self, perp: ListedPerp, mid: Decimal, half: Decimal, is_crossed: bool, key: int) -> None:
        self._perp = perp
        self._first = perp.on_grid(mid - half if is_crossed else mid + half)
        self._step = max(abs(self._first - mid), perp.price_step).copy_sign(half)
        self._key = key
        self._made: list[BookLevel] = []
        self._count = 0 if mid > 0 else LEVELS

    def top(self) -> BookLevel | None:
        """The best level that has something left."""
        for level in self._made:
            if level.size:
                return level
        while self._count < LEVELS:
            made = len(self._made)
            self._make_one()
            if len(self._made) > made:
                return self._made[-1]
        return None

    def levels(self) -> list[BookLevel]:
        """All levels, those included that are consumed."""
        while self._count < LEVELS:
            self._make_one()
        return self._made

    def _make_one(self) -> None:
        price = self._perp.on_grid(self._first + self._count * self._step)
        self._count += 1
        if price <= 0 or (self._made and price == self._made[-1].price):
            return
        chance = mixed((self._key * GOLDEN + self._count) & MASK)
        size = self._perp.size_down(DEPTH_USD // 100 * (50 + chance % 101) / price)
        least = POWERS[-self._perp.size_decimals]
        self._made.append(BookLevel(price, max(size, least), 1 + (chance >> 32) % 4))


class MinuteCandle:
    """One minute of middle prices; longer candles are made of these."""

    __slots__ = ("close", "high", "low", "open", "opened_at", "trades", "volume")

    def __init__(self, opened_at: Instant, price: Decimal) -> None:
        self.opened_at = opened_at
        self.open = self.high = self.low = self.close = price
        self.volume = ZERO
        self.trades = 0


class CoinMarket:
    """The market of one coin. Faults set the offset, which moves its real oracle, and the factor of the prices that it reports."""

    def __init__(self, perp: ListedPerp, path: PricePath, seed: int, at: Instant, rules: VenueRules) -> None:
        self.perp = perp
        self.path = path
        self.mid = self.mark = self.oracle = perp.start_price
        self.day_start = perp.start_price
        self.volume_base = self.volume_notional = ZERO
        self.candles: deque[MinuteCandle] = deque(maxlen=MOST_MINUTES)
        self.funding_rows: deque[tuple[Instant, Decimal, Decimal]] = deque(maxlen=MOST_FUNDING)
        self.delisted = False
        self.is_halted = False
        self.is_crossed = False
        self.is_frozen = False
        self.oracle_offset = ZERO
        self.reported_factor = Decimal(1)
        self.forced_price: Decimal | None = None
        self.forced_rate: Decimal | None = None
        self._spread = Decimal(rules.spread_bp) / 20_000
        self._premiums = ZERO
        self._samples = 0
        self._day = (at - rules.history_ms) // DAY_MS
        self._key = SeededNumbers(seed, f"book {perp.name}").bits()
        self._steps = 0
        self._sides: tuple[BookSide, BookSide] | None = None
        self.warm_up(at - rules.history_ms, at)
        self.step(at)

    def step(self, at: Instant) -> None:
        """Take the price of an instant: middle, mark, oracle, candle, and a sample of the premium."""
        if self.delisted:
            return
        price = self.path.price(at)
        if not self.is_frozen:
            price = price if self.forced_price is None else self.forced_price
            self.mid = self.perp.on_grid(price)
            self.oracle = self.perp.on_grid(price * (1 + self.oracle_offset)) if self.oracle_offset else self.mid
            self.mark = self.mid
            self._sides = None
        if at // DAY_MS != self._day:
            self._day, self.day_start = at // DAY_MS, self.mid
            self.volume_base = self.volume_notional = ZERO
        minute = at - at % MINUTE_MS
        if not self.candles or self.candles[-1].opened_at < minute:
            self.candles.append(MinuteCandle(minute, self.mid))
        candle = self.candles[-1]
        candle.high, candle.low, candle.close = max(candle.high, self.mid), min(candle.low, self.mid), self.mid
        candle.volume += self.perp.size_down(abs(DEPTH_USD / self.mid)) if self.mid else ZERO
        candle.trades += 1
        self._premiums += self.premium()
        self._samples += 1

    def warm_up(self, start: Instant, end: Instant) -> None:
        """Live through the time before the exchange opened, minute by minute: candles and funding that clients read back."""
        for at in range(start - start % MINUTE_MS, end, MINUTE_MS):
            self.step(at)
            if at % HOUR_MS == 0:
                self.close_hour(at)

    def side(self, is_ask: bool) -> BookSide:
        """One side of the book of this step."""
        sides = self._sides
        if sides is None:
            self._steps += 1
            half = max(self.mid * self._spread, self.perp.price_step)
            sides = self._sides = (
                BookSide(self.perp, self.mid, -half, self.is_crossed, self._key + 2 * self._steps),
                BookSide(self.perp, self.mid, half, self.is_crossed, self._key + 2 * self._steps + 1),
            )
        return sides[1 if is_ask else 0]

    def best(self) -> tuple[Decimal | None, Decimal | None]:
        """The best bid and the best ask that are left."""
        bid, ask = self.side(is_ask=False).top(), self.side(is_ask=True).top()
        return (bid.price if bid else None, ask.price if ask else None)

    def add_volume(self, size: Decimal, price: Decimal) -> None:
        """Count a trade."""
        self.volume_base += size
        self.volume_notional += size * price

    def premium(self) -> Decimal:
        """How far the middle price is from the oracle, as a share of it, outside of the spread."""
        if self.oracle <= 0 or self.mid <= 0:
            return ZERO
        half = self.mid * self._spread
        return (max(self.mid - half - self.oracle, ZERO) - max(self.oracle - self.mid - half, ZERO)) / self.oracle

    def funding_rate(self) -> Decimal:
        """The rate of this hour as it stands: F(8h) / 8 of the average premium."""
        if self.forced_rate is not None:
            return self.forced_rate
        average = self._premiums / self._samples if self._samples else ZERO
        eight_hours = average + min(max(INTEREST - average, -CLAMP), CLAMP)
        return min(max(eight_hours / EIGHT, -FUNDING_CAP), FUNDING_CAP).quantize(RATE_STEP)

    def close_hour(self, at: Instant) -> tuple[Decimal, Decimal]:
        """End an hour: the rate that is paid, and a new average."""
        rate = self.funding_rate()
        average = (self._premiums / self._samples if self._samples else ZERO).quantize(RATE_STEP)
        self.funding_rows.append((at - at % HOUR_MS, rate, average))
        self._premiums, self._samples = ZERO, 0
        return rate, average

    def aggregate(self, interval: int, start: Instant, end: Instant) -> list[MinuteCandle]:
        """Candles of an interval, from the one that contains `start` on."""
        first = start - start % interval
        minutes = list(takewhile(lambda minute: minute.opened_at >= first, reversed(self.candles)))
        merged: list[MinuteCandle] = []
        for minute in reversed(minutes):
            opened = minute.opened_at - minute.opened_at % interval
            if opened > end:
                break
            if not merged or merged[-1].opened_at != opened:
                merged.append(MinuteCandle(opened, minute.open))
            candle = merged[-1]
            candle.high, candle.low = max(candle.high, minute.high), min(candle.low, minute.low)
            candle.close = minute.close
            candle.volume += minute.volume
            candle.trades += minute.trades
        return merged
