"""Signals of the shipped policies (PERP §10) and the buy-and-hold baseline (§8), for comparison with the product's.

A signal is the wished direction: +1 long, −1 short, 0 flat, None = leave as it is. How a policy spreads the orders of
several symbols over ticks is not said on the page and not decided here.
"""

from decimal import Decimal, localcontext
from math import sqrt
from typing import Any

from reference.perp import CONTEXT, Result, run, ticks


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def sma_cross(closes: list[float]) -> int | None:
    """ "SMA(20) and SMA(50) …; long when the fast is above the slow, flat otherwise"."""
    if len(closes) < 50:
        return None
    return 1 if mean(closes[-20:]) > mean(closes[-50:]) else 0


def momentum(closes: list[float]) -> int | None:
    """ "sign of the 48-bar return, long/short/flat within ±0.5 %"; exactly ±0.5 % is within."""
    if len(closes) < 49:
        return None
    change = closes[-1] / closes[-49] - 1
    if abs(change) <= 0.005:
        return 0
    return 1 if change > 0 else -1


def mean_reversion(closes: list[float], holding: int) -> int | None:
    """ "z-score of close to SMA(48), enter beyond ±2, exit inside ±0.5": fades the move; deviation of the population."""
    if len(closes) < 48:
        return None
    window = closes[-48:]
    deviation = sqrt(mean([(x - mean(window)) ** 2 for x in window]))
    z = 0.0 if deviation == 0 else (closes[-1] - mean(window)) / deviation
    if z > 2:
        return -1
    if z < -2:
        return 1
    return 0 if abs(z) < 0.5 else holding


def buy_and_hold(arguments: dict[str, Any]) -> Result:
    """§8 "at T0 buys equity/(1 + taker fee) split equally over the symbols, lots down, 1×, same costs and funding, no
    guard". Read as: no margin rejection either, since slippage alone would otherwise reject the whole purchase.
    `arguments` are those of `run`; its decisions and guard are replaced.
    """
    with localcontext(CONTEXT):
        symbols = sorted(arguments["skill"]["context"]["symbols"])
        taker = Decimal(arguments.get("taker_bps", "4.5")) / 10_000
        each = Decimal(arguments.get("equity", "10000")) / (1 + taker) / len(symbols)
    first = ticks(arguments["from_ms"], arguments["to_ms"], arguments["tick_ms"])[:1]
    buys = [{"action": "open_long", "symbol": symbol, "size_usd": each, "reason": "baseline"} for symbol in symbols]
    return run(**{**arguments, "decisions": dict.fromkeys(first, buys), "guard": False, "margin_check": False})
