"""Random accounts, caps and proposals for the properties of the guard: sane ones, broken ones, hostile ones."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from pitboss.core.instant import HOUR_MS, MINUTE_MS, parse_instant
from pitboss.core.money import exact, round_down
from pitboss.core.state import State
from pitboss.venues.perp.assets import SHIPPED
from pitboss.venues.perp.caps import Caps
from pitboss.venues.perp.intents import ACTIONS, KEYS
from pitboss.venues.perp.state import Order, Position, Terms, World, equity

NOW = parse_instant("2025-06-03T12:00:00Z")
DAY = NOW // 86_400_000
SYMBOLS = ("BTC", "DOGE", "ETH")
PRICES = {"BTC": Decimal(100_000), "DOGE": Decimal("0.2"), "ETH": Decimal(2_500)}
TERMS = Terms(
    {symbol: SHIPPED[symbol] for symbol in SYMBOLS},
    daily_loss_halt_pct=Decimal(5),
    drawdown_halt_pct=Decimal(15),
)
STRANGE = [Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("-Infinity")]
HALTS = ("daily_loss", "drawdown", "operator", "invariant")


def sized(symbol: str, usd: int, price: Decimal) -> Decimal:
    """So many dollars in whole lots, at least one."""
    lot = SHIPPED[symbol].lot
    return max(round_down(Decimal(usd) / price, lot), lot)


@st.composite
def caps(draw: st.DrawFn) -> Caps:
    """Caps of a skill, from tight to loose."""
    return Caps(
        max_position_pct=Decimal(draw(st.sampled_from([1, 25, 100, 500, 5000]))),
        max_total_exposure_pct=Decimal(draw(st.sampled_from([5, 100, 1000, 9000]))),
        max_leverage=Decimal(draw(st.sampled_from([1, 3, 10, 50]))),
        min_order_usd=Decimal(draw(st.sampled_from([5, 10, 50]))),
        max_order_usd=draw(st.sampled_from([None, None, Decimal(200), Decimal("2000.50")])),
        max_orders_per_hour=draw(st.sampled_from([0, 1, 3, 12])),
        price_band_pct=Decimal(draw(st.sampled_from([0, 1, 5]))),
        max_data_age_ms=draw(st.sampled_from([0, 5, 30])) * MINUTE_MS,
        symbols=draw(st.sampled_from([SYMBOLS, ("BTC",), ("BTC", "ETH", "XMR")])),
        allowed_symbols=draw(st.sampled_from([(), (), ("BTC",), ("BTC", "DOGE")])),
    )


LOOSE = Caps(
    max_position_pct=Decimal(5000),
    max_total_exposure_pct=Decimal(9000),
    max_leverage=Decimal(50),
    max_orders_per_hour=100,
    symbols=SYMBOLS,
)


@st.composite
def positions(draw: st.DrawFn, symbol: str) -> Position:
    price = PRICES[symbol] * draw(st.integers(900, 1100)) / 1000
    size = sized(symbol, draw(st.integers(1, 30_000)), price) * draw(st.sampled_from([1, -1]))
    side = 1 if size > 0 else -1
    stop = draw(st.sampled_from([None, price * (100 - 5 * side) / 100]))
    goal = draw(st.sampled_from([None, price * (100 + 5 * side) / 100]))
    return Position(symbol, size, size * price, NOW - HOUR_MS, stop, goal, "held for a reason")


@st.composite
def orders(draw: st.DrawFn, number: int) -> Order:
    symbol = draw(st.sampled_from(SYMBOLS))
    kind = draw(st.sampled_from(["limit", "limit", "market", "close", "reduce"]))
    price = PRICES[symbol]
    limit = price * draw(st.integers(900, 1100)) / 1000 if kind == "limit" else None
    size = sized(symbol, draw(st.integers(10, 5_000)), price)
    side = draw(st.sampled_from([1, -1]))
    return Order(f"o{number}", kind, symbol, side, size, NOW - MINUTE_MS, NOW - MINUTE_MS, limit, None, None)


@st.composite
@exact
def worlds(draw: st.DrawFn, calm: bool = False) -> World:
    """A sane account: every number finite, a mark for everything held. `calm`: positive equity, no halt, fresh marks."""
    held = draw(st.lists(st.sampled_from(SYMBOLS), unique=True, max_size=2))
    working = draw(st.integers(0, 2))
    missing = [] if calm else draw(st.lists(st.sampled_from(SYMBOLS), max_size=1))
    marks = {
        symbol: PRICES[symbol] * draw(st.integers(950, 1050)) / 1000
        for symbol in SYMBOLS
        if symbol in held or symbol not in missing
    }
    ages = {symbol: 0 if calm else draw(st.sampled_from([0, 0, 5, 6, 60])) * MINUTE_MS for symbol in marks}
    cash = Decimal(draw(st.integers(5_000, 50_000) if calm else st.integers(-2_000, 20_000)))
    world = World(
        cash=cash,
        initial=Decimal(10_000),
        peak=cash,
        day=DAY,
        day_reference=cash,
        last_equity=cash,
        positions={symbol: draw(positions(symbol)) for symbol in held},
        orders=tuple(draw(orders(number)) for number in range(1, working + 1)),
        leverage={symbol: draw(st.sampled_from([1, 2, 10])) for symbol in held},
        marks=marks,
        marked_at={symbol: NOW - age for symbol, age in ages.items()},
        halts=() if calm else draw(st.sampled_from([(), (), (), ("drawdown",), ("daily_loss", "operator")])),
        next_order=working + 1,
    )
    value = equity(world)
    gain = Decimal(draw(st.integers(0, 400 if calm else 2_000)))
    return replace(world, peak=max(value, value + gain), day_reference=value + gain / 2, last_equity=value)


@st.composite
def broken_worlds(draw: st.DrawFn) -> World:
    """An account in which one number is missing or is not a number."""
    world = draw(worlds())
    bad = draw(st.sampled_from(STRANGE))
    places = ["cash", "peak", "day_reference", "last_equity", "marks"]
    if world.positions:
        places += ["size", "cost", "stop", "unmarked", "unlisted"]
    if world.orders:
        places += ["order", "limit"]
    place = draw(st.sampled_from(places))
    if place in ("cash", "peak", "day_reference", "last_equity"):
        return replace(world, **{place: bad})
    if place == "marks":
        return replace(world, marks={**world.marks, draw(st.sampled_from(SYMBOLS)): bad})
    if place in ("order", "limit"):
        first = replace(world.orders[0], **{"size" if place == "order" else "limit": bad})
        return replace(world, orders=(first, *world.orders[1:]))
    symbol = draw(st.sampled_from(sorted(world.positions)))
    held = world.positions[symbol]
    if place == "unmarked":
        return replace(world, marks={name: mark for name, mark in world.marks.items() if name != symbol})
    if place == "unlisted":
        gone = replace(held, symbol="GONE")
        return replace(world, positions={**world.positions, "GONE": gone}, marks={**world.marks, "GONE": bad})
    return replace(world, positions={**world.positions, symbol: replace(held, **{place: bad})})


def states(accounts: st.SearchStrategy[World]) -> st.SearchStrategy[State]:
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
def spoiled(draw: st.DrawFn) -> dict[Any, Any]:
    """Nearly a proposal: the right keys, any values."""
    chosen = draw(st.lists(st.sampled_from([*KEYS, "unknown"]), unique=True, max_size=8))
    proposal: dict[Any, Any] = {
        "action": draw(st.sampled_from([*ACTIONS, "OPEN_LONG"])),
        "symbol": "BTC",
        "reason": "x",
    }
    for key in chosen:
        proposal[key] = draw(st.one_of(NUMBERS, WORDS, JSON))
    return proposal


ANYTHING = st.one_of(spoiled(), JSON)


@st.composite
@exact
def opens(draw: st.DrawFn, wild: bool = True) -> dict[str, Any]:
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
def exits(draw: st.DrawFn, symbol: str) -> dict[str, Any]:
    """A close or a reduce of a symbol."""
    if draw(st.booleans()):
        return {"action": "close", "symbol": symbol, "reason": "out"}
    if draw(st.booleans()):
        pct = draw(st.sampled_from([Decimal("0.0001"), 1, 50, Decimal("99.9"), 100]))
        return {"action": "reduce", "symbol": symbol, "reason": "less", "reduce_pct": pct}
    usd = draw(st.sampled_from([Decimal("0.01"), 10, 500, 10**9, Decimal("1e300")]))
    return {"action": "reduce", "symbol": symbol, "reason": "less", "size_usd": usd}
