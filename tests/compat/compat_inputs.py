"""What the program was given for the compatibility fixtures: skills, files of decisions, generated market data.

Used by `make_fixtures.py` only. The tests read the files that were written, never this.
"""

import gzip
import json
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Bars = Sequence[Sequence[Any]]
MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
PERP_START = 1_748_736_000_000  # 2025-06-01T00:00:00Z
PERP_BARS, PERP_STEP = 4 * 288, 5 * MINUTE
BETS_START = 1_771_675_200_000  # 2026-02-21T12:00:00Z
BETS_BARS = 27 * 60
HOLE = range(24 * 60 + 67, 24 * 60 + 70)
"""Minutes without a price: an order that waits for the next one gets it too late."""
BAR_COLUMNS = "time,open,high,low,close,volume"

TREND = """\
pitboss: 1
name: compat-trend
description: Follows the move, looks before it acts, learns from every closed trade.
venue: perp
model: standin/analyst
max_steps: 4
schedule: {every: 15m}
strategy:
  mode: thesis
  thesis: Trends go on.
  style: momentum
  horizon: hours
  look_for: A close outside of the channel.
  avoid: Ranges.
tools:
  built_in: [fetch_recent_bars, get_portfolio, simulate_action, compute_indicators, fetch_news_sentiment, get_funding_rate]
context:
  symbols: [BTC, ETH]
  bars_interval: 15m
  bars_lookback: 32
  higher_timeframes: [4h]
  news_top_k: 3
  memory: {trades: 4, reflection_every: 1}
risk: {max_leverage: 2, daily_loss_halt_pct: 20, drawdown_halt_pct: 50}
"""
RULES = """\
pitboss: 1
name: compat-rules
venue: perp
model: standin/analyst
max_steps: 3
retry_refused: 1
schedule:
  every: 15m
  wake_when: [position_open, new_news, {move_atr: 0.5}]
strategy:
  mode: rules
  leash: strict
  entry: Mean reversion. Buy the lower edge of the range, sell the upper one.
  exit: Take the middle of the range.
  risk_management: A stop beyond the edge, always.
tools: {built_in: [get_portfolio, simulate_action]}
context:
  symbols: [ETH, BTC]
  bars_interval: 15m
  bars_lookback: 32
  higher_timeframes: []
  news_top_k: 2
  events: {enabled: false}
risk: {max_position_pct: 10, max_total_exposure_pct: 15, max_leverage: 1, max_orders_per_hour: 4}
"""
PLAIN = """\
pitboss: 1
name: compat-plain
venue: perp
model: policy/hold
schedule: {every: 5m}
strategy: {mode: thesis, thesis: Trends go on., avoid: Ranges.}
context: {symbols: [BTC, ETH], bars_interval: 15m, bars_lookback: 60}
risk: {max_orders_per_hour: 100, drawdown_halt_pct: 90}
"""
BETS = """\
pitboss: 1
name: compat-bets
venue: predict
model: standin/analyst
strategy: {mandate: momentum}
context: {tiers: [15m, 1h], candles_minutes: 31}
risk: {max_spend_per_day: 20}
"""
HALVES = """\
pitboss: 1
name: compat-halves
description: Decides twice a minute, so every other decision waits half a minute for its price.
venue: predict
model: standin/analyst
max_steps: 3
schedule: {every: 30s}
strategy: {mandate: mandate.md}
tools: {built_in: [list_strikes, quote, get_my_positions]}
context: {tiers: [15m, 1h], candles_minutes: 31}
risk: {max_spend_per_tick: 3, max_spend_per_day: 60, max_exposure_per_expiry: 8, min_seconds_to_expiry: 120}
"""
MANDATE = """\
Go with the move of the last half hour while it is larger than chance.

Never chase a price that has run away.
"""
SKILLS = {
    "trend.yaml": TREND,
    "rules.yaml": RULES,
    "plain.yaml": PLAIN,
    "bets.yaml": BETS,
    "halves.yaml": HALVES,
    "mandate.md": MANDATE,
}


def write_inputs(folder: Path) -> None:
    """Everything the commands of the runs name."""
    for name, words in SKILLS.items():
        write(folder / "skills" / name, words)
    market = folder / "market"
    bars = {symbol: _perp_bars(symbol, price, places) for symbol, price, places in (("BTC", 64e3, 0), ("ETH", 3200, 1))}
    for symbol, rows in bars.items():
        _write_rows(market / "candles" / "5m" / f"{symbol}.csv.gz", BAR_COLUMNS, rows)
        _write_points(market / "funding" / f"{symbol}.csv", "funding_rate", symbol, 1e-5, 8)
        _write_points(market / "open_interest" / f"{symbol}.csv", "open_interest", symbol, 3e4, 1)
    _write_lines(market / "l2" / "BTC.jsonl.gz", _books(bars["BTC"]))
    _write_rows(market / "news.csv", "published_at,source,text,sentiment,symbols", _news())
    _write_rows(market / "events.csv", "scheduled_at,kind,title,known_at,importance,symbols", _events())
    minutes = _minute_bars()
    _write_rows(folder / "prices" / "BTC-1m.csv.gz", BAR_COLUMNS, minutes)
    _write_lines(folder / "surfaces" / "BTC.jsonl", _surfaces())
    _write_lines(folder / "decisions" / "perp.jsonl", _perp_decisions(bars))
    _write_lines(folder / "decisions" / "predict.jsonl", _predict_decisions(minutes))


