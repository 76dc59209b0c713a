"""Random markets and random decisions for comparing the product's world with the reference.

`random_case(seed)` for long seeded sweeps, `cases()` for Hypothesis. Nothing here knows the rules: valid and
invalid decisions are mixed by chance.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any

from hypothesis import strategies as st

from reference.account import Side

MINUTE = 60_000
BASE = 5 * MINUTE
HOUR = 60 * MINUTE
DAY = 24 * HOUR
MIDNIGHT = 1_750_032_000_000 // DAY * DAY  # a midnight UTC in June 2025

FIRST_PRICE = {"BTC": 100_000.0, "ETH": 2_500.0, "SOL": 150.0, "DOGE": 0.2}
PRICE_DECIMALS = {"BTC": 1, "ETH": 2, "SOL": 3, "DOGE": 5}
MOST_LEVERAGE = {"BTC": 40, "ETH": 25, "SOL": 20, "DOGE": 10}
EVERY = {5 * MINUTE: "5m", 15 * MINUTE: "15m", HOUR: "1h"}


@dataclass
class Case:
    """Everything `run` takes. `run(**case.arguments())`."""

    skill: dict[str, Any]
    bars: dict[str, list[tuple[int, float, float, float, float]]]
    base_ms: int
    funding: dict[str, list[tuple[int, float]]]
    from_ms: int
    to_ms: int
    tick_ms: int
    decisions: dict[int, Any]
    equity: str = "10000"
    maker_bps: str = "1.5"
    taker_bps: str = "4.5"
    slippage_bps_per_million: str = "10"
    penalty_bps: str = "50"
    latency_ms: int = 0
    close_at_end: bool = False
    marks: dict[str, list[tuple[int, float]]] | None = None
    max_volume_pct: str | None = None
    book_max_age_ms: int | None = None
    books: dict[str, list[tuple[int, Side, Side]]] | None = None
    seed: int | None = field(default=None, compare=False)

    def arguments(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "seed"}

    def __repr__(self) -> str:
        lines = [f"{at}: {json.dumps(value, default=str)}" for at, value in sorted(self.decisions.items())]
        return f"Case(seed={self.seed}, symbols={sorted(self.bars)}, equity={self.equity}, decisions={lines})"


def random_case(seed: int) -> Case:
    case = build_case(Random(seed))
    case.seed = seed
    return case


def thin_case(seed: int) -> Case:
    """The same as `random_case`, in markets whose volume is too small for some orders, and where some books are known."""
    case = random_case(seed)
    rng = Random(f"thin {seed}")
    if rng.random() < 0.8:
        case.max_volume_pct = rng.choice(["10", "2.5", "100"])
        share = float(case.max_volume_pct) / 100
        for symbol, rows in case.bars.items():
            usual = float(case.equity) / rows[0][1] / share if rows else 1.0
            case.bars[symbol] = [
                (*row, round(usual * rng.choice([0, 0.001, 0.05, 0.2, 0.5, 2, 50]), 6)) for row in rows
            ]
    if rng.random() < 0.6:
        case.book_max_age_ms = rng.choice([0, MINUTE, 2 * BASE])
        case.books = {
            symbol: random_books(rng, symbol, rows, float(case.equity))
            for symbol, rows in case.bars.items()
            if rng.random() < 0.8
        }
    return case


def random_books(rng: Random, symbol: str, rows: Sequence[tuple[float, ...]], equity: float) -> list[Any]:
    """Books near the opens, some at the very instant, some a little before or after, with one to five levels a side."""
    books = []
    for row in rows:
        if rng.random() < 0.3:
            continue
        middle, step = row[1] * rng.uniform(0.99, 1.01), 10 ** -PRICE_DECIMALS[symbol]
        sides: list[list[tuple[Decimal, Decimal]]] = []
        for way in (-1, 1):
            ticks = round(middle / step) + way * rng.randint(1, 3)
            levels: list[tuple[Decimal, Decimal]] = []
            for _ in range(rng.randint(1, 5)):
                size = max(0.01, equity / middle * rng.choice([0.001, 0.02, 0.3, 5]))
                price = Decimal(ticks).scaleb(-PRICE_DECIMALS[symbol])
                if price > 0:
                    levels.append((price, Decimal(repr(round(size, 4)))))
                ticks += way * rng.randint(1, 20)
            sides.append(levels)
        if sides[0] and sides[1]:
            books.append((row[0] + rng.choice([0, 0, -1, 1, -MINUTE, -BASE, MINUTE]), *sides))
    by_time = {book[0]: book for book in books}
    return [by_time[at] for at in sorted(by_time)]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A seeded case of which each decision is kept by a draw of its own: a failure shrinks to the decisions it needs."""
    case = random_case(draw(st.integers(0, 2**32 - 1)))
    case.decisions = {at: value for at, value in case.decisions.items() if draw(st.integers(0, 4)) > 0}
    return case


