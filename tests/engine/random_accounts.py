"""Random accounts, caps and proposals for the properties of the guard: sane ones, broken ones, hostile ones."""

from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

from hypothesis import strategies as st

from pitboss.core.instant import HOUR_MS, MINUTE_MS, parse_instant
from pitboss.core.money import exact, round_down
from pitboss.core.state import State
from pitboss.venues.perp.assets import SHIPPED
from pitboss.venues.perp.caps import PerpCaps
from pitboss.venues.perp.intents import ACTIONS, DECISION
from pitboss.venues.perp.state import PerpWorld, Position, TradingTerms, WorkingOrder, equity

NOW = parse_instant("2025-06-03T12:00:00Z")
DAY = NOW // 86_400_000
SYMBOLS = ("BTC", "DOGE", "ETH")
PRICES = {"BTC": Decimal(100_000), "DOGE": Decimal("0.2"), "ETH": Decimal(2_500)}
TERMS = TradingTerms(
    {symbol: SHIPPED[symbol] for symbol in SYMBOLS},
    daily_loss_halt_pct=Decimal(5),
    drawdown_halt_pct=Decimal(15),
)
STRANGE = [Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("-Infinity")]
HALTS = ("daily_loss", "drawdown", "operator", "invariant")


def size_of_usd(symbol: str, usd: int, price: Decimal) -> Decimal:
    """So many dollars in whole lots, at least one."""
    lot = SHIPPED[symbol].lot
    return max(round_down(Decimal(usd) / price, lot), lot)


SEEDS = st.integers(0, 2**32 - 1)
"""Accounts and caps come from one draw each: drawing every number apart costs ten times as much, and a failure prints
the whole account anyway. Proposals are drawn piece by piece and shrink."""


def random_caps(rng: Random) -> PerpCaps:
    """Caps of a skill, from tight to loose."""
    return PerpCaps(
        max_position_pct=Decimal(rng.choice([1, 25, 100, 500, 5000])),
        max_total_exposure_pct=Decimal(rng.choice([5, 100, 1000, 9000])),
        max_leverage=Decimal(rng.choice([1, 3, 10, 50])),
        min_order_usd=Decimal(rng.choice([5, 10, 50])),
        max_order_usd=rng.choice([None, None, Decimal(200), Decimal("2000.50")]),
        max_orders_per_hour=rng.choice([0, 1, 3, 12]),
        price_band_pct=Decimal(rng.choice([0, 1, 5])),
        max_data_age_ms=rng.choice([0, 5, 30]) * MINUTE_MS,
        symbols=rng.choice([SYMBOLS, SYMBOLS, ("BTC",), ("BTC", "ETH", "XMR")]),
        allowed_symbols=rng.choice([(), (), (), ("BTC",), ("BTC", "DOGE")]),
    )


def caps() -> st.SearchStrategy[PerpCaps]:
    return SEEDS.map(lambda seed: random_caps(Random(seed)))


LOOSE = PerpCaps(
    max_position_pct=Decimal(5000),
    max_total_exposure_pct=Decimal(9000),
    max_leverage=Decimal(50),
    max_orders_per_hour=100,
    symbols=SYMBOLS,
)


def random_position(rng: Random, symbol: str) -> Position:
    price = PRICES[symbol] * rng.randint(900, 1100) / 1000
    side = rng.choice([1, -1])
    size = size_of_usd(symbol, rng.randint(1, 30_000), price) * side
    stop = rng.choice([None, price * (100 - 5 * side) / 100])
    goal = rng.choice([None, price * (100 + 5 * side) / 100])
    return Position(symbol, size, size * price, NOW - HOUR_MS, stop, goal, "held for a reason")


