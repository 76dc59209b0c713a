"""Writes a small generated market as files to import: `candles/5m/BTC.csv`, `funding/BTC.csv`."""

import random
from pathlib import Path

START = 1_748_736_000_000  # 2025-06-01T00:00:00Z
STEP = 300_000
DAYS = 5
FROM, TO = "2025-06-02", "2025-06-05"


def rows(symbol: str, days: int = DAYS) -> list[str]:
    """Bars of a random walk, a line each; the same for the same symbol."""
    rng, price = random.Random(symbol), 100.0 if symbol == "ETH" else 50_000.0
    lines: list[str] = []
    for index in range(days * 288):
        move = 1 + rng.gauss(0.0, 0.0015) + (0.0004 if index // 300 % 2 else -0.0004)
        open_, close = price, round(price * move, 2)
        high, low = max(open_, close) * 1.0005, min(open_, close) * 0.9995
        lines.append(f"{START + index * STEP},{open_:.2f},{high:.2f},{low:.2f},{close:.2f},{rng.random():.3f}")
        price = close
    return lines


def write_bars(folder: Path, symbol: str, lines: list[str]) -> Path:
    """A CSV file of bars where the importer can tell what it is."""
    path = folder / "candles" / "5m" / f"{symbol}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["time,open,high,low,close,volume", *lines, ""]))
    return path


def write_funding(folder: Path, symbol: str) -> Path:
    """Hourly funding of a constant rate."""
    path = folder / "funding" / f"{symbol}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{START + hour * 3_600_000},0.0000125" for hour in range(DAYS * 24)]
    path.write_text("\n".join(["time,funding_rate", *lines, ""]))
    return path


SKILL = """\
pitboss: 1
name: little
venue: perp
model: policy/sma_cross
max_steps: 3
schedule: {every: 15m}
strategy:
  mode: thesis
  thesis: Trends go on.
  avoid: Ranges.
tools: {built_in: [fetch_recent_bars, get_portfolio, simulate_action]}
context: {symbols: [BTC, ETH], bars_interval: 15m, bars_lookback: 60}
risk: {daily_loss_halt_pct: 50, drawdown_halt_pct: 90, max_orders_per_hour: 100}
"""