def build_case(rng: Random) -> Case:
    symbols = rng.sample(sorted(FIRST_PRICE), rng.choice([1, 1, 2, 2, 3]))
    tick_ms = rng.choice([5 * MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR])
    count = rng.randint(20, 120)
    # most runs cross a midnight; some do not begin on a tick
    from_ms = MIDNIGHT - rng.randint(0, count) * BASE + rng.choice([0, 0, 0, BASE, 1])
    to_ms = from_ms + count * BASE
    profile = rng.choice(["default", "loose", "brave", "brave"])
    wild = profile != "default" or rng.random() < 0.3
    huge = rng.random() < 0.15
    bars = {symbol: random_bars(rng, symbol, from_ms, to_ms, wild) for symbol in symbols}
    if rng.random() < 0.05:  # one symbol has no history before the run
        late = rng.choice(symbols)
        bars[late] = [row for row in bars[late] if row[0] >= from_ms]
    case = Case(
        skill=random_skill(rng, symbols, tick_ms, profile),
        bars=bars,
        base_ms=BASE,
        funding={symbol: random_funding(rng, from_ms, to_ms) for symbol in symbols},
        from_ms=from_ms,
        to_ms=to_ms,
        tick_ms=tick_ms,
        decisions={},
        equity="50000000" if huge else rng.choice(["10000", "10000", "1000.5", "250000"]),
        slippage_bps_per_million="0.01" if huge else rng.choice(["10", "10", "0", "500"]),
        maker_bps=rng.choice(["1.5", "1.5", "0", "-0.2"]),
        taker_bps=rng.choice(["4.5", "4.5", "10"]),
        penalty_bps=rng.choice(["50", "50", "0", "300"]),
        latency_ms=rng.choice([0, 0, 0, 0, MINUTE, BASE, 3 * BASE]),
        close_at_end=rng.random() < 0.3,
        marks=random_marks(rng, bars) if rng.random() < 0.2 else None,
    )
    case.decisions = random_decisions(rng, case)
    return case


def random_skill(rng: Random, symbols: list[str], tick_ms: int, profile: str) -> dict[str, Any]:
    risk: dict[str, Any] = {}
    if profile == "brave":  # little is refused and nothing halts: accounts are liquidated
        risk = {
            "max_position_pct": 4000,
            "max_total_exposure_pct": 8000,
            "max_leverage": 40,
            "max_orders_per_hour": 1000,
            "daily_loss_halt_pct": rng.choice([60, 100]),
            "drawdown_halt_pct": 100,
        }
    if profile == "loose":
        risk = {
            "max_position_pct": rng.choice([100, 500, 2500]),
            "max_total_exposure_pct": rng.choice([300, 1000, 4000]),
            "max_leverage": rng.choice([5, 20, 40]),
            "max_orders_per_hour": rng.choice([2, 12, 60]),
            "daily_loss_halt_pct": rng.choice([5, 40, 100]),
            "drawdown_halt_pct": rng.choice([15, 60, 100]),
            "price_band_pct": rng.choice([1, 5]),
        }
    if rng.random() < 0.1:
        risk["max_order_usd"] = rng.choice([500, 2000.5])
    if rng.random() < 0.2:
        risk["min_order_usd"] = rng.choice([5, 50])
    if rng.random() < 0.1:
        risk["allowed_symbols"] = [rng.choice(symbols)]
    if rng.random() < 0.2:
        risk["max_data_age_s"] = rng.choice([299, 300, 1800])
    return {
        "context": {"symbols": symbols, "bars_interval": rng.choice(["5m", "15m"])},
        "schedule": {"every": EVERY[tick_ms]},
        "risk": risk,
    }