def random_order(rng: Random, number: int) -> WorkingOrder:
    symbol = rng.choice(SYMBOLS)
    kind = rng.choice(["limit", "limit", "market", "close", "reduce"])
    limit = PRICES[symbol] * rng.randint(900, 1100) / 1000 if kind == "limit" else None
    size = size_of_usd(symbol, rng.randint(10, 5_000), PRICES[symbol])
    return WorkingOrder(f"o{number}", kind, symbol, rng.choice([1, -1]), size, NOW - MINUTE_MS, NOW - MINUTE_MS, limit)


@exact
def random_world(rng: Random, calm: bool) -> PerpWorld:
    held = rng.sample(SYMBOLS, rng.choice([0, 1, 1, 2]))
    working = rng.choice([0, 0, 1, 2])
    missing = "" if calm else rng.choice(["", "", *SYMBOLS])
    marks = {
        symbol: PRICES[symbol] * rng.randint(950, 1050) / 1000
        for symbol in SYMBOLS
        if symbol in held or symbol != missing
    }
    cash = Decimal(rng.randint(5_000, 50_000) if calm else rng.randint(-2_000, 20_000))
    world = PerpWorld(
        cash=cash,
        initial=Decimal(10_000),
        peak=cash,
        day=DAY,
        day_reference=cash,
        last_equity=cash,
        positions={symbol: random_position(rng, symbol) for symbol in held},
        orders=tuple(random_order(rng, number) for number in range(1, working + 1)),
        leverage={symbol: rng.choice([1, 2, 10]) for symbol in held},
        marks=marks,
        marked_at={symbol: NOW - (0 if calm else rng.choice([0, 0, 0, 5, 6, 60])) * MINUTE_MS for symbol in marks},
        halts=() if calm else rng.choice([(), (), (), (), ("drawdown",), ("daily_loss", "operator")]),
        next_order=working + 1,
    )
    value = equity(world)
    lost = Decimal(rng.randint(0, 200 if calm else 2_000))
    return replace(world, peak=value + lost, day_reference=value + lost / 2, last_equity=value)


def worlds(calm: bool = False) -> st.SearchStrategy[PerpWorld]:
    """Sane accounts: every number finite, a mark for everything held. `calm`: positive cash, no halt, fresh marks."""
    return SEEDS.map(lambda seed: random_world(Random(seed), calm))


def broken_worlds() -> st.SearchStrategy[PerpWorld]:
    """Accounts in which one number is missing or is not a number."""
    return SEEDS.map(lambda seed: broken_world(Random(seed)))


def broken_world(rng: Random) -> PerpWorld:
    world = random_world(rng, False)
    bad = rng.choice(STRANGE)
    places = ["cash", "peak", "day_reference", "last_equity", "marks"]
    if world.positions:
        places += ["size", "cost", "stop", "unmarked", "unlisted"]
    if world.orders:
        places += ["order", "limit"]
    place = rng.choice(places)
    if place in ("cash", "peak", "day_reference", "last_equity"):
        return replace(world, **{place: bad})
    if place == "marks":
        return replace(world, marks={**world.marks, rng.choice(SYMBOLS): bad})
    if place in ("order", "limit"):
        first = replace(world.orders[0], **{"size" if place == "order" else "limit": bad})
        return replace(world, orders=(first, *world.orders[1:]))
    symbol = rng.choice(sorted(world.positions))
    held = world.positions[symbol]
    if place == "unmarked":
        return replace(world, marks={name: mark for name, mark in world.marks.items() if name != symbol})
    if place == "unlisted":
        gone = replace(held, symbol="GONE")
        return replace(world, positions={**world.positions, "GONE": gone}, marks={**world.marks, "GONE": bad})
    return replace(world, positions={**world.positions, symbol: replace(held, **{place: bad})})


def states(accounts: st.SearchStrategy[PerpWorld]) -> st.SearchStrategy[State]:
    """A state around an account, with some opens accepted in the last two hours."""
    opens = st.lists(st.integers(NOW - 2 * HOUR_MS, NOW), max_size=4).map(lambda at: tuple(sorted(at)))
    return st.builds(State, world=accounts, accepted_opens=opens)


