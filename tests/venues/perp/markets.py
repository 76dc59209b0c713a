"""Small random tapes and random orders for the properties of the paper world. Everything comes from one seed."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from random import Random

import numpy as np

from pitboss.core.asset import make_asset
from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS, parse_instant
from pitboss.core.money import exact, round_down
from pitboss.core.order_book import Level
from pitboss.venues.perp.assets import SHIPPED
from pitboss.venues.perp.state import PerpWorld, TradingTerms, open_world
from pitboss.venues.perp.tape import Tape
from pitboss.venues.perp.testing import Row, make_books, make_tape_of
from pitboss.venues.perp.world import OrderRequest, cancel, set_marks, submit

BASE = 5 * MINUTE_MS
MIDNIGHT = parse_instant("2025-06-04")
SYMBOLS = ("AAA", "BTC", "ETH")
ASSETS = {
    # low tiers, so that small accounts cross them
    "AAA": make_asset("AAA", 1, [(Decimal(0), 20), (Decimal(20_000), 10), (Decimal(80_000), 5)]),
    "BTC": SHIPPED["BTC"],
    "ETH": SHIPPED["ETH"],
}
FIRST = {"AAA": 10.0, "BTC": 100_000.0, "ETH": 2_500.0}
DIGITS = {"AAA": 3, "BTC": 1, "ETH": 2}
ORDERS = ("market", "limit", "close", "reduce")


def random_terms(rng: Random) -> TradingTerms:
    return TradingTerms(
        ASSETS,
        maker_bps=Decimal(rng.choice(["1.5", "0", "-0.2"])),
        taker_bps=Decimal(rng.choice(["4.5", "10"])),
        slippage_bps_per_million=Decimal(rng.choice(["10", "0", "700"])),
        penalty_bps=Decimal(rng.choice(["50", "0"])),
        daily_loss_halt_pct=rng.choice([None, Decimal(5), Decimal(60)]),
        drawdown_halt_pct=rng.choice([None, Decimal(15), Decimal(80)]),
    )


def random_rows(rng: Random, symbol: str, start: int, count: int, crooked: bool) -> list[Row]:
    """A walk with gaps, jumps and missing bars; `crooked` bars may open outside their own low and high."""
    price, digits = FIRST[symbol], DIGITS[symbol]
    sigma = rng.choice([0.001, 0.005, 0.02])
    rows: list[Row] = []
    away = 0
    for number in range(count):
        jump = rng.choice([-0.1, 0.1]) if rng.random() < 0.03 else 0.0
        opens = price * (1 + rng.choice([0.0, 0.0, rng.gauss(0, sigma)]))
        close = opens * (1 + jump + rng.gauss(0, sigma))
        high = max(opens, close) * (1 + rng.choice([0.0, abs(rng.gauss(0, sigma))]))
        low = min(opens, close) * (1 - rng.choice([0.0, abs(rng.gauss(0, sigma))]))
        opens, high, low, close = (round(value, digits) for value in (opens, high, low, close))
        if crooked and rng.random() < 0.1:
            opens = round(rng.choice([low * 0.97, high * 1.03]), digits)
        price = close
        away = max(0, away - 1) or (rng.randint(1, 4) if rng.random() < 0.03 else 0)
        if not away:
            rows.append((start + number * BASE, opens, high, low, close))
    return rows or [(start, price, price, price, price)]


def random_tape(rng: Random, count: int = 60, from_at: int | None = None) -> Tape:
    """Bars of one to three symbols around a midnight, with funding and now and then a mark series."""
    symbols = rng.sample(SYMBOLS, rng.choice([1, 2, 3]))
    start = MIDNIGHT - rng.randint(0, count) * BASE
    crooked = rng.random() < 0.3
    bars = {symbol: random_rows(rng, symbol, start, count, crooked) for symbol in symbols}
    hours = range(start // HOUR_MS * HOUR_MS, start + count * BASE + HOUR_MS, HOUR_MS)
    size = rng.choice([1e-5, 1e-3, 2e-2])
    funding = {
        symbol: [(hour + rng.choice([0, 48]), round(rng.gauss(0, size), 8)) for hour in hours if rng.random() < 0.9]
        for symbol in symbols
    }
    marks = None
    if rng.random() < 0.3:
        marks = {
            symbol: [(hour, round(FIRST[symbol] * rng.uniform(0.8, 1.3), 4)) for hour in hours] for symbol in symbols
        }
    return make_tape_of(bars, "5m", funding, marks, from_at)


def fresh_world(tape: Tape, cash: Decimal = Decimal(10_000)) -> PerpWorld:
    """An account before the first bar, marked at the first opens."""
    at = int(tape.open_at[0])
    marks = {}
    for symbol in tape.symbols:
        opens = [float(price) for price in tape.open[symbol] if price == price]
        marks[symbol] = Decimal(repr(opens[0])), at
    return set_marks(open_world(cash, at // DAY_MS), marks)


@exact
def random_action(rng: Random, world: PerpWorld, terms: TradingTerms, at: int) -> PerpWorld:
    """Now and then an order or a cancellation, as the engine would have sent it."""
    if world.orders and rng.random() < 0.1:
        return cancel(world, terms, rng.choice(world.orders).id, at)[0]
    symbol = rng.choice(sorted(world.marks))
    position, mark, asset = world.positions.get(symbol), world.marks[symbol], terms.assets[symbol]
    if position is not None and rng.random() < 0.4:
        kind = rng.choice(["close", "reduce"])
        part = abs(position.size) if kind == "close" else max(asset.lot, round_down(abs(position.size) / 3, asset.lot))
        return submit(world, OrderRequest(kind, symbol, -position.side, min(part, abs(position.size))), at)[0]
    if "drawdown" in world.halts or "daily_loss" in world.halts:
        return world
    working = [order.side for order in world.orders if order.opens and order.symbol == symbol]
    side = position.side if position else working[0] if working and rng.random() < 0.9 else rng.choice([1, -1])
    leverage = rng.choice([1, 3, 5, asset.max_leverage])
    usd = Decimal(rng.choice([50, 1_000, 8_000, 9_000 * leverage]))
    size = round_down(usd / mark, asset.lot)
    if size <= 0:
        return world
    request = OrderRequest("market", symbol, side, size, leverage)
    if rng.random() < 0.5:
        limit = asset.round_price(mark * (1000 - side * rng.choice([-3, 0, 1, 4, 10])) / 1000, up=side < 0)
        request = replace(request, kind="limit", limit=limit)
    if rng.random() < 0.5:
        request = replace(request, stop=mark * (1000 - side * rng.choice([2, 8, 30])) / 1000)
    if rng.random() < 0.5:
        request = replace(request, take_profit=mark * (1000 + side * rng.choice([2, 8, 30])) / 1000)
    return submit(world, request, at, rng.choice([0, 0, 0, BASE, MINUTE_MS]))[0]


def schedule(rng: Random, tape: Tape) -> list[tuple[int, int]]:
    """Bars before which something is submitted, with a seed for what it is."""
    share = rng.choice([0.05, 0.3, 0.7])
    return [(index, rng.randrange(2**32)) for index in range(len(tape)) if rng.random() < share]


Play = Callable[[PerpWorld, int, int], PerpWorld]


def run_history(seed: int, play: Play, count: int = 60, thin: bool = False) -> PerpWorld:
    """Play one random history: `play(world, start, stop)` moves the world between two submissions."""
    rng = Random(seed)
    tape, terms = random_tape(rng, count), random_terms(rng)
    if thin:
        terms = thin_terms(seed, terms)
    world, index = fresh_world(tape), 0
    for bar, choice in schedule(rng, tape):
        world = play(world, index, bar)
        index = bar
        world = random_action(Random(choice), world, terms, int(tape.open_at[bar]))
    return play(world, index, len(tape))


def later_tape(seed: int, from_at: int, count: int = 60, thin: bool = False) -> Tape:
    """The same tape without the bars that open before an instant."""
    tape = random_tape(Random(seed), count, from_at)
    # books are known before the bars that they price, so those of earlier bars are still needed
    return replace(thin_tape(seed, tape), books=history_inputs(seed, count, thin=True)[0].books) if thin else tape


def history_inputs(seed: int, count: int = 60, thin: bool = False) -> tuple[Tape, TradingTerms]:
    """The tape and the terms that `run_history` uses for a seed."""
    rng = Random(seed)
    tape, terms = random_tape(rng, count), random_terms(rng)
    return (thin_tape(seed, tape), thin_terms(seed, terms)) if thin else (tape, terms)


# Thin markets: little volume, and order books -------------------------------------------------------------------------


def thin_terms(seed: int, terms: TradingTerms) -> TradingTerms:
    rng = Random(f"thin {seed}")
    share = rng.choice([None, Decimal(10), Decimal("2.5"), Decimal(100)])
    age = rng.choice([0, MINUTE_MS, BASE]) if share is None or rng.random() < 0.6 else None
    return replace(terms, max_volume_pct=share, book_max_age_ms=age)


def thin_tape(seed: int, tape: Tape) -> Tape:
    """The tape with volumes and books that depend on nothing but seed, symbol and instant."""
    volume, books = {}, {}
    for symbol in tape.symbols:
        usual = 100_000 / FIRST[symbol]
        column, rows = [], []
        for at in tape.open_at.tolist():
            rng = Random(f"{seed} {symbol} {at}")
            column.append(round(usual * rng.choice([0, 0.01, 0.1, 0.5, 1, 100]), 4))
            if rng.random() < 0.7:
                rows.append(random_book(rng, symbol, at + rng.choice([0, 0, -1, -MINUTE_MS, 1])))
        volume[symbol] = np.array(column)
        if rows:
            books[symbol] = make_books(symbol, rows)
    return replace(tape, volume=volume, books=books)


def random_book(rng: Random, symbol: str, at: int) -> tuple[int, list[Level], list[Level]]:
    """A sound book of one to four levels a side."""
    digits, usual = DIGITS[symbol], 10_000 / FIRST[symbol]
    middle = round(FIRST[symbol] * rng.uniform(0.9, 1.1) * 10**digits)
    sides: list[list[Level]] = []
    for way in (-1, 1):
        ticks, levels = middle + way, []
        for _ in range(rng.randint(1, 4)):
            size = round(max(0.1, usual * rng.choice([0.01, 0.2, 3])), 3)
            levels.append((Decimal(ticks).scaleb(-digits), Decimal(repr(size))))
            ticks += way * rng.randint(1, 30)
        sides.append(levels)
    return at, sides[0], sides[1]