# Markets ------------------------------------------------------------------------------------------------------------


def _perp_bars(symbol: str, price: float, places: int) -> list[list[Any]]:
    """A walk with trends that last some hours and then turn."""
    dice, rows = random.Random(f"compat {symbol}"), []
    for place in range(PERP_BARS):
        drift = 0.0009 * math.sin(2 * math.pi * place / 70) + 0.0002 * math.sin(2 * math.pi * place / 500)
        opens = price
        price = round(price * math.exp(drift + dice.gauss(0, 0.0011)), places)
        high = round(max(opens, price) * (1 + abs(dice.gauss(0, 0.0004))), places)
        low = round(min(opens, price) * (1 - abs(dice.gauss(0, 0.0004))), places)
        volume = round(dice.uniform(4, 60) * (1 if symbol == "BTC" else 20), 3)
        rows.append([PERP_START + place * PERP_STEP, opens, high, low, price, volume])
    return rows


def _minute_bars() -> list[list[Any]]:
    dice, price, rows = random.Random("compat bets"), 66_000.0, []
    for place in range(BETS_BARS):
        opens = price
        drift = 0.0003 * math.sin(2 * math.pi * place / 90)
        price = round(price * math.exp(drift + dice.gauss(0, 0.0005)), 1)
        if place not in HOLE:
            rows.append([BETS_START + place * MINUTE, opens, max(opens, price), min(opens, price), price, 1])
    return rows


