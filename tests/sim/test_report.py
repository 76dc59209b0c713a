"""The HTML report: complete, safe with hostile text, self-contained, the same bytes for the same run."""

import base64
import hashlib
import math
import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.instant import DAY_MS, iso
from pitboss.sim.report import Report, render
from pitboss.sim.report.markup import tag
from pitboss.sim.report.meaning import RULES
from pitboss.sim.report.series import thin

START = 1_740_787_200_000  # 2025-03-01T00:00:00Z
BAR = 300_000
HOSTILE = "</script><script>alert(1)</script><img src=x onerror='alert(2)'>\"'>&amp;</style>\u202e\x00"
SKILL = """pitboss: 1
name: btc-breakout
venue: perp
model: standin/analyst
schedule: {every: 4h}
strategy:
  mode: thesis
  leash: balanced
  thesis: Breakouts after quiet hours tend to run.
  avoid: Trading into scheduled events.
context:
  symbols: [BTC, ETH]
  bars_interval: 15m
risk:
  max_position_pct: 25
  max_leverage: 3
"""


def walk(seed: int, bars: int, first: float) -> list[tuple[int, float, float, float, float]]:
    """A plausible price: volatility in regimes, now and then a jump."""
    draw = np.random.default_rng(seed)
    calm = np.repeat(draw.choice([0.0007, 0.0012, 0.0026], size=bars // 500 + 1), 500)[:bars]
    jumps = (draw.random(bars) < 0.0006) * draw.normal(0, 0.02, bars)
    close = first * np.exp(np.cumsum(draw.normal(0.000002, 1, bars) * calm + jumps))
    open_ = np.concatenate(([first], close[:-1]))
    reach = np.abs(draw.normal(0, 1, (2, bars))) * calm * 0.7
    high, low = np.maximum(open_, close) * (1 + reach[0]), np.minimum(open_, close) * (1 - reach[1])
    at = START + BAR * np.arange(bars)
    return [tuple(row) for row in np.column_stack((at, open_, high, low, close)).tolist()]


def margins(code: str | None, size: float, equity: float) -> list[dict[str, Any]]:
    cap = equity * 0.25
    rows = [
        ("R3_POSITION_CAP", cap, size, cap - size, "USD"),
        ("R4_EXPOSURE_CAP", equity, size * 1.4, equity - size * 1.4, "USD"),
        ("R5_LEVERAGE_CAP", 3, 5 if code == "R5_LEVERAGE_CAP" else 2, -2 if code == "R5_LEVERAGE_CAP" else 1, "x"),
        ("R6_ORDER_SIZE", 10, size, size - 10, "USD"),
        ("R7_ORDER_RATE", 12, 1, 11, "orders"),
        ("R9_MARGIN", equity * 0.8, size / 2, equity * 0.8 - size / 2, "USD"),
        ("R10_STALE_DATA", 1800, 0, 1800, "s"),
        ("R11_PRICE_BAND", "5 %", "market", None, ""),
    ]
    return [
        {"code": name, "limit": str(limit), "used": str(used), "left": None if left is None else str(left), "unit": unit}
        for name, limit, used, left, unit in rows
    ]


def said(seq: int, at: int, outcome: str, **more: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(
        ("symbol", "size_usd", "leverage", "limit_price", "stop_loss", "take_profit", "confidence", "code")
    )
    row |= {"seq": seq, "tick_at": iso(at), "action": "no_op", "order_type": "market", "outcome": outcome, "detail": ""}
    row |= {"reason": "Range is narrow and volume thin; nothing to do.", "margins": [], "flags": [], "text": "", "steps": []}
    return row | {"cost_usd": "0"} | more


def sample(days: int = 90, seed: int = 7, *, every: int = 48) -> Report:
    """A made-up run that looks like a real one: two symbols, stops, targets, refusals, a halt and a liquidation."""
    draw = np.random.default_rng(seed)
    bars = days * DAY_MS // BAR
    prices = {"BTC": walk(seed, bars, 84_000.0), "ETH": walk(seed + 1, bars, 2_200.0)}
    fills: list[dict[str, Any]] = []
    decisions: list[dict[str, Any]] = []
    trades: list[dict[str, Any]] = []
    cash, fees = 10_000.0, 0.0
    gain = np.zeros(bars + 1)
    free = {"BTC": 0, "ETH": 0}
    for seq, index in enumerate(range(0, bars, every)):
        at, symbol = START + index * BAR, "BTC" if draw.random() < 0.6 else "ETH"
        chance = draw.random()
        last = prices[symbol][index][1]
        step = {"text": f"{symbol} pushed out of its range on rising volume.", "calls": [
            {"name": "fetch_recent_bars", "arguments": {"symbol": symbol, "interval": "15m", "lookback": 20},
             "result": "time open high low close\n" + "\n".join(f"{last * (1 - 0.001 * k):.1f}" for k in range(8))}]}  # fmt: skip
        if chance < 0.8 or free[symbol] > index:
            decisions.append(said(seq, at, "noop"))
            continue
        side, size = (1 if draw.random() < 0.6 else -1), float(draw.uniform(1_200, 2_400))
        common: dict[str, Any] = {
            "action": "open_long" if side > 0 else "open_short", "symbol": symbol, "size_usd": round(size, 2),
            "leverage": 2, "stop_loss": round(last * (1 - 0.014 * side), 1), "take_profit": round(last * (1 + 0.03 * side), 1),
            "reason": f"{symbol} left its six-hour range with twice the usual volume; risking 1.4 % for 3 %.",
            "confidence": 0.62, "steps": [step], "cost_usd": "0.0021", "text": step["text"],
        }  # fmt: skip
        if chance > 0.95:
            code = str(draw.choice(["R3_POSITION_CAP", "R3_POSITION_CAP", "R5_LEVERAGE_CAP", "R11_PRICE_BAND"]))
            asked = size * 1.9 if code == "R3_POSITION_CAP" else size
            common |= {"size_usd": round(asked, 2), "leverage": 5 if code == "R5_LEVERAGE_CAP" else 2}
            detail = "the stop lies on the winning side of the mark" if code == "R11_PRICE_BAND" else ""
            decisions.append(said(seq, at, "refused", code=code, detail=detail, margins=margins(code, asked, cash), **common))
            continue
        decisions.append(said(seq, at, "allowed", margins=margins(None, size, cash), **common))
        coins = round(size / last, 5)
        buy, sell = ("buy", "sell") if side > 0 else ("sell", "buy")
        fee = 0.00045 * coins * last
        fills.append({"at": iso(at), "symbol": symbol, "side": buy, "size": str(coins), "price": str(last), "fee_usd": str(fee), "slippage_usd": "0.01", "penalty_usd": "0", "liquidity": "taker", "reason": "market"})  # fmt: skip
        end, leave, why = min(index + int(draw.integers(60, 900)), bars - 1), 0.0, "market"
        for probe in range(index, end + 1):
            _, open_, high, low, close = prices[symbol][probe]
            stop, target = common["stop_loss"], common["take_profit"]
            if (low <= stop) if side > 0 else (high >= stop):
                end, leave, why = probe, stop, "stop"
                break
            if (high > target) if side > 0 else (low < target):
                end, leave, why = probe, target, "take_profit"
                break
            leave = close
        if len(trades) == 21:
            why = "liquidation"
        result = side * coins * (leave - last) - 2 * fee
        fees += 2 * fee
        gain[end + 1] += result
        free[symbol] = end + 1
        out = START + end * BAR
        fills.append({"at": iso(out), "symbol": symbol, "side": sell, "size": str(coins), "price": str(leave), "fee_usd": str(fee), "slippage_usd": "0", "penalty_usd": "0", "liquidity": "taker", "reason": why})  # fmt: skip
        trades.append({"symbol": symbol, "side": "long" if side > 0 else "short", "opened_at": iso(at), "closed_at": iso(out), "pnl_usd": str(result), "fees_usd": str(2 * fee), "funding_usd": "0.42", "exit": why})  # fmt: skip
    curve = 10_000 + np.cumsum(gain)[1:] + np.cumsum(draw.normal(0, 0.9, bars))
    times = (START + BAR * np.arange(1, bars + 1)).tolist()
    held = 10_000 * np.mean([[bar[4] / rows[0][1] for bar in rows] for rows in prices.values()], axis=0)
    fills.sort(key=lambda fill: fill["at"])
    own, holding = float(curve[-1] / 100 - 100), float(held[-1] / 100 - 100)
    refused = [row["code"] for row in decisions if row["outcome"] == "refused"]
    proposals = sum(row["outcome"] != "noop" for row in decisions)
    wins = [float(row["pnl_usd"]) for row in trades if float(row["pnl_usd"]) > 0]
    metrics: dict[str, Any] = {
        "total_return_pct": own, "total_return_ci": [own - 9.2, own + 10.1], "cagr": own / 25, "sharpe": 0.61, "sharpe_ci": [-1.9, 3.2],
        "sortino": 0.94, "max_drawdown_pct": float((1 - curve / np.maximum.accumulate(curve)).max() * 100),
        "max_drawdown_duration_days": 21.4, "total_trades": len(trades), "win_rate": len(wins) / max(len(trades), 1),
        "profit_factor": 1.18, "avg_win_usd": 52.1, "avg_loss_usd": 31.7, "total_fees_usd": fees, "total_funding_usd": 7.81,
        "total_slippage_usd": 3.02, "total_penalties_usd": 4.1, "liquidations": 1, "deficit_usd": 0, "total_ai_cost_usd": 1.13,
        "cost_per_decision_usd": 0.0021, "total_ticks": len(decisions), "total_proposed_actions": proposals,
        "total_accepted_actions": proposals - len(refused), "rejections_by_rule": {code: refused.count(code) for code in refused},
        "noops_by_flag": {"asleep": 12, "no_decision": 3}, "exposure_time_pct": 47.2, "turnover": 15.3, "probabilistic_sharpe": 0.63,
    }  # fmt: skip
    base = {"total_return_pct": holding, "max_drawdown_pct": 24.8, "sharpe": 0.2, "total_fees_usd": 4.5, "win_rate": None}
    return Report(
        document={
            "run_id": "01JQ8Z5T", "status": "complete", "digest": "3f" * 32, "skill_digest": "a1" * 32, "data_digest": "b7" * 32,
            "model": "standin/analyst", "from": iso(START), "to": iso(START + days * DAY_MS), "ticks": len(decisions),
            "metrics": metrics, "baselines": {"buy_and_hold": base, "cash": {"total_return_pct": 0.0, "sharpe": None}},
            "cost_usd": 1.13, "wall_s": 8.2, "report": None, "errors": [],
        },
        skill_name="btc-breakout", skill_text=SKILL, initial_usd=10_000.0,
        equity=list(zip(times, curve.tolist(), strict=True)),
        baseline_equity={"buy_and_hold": list(zip(times, held.tolist(), strict=True)), "cash": [(times[0], 1e4), (times[-1], 1e4)]},
        prices=prices, fills=fills, decisions=decisions, trades=trades,
        assumptions=("Fees are 4.5 bps for taking and 1.5 bps for making.", "An order decided at a tick fills no earlier than the next bar's open."),
        synthetic=True, standin=True, halts=[{"at": START + 40 * DAY_MS, "kind": "daily_loss", "detail": "5.1 % lost since 00:00"}], version="0.1.0",
    )  # fmt: skip