def random_bars(
    rng: Random, symbol: str, from_ms: int, to_ms: int, wild: bool
) -> list[tuple[int, float, float, float, float]]:
    """A walk of 5m bars from a little before the run to its end, with gaps between bars, jumps, and missing bars."""
    digits = PRICE_DECIMALS[symbol]
    sigma = rng.choice([0.004, 0.01, 0.02]) if wild else 0.002
    price = FIRST_PRICE[symbol] * rng.uniform(0.5, 2)
    rows = []
    missing_until = 0
    first = (from_ms // BASE - 12) * BASE
    for t in range(first, to_ms, BASE):
        jump = rng.choice([-0.12, -0.05, 0.05, 0.12]) if wild and rng.random() < 0.02 else 0.0
        gap = rng.choice([0.0, 0.0, 0.0, rng.gauss(0, sigma / 2)])
        open_ = price * (1 + gap)
        close = open_ * (1 + jump + rng.gauss(0, sigma))
        high = max(open_, close) * (1 + rng.choice([0.0, abs(rng.gauss(0, sigma / 2))]))
        low = min(open_, close) * (1 - rng.choice([0.0, abs(rng.gauss(0, sigma / 2))]))
        open_, high, low, close = (round(x, digits) for x in (open_, high, low, close))
        price = close
        if t >= missing_until and rng.random() < 0.02:
            missing_until = t + rng.randint(1, 6) * BASE
        if t >= missing_until:
            rows.append((t, open_, high, low, close))
    return rows


def random_funding(rng: Random, from_ms: int, to_ms: int) -> list[tuple[int, float]]:
    """Hourly rows a few ms after the hour, some missing."""
    size = rng.choice([1e-5, 1e-4, 2e-3])
    first = from_ms // HOUR * HOUR - HOUR
    return [
        (hour + rng.choice([0, 48, rng.randint(0, 500)]), round(rng.gauss(0, size), 10))
        for hour in range(first, to_ms + HOUR, HOUR)
        if rng.random() < 0.95
    ]


def random_marks(
    rng: Random, bars: dict[str, list[tuple[int, float, float, float, float]]]
) -> dict[str, list[tuple[int, float]]]:
    """A mark series near the opens at some of the hours."""
    return {
        symbol: [
            (t, round(open_ * rng.uniform(0.99, 1.01), 6))
            for t, open_, _high, _low, _close in rows
            if t % HOUR == 0 and rng.random() < 0.7
        ]
        for symbol, rows in bars.items()
    }


def random_decisions(rng: Random, case: Case) -> dict[int, Any]:
    first = -(-case.from_ms // case.tick_ms) * case.tick_ms
    share = rng.choice([0.3, 0.6, 0.95])
    spoiled = rng.choice([0.0, 0.03, 0.2])
    closes = {symbol: {row[0] + BASE: row[4] for row in rows} for symbol, rows in case.bars.items()}
    latest = {symbol: FIRST_PRICE[symbol] for symbol in case.bars}
    decisions: dict[int, Any] = {}
    way = {symbol: rng.choice([1, -1]) for symbol in case.bars}  # the side that opens of this symbol mostly take
    opened = 0
    for tick in range(first, case.to_ms, case.tick_ms):
        for symbol, series in closes.items():
            past = [at for at in series if at <= tick]
            if past:
                latest[symbol] = series[max(past)]
        if rng.random() >= share:
            continue
        if rng.random() < 0.03:
            symbol = rng.choice(sorted(way))
            way[symbol] = -way[symbol]
        proposal = random_proposal(rng, case, latest, way, opened)
        if proposal["action"] not in ("cancel", "no_op") and rng.random() < 0.4:
            opened += 1  # a guess at how many were accepted, so that some cancels name a working order
        decisions[tick] = spoil(rng, proposal) if rng.random() < spoiled else proposal
    return decisions


def number(rng: Random, value: float, digits: int = 8) -> Decimal | int:
    """As it would come out of JSON text: an int or a Decimal."""
    if rng.random() < 0.1 and abs(value) >= 1:
        return int(value)
    return Decimal(repr(round(value, digits)))


def random_proposal(
    rng: Random, case: Case, latest: dict[str, float], way: dict[str, int], opened: int
) -> dict[str, Any]:
    symbol = rng.choice(sorted(case.bars))
    action = rng.choices(["open", "close", "reduce", "cancel", "no_op"], weights=[72, 7, 8, 10, 3])[0]
    if action == "open":
        side = way[symbol] if rng.random() < 0.96 else -way[symbol]
        action = "open_long" if side > 0 else "open_short"
    proposal: dict[str, Any] = {"action": action, "symbol": symbol, "reason": "by chance"}
    if rng.random() < 0.1:
        proposal["confidence"] = Decimal("0.5")
    if action.startswith("open"):
        add_open(rng, case, proposal, latest[symbol], 1 if action == "open_long" else -1)
    elif action == "reduce":
        if rng.random() < 0.5:
            proposal["reduce_pct"] = rng.choice([1, 25, 50, Decimal("33.3"), 100])
        else:
            proposal["size_usd"] = number(rng, float(case.equity) * rng.choice([0.00001, 0.05, 0.5, 5]), 2)
    elif action == "cancel":
        proposal["order_id"] = f"o{rng.randint(max(1, opened - 6), opened + 1)}"
    elif action == "no_op" and rng.random() < 0.5:
        del proposal["symbol"]
    return proposal


def add_open(rng: Random, case: Case, proposal: dict[str, Any], price: float, side: int) -> None:
    risk = case.skill["risk"]
    cap = float(case.equity) * risk.get("max_position_pct", 25) / 100
    top = min(risk.get("max_leverage", 3), MOST_LEVERAGE[proposal["symbol"]])
    most = min(cap, float(case.equity) * top)
    proposal["size_usd"] = number(rng, most * rng.choice([0.02, 0.1, 0.2, 0.4, 0.7, 0.9, 1.1]), 2)
    if rng.random() < 0.05:
        proposal["size_usd"] = rng.choice(
            [0, -100, Decimal("9.99"), Decimal("10.01"), Decimal("1e30"), Decimal("0.001")]
        )
    if rng.random() < 0.9:
        proposal["leverage"] = rng.choice([1, 2, top, top, top, top, min(top, 10), Decimal("2.0")])
        if rng.random() < 0.08:
            proposal["leverage"] = rng.choice(
                [0, -1, risk.get("max_leverage", 3) + 1, top + 1, 100, Decimal("2.5"), 10**12]
            )
    reference = price
    if rng.random() < 0.45:
        proposal["order_type"] = "limit"
        away = rng.choice([-0.03, -0.02, -0.01, -0.004, -0.001, 0.0, 0.001, 0.004])  # positive = marketable side
        if rng.random() < 0.05:
            away = rng.choice([0.049, 0.051, 0.2, -0.5])
        limit = price * (1 + side * away)
        proposal["limit_price"] = number(rng, limit) if rng.random() < 0.97 else rng.choice([0, -5])
        reference = min(price, limit) if side > 0 else max(price, limit)
    elif rng.random() < 0.1:
        proposal["order_type"] = "market"
    if rng.random() < 0.4:
        proposal["stop_loss"] = number(rng, reference * (1 - side * rng.choice([0.0005, 0.003, 0.01, 0.04])))
    if rng.random() < 0.4:
        proposal["take_profit"] = number(rng, reference * (1 + side * rng.choice([0.0005, 0.003, 0.01, 0.04])))
    if rng.random() < 0.04:
        proposal[rng.choice(["stop_loss", "take_profit"])] = number(rng, price * rng.choice([0.99, 1.0, 1.01]))


def spoil(rng: Random, proposal: dict[str, Any]) -> Any:
    """Make a proposal wrong in one way (or, by chance, harmlessly odd)."""
    spoiled = dict(proposal)
    way = rng.randrange(9)
    if way == 0:
        spoiled["unknown_key"] = 1
    elif way == 1:
        spoiled[rng.choice(["size_usd", "leverage", "limit_price", "stop_loss", "confidence"])] = rng.choice(
            ["100", True, [1], {"usd": 5}]
        )
    elif way == 2:
        spoiled.pop(rng.choice(sorted(spoiled)))
    elif way == 3:
        spoiled["symbol"] = rng.choice(["XMR", "btc", "", 7, "HYPE"])
    elif way == 4:
        spoiled["action"] = rng.choice(["buy", "OPEN_LONG", "", 1])
    elif way == 5:
        spoiled["order_type"] = rng.choice(["limit", "stop", 3])
    elif way == 6:
        spoiled["reduce_pct"] = rng.choice([50, 100, Decimal("0.5")])
    elif way == 7:
        spoiled["order_id"] = rng.choice(["o1", "o999", "x", 1])
    else:
        return rng.choice([None, [], "close", 3, [spoiled], {}])
    return spoiled