NUMBERS = st.one_of(
    st.sampled_from(
        [
            Decimal("1e308"),
            Decimal("1e309"),
            Decimal("-1e309"),
            Decimal("1e2000000"),
            Decimal("1e-999999"),
            Decimal("-0"),
            Decimal("1e-30"),
            Decimal("NaN"),
            Decimal("Infinity"),
            float("nan"),
            float("-inf"),
            1e308,
            -1,
            0,
            10**19,
            -(10**30),
            10**4000,
            True,
            False,
            "5",
            "٣",
            "１００",
            "1e3",
            "NaN",
            "",
            None,
            [],
            {},
        ]
    ),
    st.integers(-10, 10**6),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.floats(),
)
WORDS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["BTC", "ETH", "XMR", "btc", "\ud800", "o1", "limit", "no_op", "close", "\x00"]),
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(WORDS, inner, max_size=4)),
    max_leaves=12,
)


def nested(depth: int) -> Any:
    """A list in a list in a list …"""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@st.composite
def almost_proposals(draw: st.DrawFn) -> dict[Any, Any]:
    """Nearly a proposal: the right keys, any values."""
    chosen = draw(st.lists(st.sampled_from([*DECISION.keys, "unknown"]), unique=True, max_size=8))
    proposal: dict[Any, Any] = {
        "action": draw(st.sampled_from([*ACTIONS, "OPEN_LONG"])),
        "symbol": "BTC",
        "reason": "x",
    }
    for key in chosen:
        proposal[key] = draw(st.one_of(NUMBERS, WORDS, JSON))
    return proposal


ANYTHING = st.one_of(almost_proposals(), JSON)


@st.composite
@exact
def open_proposals(draw: st.DrawFn, wild: bool = True) -> dict[str, Any]:
    """A well-formed open near the caps; `wild` adds odd leverage, prices and symbols."""
    symbol = draw(st.sampled_from([*SYMBOLS, *(("XMR",) if wild else ())]))
    side = draw(st.sampled_from([1, -1]))
    price = PRICES.get(symbol, Decimal(50))
    proposal: dict[str, Any] = {
        "action": "open_long" if side > 0 else "open_short",
        "symbol": symbol,
        "reason": "near the caps",
        "size_usd": draw(
            st.one_of(st.integers(8, 12_000), st.integers(1_000, 300_000).map(lambda n: Decimal(n) / 100))
        ),
    }
    if draw(st.booleans()):
        whole = [1, 2, 3, 10]
        proposal["leverage"] = draw(st.sampled_from([*whole, 0, -1, 11, 51, Decimal("2.5")] if wild else whole))
    if draw(st.booleans()):
        proposal["order_type"] = "limit"
        proposal["limit_price"] = price * draw(st.integers(930, 1070)) / Decimal("1000.7")
    if draw(st.booleans()):
        proposal["stop_loss"] = price * (100 - side * draw(st.integers(-2 if wild else 6, 20))) / Decimal("100.01")
    if draw(st.booleans()):
        proposal["take_profit"] = price * (100 + side * draw(st.integers(-2 if wild else 6, 20))) / Decimal("99.99")
    return proposal


@st.composite
def exit_proposals(draw: st.DrawFn, symbol: str) -> dict[str, Any]:
    """A close or a reduce of a symbol."""
    if draw(st.booleans()):
        return {"action": "close", "symbol": symbol, "reason": "out"}
    if draw(st.booleans()):
        pct = draw(st.sampled_from([Decimal("0.0001"), 1, 50, Decimal("99.9"), 100]))
        return {"action": "reduce", "symbol": symbol, "reason": "less", "reduce_pct": pct}
    usd = draw(st.sampled_from([Decimal("0.01"), 10, 500, 10**9, Decimal("1e300")]))
    return {"action": "reduce", "symbol": symbol, "reason": "less", "size_usd": usd}