def _write_points(path: Path, name: str, symbol: str, middle: float, places: int) -> None:
    dice = random.Random(f"compat {name} {symbol}")
    hours = range(PERP_BARS * PERP_STEP // HOUR)
    rows = [[PERP_START + hour * HOUR, f"{middle * (1 + 0.2 * dice.gauss(0, 1)):.{places}f}"] for hour in hours]
    _write_rows(path, f"time,{name}", rows)


def _books(bars: Bars) -> Iterator[Json]:
    """A book of three levels at the open of every other bar of the last day."""
    dice = random.Random("compat books")
    for at, opens, *_ in bars[-288::2]:
        sides = ([f"{opens + way * (2 * level + 1):.0f}" for level in range(3)] for way in (-1, 1))
        levels = [[{"px": price, "sz": f"{dice.uniform(0.002, 0.05):.3f}"} for price in side] for side in sides]
        yield {"coin": "BTC", "time": at, "levels": levels}


def _news() -> Iterator[list[Any]]:
    dice = random.Random("compat news")
    for place in range(40):
        at = PERP_START + 2 * DAY + place * 71 * MINUTE
        symbol, (mood, who) = dice.choice(("BTC", "ETH", "")), dice.choice(((-0.6, "sellers"), (0.7, "buyers")))
        yield [iso(at), "made-up", f"Number {place}: {who} in charge of {symbol or 'the market'}", mood, symbol]


def _events() -> Iterator[list[Any]]:
    for place, (hours, weight, symbols) in enumerate(((78, 0.9, ""), (90, 0.5, "ETH"), (120, 0.7, "BTC"))):
        at = PERP_START + hours * HOUR
        yield [iso(at), "made-up", f"Made-up decision {place}", iso(PERP_START), weight, symbols]


def _surfaces() -> Iterator[Json]:
    """Two surfaces for each of some expiries: magnitudes in billionths beside flags, as the indexer gives them."""
    dice, first = random.Random("compat surfaces"), BETS_START + DAY
    for quarter in range(4, 12):
        for at in (first - HOUR, first + 10 * MINUTE):
            yield {
                "oracle_id": str(first + quarter * 15 * MINUTE),
                "timestamp": at,
                "a": 20_000,
                "b": 300_000,
                "rho": dice.randrange(400_000_000),
                "rho_negative": dice.random() < 0.7,
                "m": dice.randrange(1_000_000),
                "m_negative": dice.random() < 0.5,
                "sigma": 20_000_000,
            }


# Decisions ----------------------------------------------------------------------------------------------------------


def _perp_decisions(bars: Mapping[str, Bars]) -> Iterator[Json]:
    """Market and limit orders, a stop, a reduction, a cancellation; and some that a rule refuses."""
    day = PERP_START + 3 * DAY

    def last(symbol: str, minutes: int) -> float:
        return bars[symbol][(day + minutes * MINUTE - PERP_START) // PERP_STEP - 1][4]

    def line(minutes: int, action: str, symbol: str, **more: Any) -> Json:
        proposal = {"action": action, "symbol": symbol, "reason": f"{action} at minute {minutes}", **more}
        return {"tick_at": iso(day + minutes * MINUTE), "proposal": proposal}

    btc, eth = last("BTC", 0), last("ETH", 10)
    stops = {"stop_loss": round(btc * 0.985), "take_profit": round(btc * 1.02)}
    yield line(0, "open_long", "BTC", size_usd=2000, leverage=2, **stops)
    yield line(5, "open_long", "BTC", size_usd=90_000)  # R3: too large for one symbol
    yield line(5, "open_long", "DOGE", size_usd=500)  # R2: not a symbol of the skill
    yield line(10, "open_short", "ETH", size_usd=1000, order_type="limit", limit_price=round(eth * 1.002, 1))
    yield line(15, "open_short", "ETH", size_usd=1000, leverage=50)  # R5: too much leverage
    yield line(20, "open_long", "BTC", size_usd=1)  # R6: dust
    yield line(25, "open_long", "BTC", size_usd="much")  # R1: not a number
    yield line(30, "open_short", "ETH", size_usd=400, order_type="limit", limit_price=round(eth * 1.08, 1))
    yield line(60, "cancel", "ETH", order_id="o3")
    yield line(65, "reduce", "BTC", reduce_pct=50)
    yield line(70, "no_op", "BTC")
    yield line(120, "open_short", "BTC", size_usd=700)  # R2: against an open position
    yield line(180, "close", "BTC")
    yield line(180, "open_short", "ETH", size_usd=900, stop_loss=round(eth * 0.5, 1))  # R11: a stop on the wrong side
    yield line(240, "open_short", "BTC", size_usd=1500)
    yield line(240, "close", "ETH")
    yield line(300, "open_long", "ETH", size_usd=2000, confidence=0.6)


def _predict_decisions(bars: Bars) -> Iterator[Json]:
    """At full minutes a decision is carried out at once, at half ones it waits for a price; and some are refused."""
    day = BETS_START + DAY
    closes = {row[0] + MINUTE: row[4] for row in bars}

    def market(minutes: int) -> str:
        return f"BTC-{iso(day + minutes * MINUTE)}"

    def line(half: int, **proposal: Any) -> Json:
        return {"tick_at": iso(day + half * 30_000), "proposal": {"reasoning": f"At half minute {half}.", **proposal}}

    def mint(half: int, expiry: int, side: str, spend: float, away: float = 0, **more: Any) -> Json:
        strike = round(closes[day + half // 2 * MINUTE] + away)
        return line(half, action="mint", market_id=market(expiry), side=side, strike=strike, spend=spend, **more)

    yield mint(0, 75, "YES", 2, confidence=0.55)
    yield mint(3, 75, "NO", 1.5, 40, confidence=0.6)
    yield mint(5, 90, "YES", 9, -30)  # B9: reduced to what one tick may spend
    yield mint(6, 90, "YES", 1, 70_000)  # B5: never quoted
    yield line(7, action="mint", market_id="BTC-2026-02-25T12:00:00Z", side="NO", strike=66_000, spend=1)  # B2: unknown
    yield line(8, action="mint", side="YES", strike=66_000, spend_dusdc=1, confidence_0_1=0.5)  # B2: which market?
    yield line(9, action="mint", market_id=market(75), side="MAYBE", strike=66_000, spend=1)  # B1
    yield line(10, action="hold")
    yield mint(12, 75, "NO", 3, 25)
    yield mint(14, 75, "YES", 3)  # B12: too much on one expiry
    yield mint(31, 60, "NO", 1.25, -20, confidence=0.4)
    yield line(41, action="redeem", market_id=market(75), side="YES", strike=round(closes[day]))
    yield mint(117, 60, "YES", 1)  # B3: too late
    yield mint(135, 120, "YES", 1)  # B4: accepted, but the next price comes after the hole
    yield mint(150, 120, "NO", 2, 15)


# Files --------------------------------------------------------------------------------------------------------------


def iso(at: int) -> str:
    """An instant as the program writes it."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def write(path: Path, words: str) -> None:
    """Write a text, packed if the name says so; the same text gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = words.encode()
    path.write_bytes(gzip.compress(data, 9, mtime=0) if path.suffix == ".gz" else data)


def _write_rows(path: Path, heading: str, rows: Iterable[Sequence[Any]]) -> None:
    write(path, "".join(f"{line}\n" for line in (heading, *(",".join(map(str, row)) for row in rows))))


def _write_lines(path: Path, rows: Iterable[Json]) -> None:
    write(path, "".join(json.dumps(row) + "\n" for row in rows))
