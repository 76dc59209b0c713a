"""Real bars and funding through the whole program (import, backtest, export) against the independent reference."""

import contextlib
import io
import json
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from example_counts import cases
from pitboss.cli.main import main
from pitboss.core import codec
from pitboss.core.instant import iso, parse_instant
from reference import load
from reference.perp import Result
from reference.perp import run as run_reference

pytestmark = pytest.mark.skipif(not load.DATA.exists(), reason="the shared market data is not beside the project")
TOLERANCE = Decimal("1e-6")
HOUR = 3_600_000


def pitboss(*arguments: str) -> str:
    """The program as a person types it; its standard output."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(list(arguments)) == 0, out.getvalue()
    return out.getvalue()


def decide(rng: Random, closes: dict[str, dict[int, float]], ticks: range, base: int, top: int) -> dict[int, Any]:
    """Well-formed proposals of every kind, close enough to the market to be filled, stopped and liquidated."""
    decisions: dict[int, Any] = {}
    for tick in ticks:
        if rng.random() > 0.35:
            continue
        symbol = rng.choice(sorted(closes))
        price = closes[symbol].get(tick - base)
        if price is None:
            continue
        kind = rng.choices(["open_long", "open_short", "close", "reduce"], [5, 3, 3, 1])[0]
        proposal: dict[str, Any] = {"action": kind, "symbol": symbol, "reason": "by chance"}
        if kind == "reduce":
            proposal["reduce_pct"] = rng.choice([10, 50, Decimal("33.3")])
        elif kind != "close":
            side = 1 if kind == "open_long" else -1
            proposal |= {"size_usd": rng.choice([500, 2500, 12000, 30000]), "leverage": rng.choice([1, 3, top])}
            if rng.random() < 0.4:
                limit = price * (1 - side * rng.choice([0.002, 0.0005, -0.001]))
                proposal |= {"order_type": "limit", "limit_price": Decimal(repr(round(limit, 4)))}
            if rng.random() < 0.5:
                proposal["stop_loss"] = Decimal(repr(round(price * (1 - side * 0.01), 4)))
            if rng.random() < 0.5:
                proposal["take_profit"] = Decimal(repr(round(price * (1 + side * 0.012), 4)))
        decisions[tick] = proposal
    return decisions


CASES = {
    "two coins through the crash of October 2025": {
        "symbols": ["BTC", "ETH"],
        "interval": "5m",
        "every": "5m",
        "start": "2025-10-10",
        "end": "2025-10-12",
        "seed": 1,
    },
    "three coins at 15 minutes on 5-minute bars": {
        "symbols": ["HYPE", "LINK", "SOL"],
        "interval": "5m",
        "every": "15m",
        "start": "2025-10-08",
        "end": "2025-10-12",
        "seed": 2,
    },
    "hourly bars and ticks": {
        "symbols": ["AVAX", "DOGE", "XRP"],
        "interval": "1h",
        "every": "1h",
        "start": "2025-10-02",
        "end": "2025-10-17",
        "seed": 3,
    },
    "four-hour ticks on hourly bars": {
        "symbols": ["BNB", "BTC"],
        "interval": "1h",
        "every": "4h",
        "start": "2025-03-01",
        "end": "2025-04-15",
        "seed": 4,
    },
    "eight-hour funding paid on imported marks": {
        "symbols": ["BTC", "LTC"],
        "interval": "1h",
        "every": "1h",
        "start": "2023-08-14",
        "end": "2023-08-26",
        "seed": 5,
        "binance": True,
    },
}


QUICK = ("two coins through the crash of October 2025", "eight-hour funding paid on imported marks")


@pytest.mark.parametrize("name", cases(CASES, QUICK))
def test_fills_and_equity_of_a_run_on_real_data_equal_the_reference(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    from_ms, to_ms = parse_instant(case["start"]), parse_instant(case["end"])
    binance = case.get("binance", False)
    folders = (
        ("binance_2023_2024", "binance_2023_2024/funding_8h")
        if binance
        else ("hyperliquid/candles", "hyperliquid/funding")
    )
    bars = load.bars(case["symbols"], case["interval"], from_ms - 100 * HOUR, to_ms, folders[0])
    funding = load.funding(case["symbols"], from_ms - HOUR, to_ms, folders[1])
    marks = load.marks(case["symbols"], from_ms - 24 * HOUR, to_ms) if binance else None
    base = {"5m": HOUR // 12, "1h": HOUR}[case["interval"]]
    period = {"5m": HOUR // 12, "15m": HOUR // 4, "1h": HOUR, "4h": 4 * HOUR}[case["every"]]
    closes = {symbol: {row[0]: row[4] for row in rows} for symbol, rows in bars.items()}
    decisions = decide(Random(case["seed"]), closes, range(from_ms, to_ms, period), base, 10)
    risk = {
        "max_position_pct": 400, "max_total_exposure_pct": 700, "max_leverage": 10,
        "max_orders_per_hour": 8, "daily_loss_halt_pct": 30, "drawdown_halt_pct": 80,
    }  # fmt: skip
    skill = {
        "pitboss": 1,
        "name": "parity",
        "venue": "perp",
        "model": "policy/hold",
        "schedule": {"every": case["every"]},
        "strategy": {"mode": "thesis", "thesis": "None.", "avoid": "Nothing."},
        "context": {"symbols": case["symbols"], "bars_interval": case["every"], "bars_lookback": 20},
        "risk": risk,
    }
    expected = run_reference(skill, bars, base, funding, from_ms, to_ms, period, decisions, marks=marks)
    assert len(expected.fills) > 20

    skill_file, decision_file, home = tmp_path / "skill.json", tmp_path / "decisions.jsonl", str(tmp_path / "home")
    skill_file.write_text(json.dumps(skill))
    lines = [
        codec.dumps({"tick_at": iso(at), "proposal": codec.number_fragments(proposal)}).decode()
        for at, proposal in decisions.items()
    ]
    decision_file.write_text("\n".join(lines))
    venue = "binance" if binance else "hyperliquid"
    files = [str(load.DATA / folders[0] / case["interval"] / f"{symbol}.parquet") for symbol in case["symbols"]]
    files += [str(load.DATA / folders[1] / f"{symbol}.parquet") for symbol in case["symbols"]]
    if binance:
        files += [str(load.DATA / "binance_2023_2024/mark_8h" / f"{symbol}.parquet") for symbol in case["symbols"]]
    pitboss("data", "import", *files, "--venue", venue, "--home", home)
    document = json.loads(
        pitboss(
            "backtest",
            str(skill_file),
            "--from",
            case["start"],
            "--to",
            case["end"],
            "--decisions",
            str(decision_file),
            "--data-venue",
            venue,
            "--json",
            "--home",
            home,
        )
    )
    assert document["status"] == "complete"
    check(document["run_id"], home, expected)
    rejections: dict[str, int] = {}
    for _, outcome, code in expected.verdicts:
        if outcome == "refused" and code:
            rejections[code] = rejections.get(code, 0) + 1
    assert document["metrics"]["rejections_by_rule"] == rejections


def check(run_id: str, home: str, expected: Result) -> None:
    def export(what: str) -> list[dict[str, Any]]:
        return [
            json.loads(line) for line in pitboss("runs", "export", run_id, "--what", what, "--home", home).splitlines()
        ]

    fills = export("fills")
    assert len(fills) == len(expected.fills)
    for got, want in zip(fills, expected.fills, strict=True):
        assert parse_instant(got["at"]) == want["at"]
        for key in ("symbol", "side", "liquidity", "reason"):
            assert got[key] == want[key], (got, want)
        for key in ("size", "price", "fee_usd", "slippage_usd", "penalty_usd"):
            assert abs(Decimal(got[key]) - want[key]) <= TOLERANCE, (key, got, want)
    equity = export("equity")
    assert [parse_instant(point["at"]) for point in equity] == [at for at, _ in expected.equity]
    for got, (at, want) in zip(equity, expected.equity, strict=True):
        assert abs(Decimal(got["equity_usd"]) - want) <= TOLERANCE, iso(at)
    assert pitboss("runs", "verify", run_id, "--home", home)
