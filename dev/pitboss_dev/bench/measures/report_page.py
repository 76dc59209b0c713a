"""Rendering the report page of a long run: a year of 5m bars and 2,000 decisions with reasons, margins and steps."""

from collections.abc import Iterable
from time import process_time
from typing import Any

from pitboss.core.instant import iso
from pitboss.core.market import Bars
from pitboss.report.shell import html_document
from pitboss.report.source import RunReport
from pitboss.venues.perp.panels.page import compose
from pitboss_dev.bench.market import MarketShape, random_walk
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import LIMIT, BenchRow, RatioGate
from pitboss_dev.bench.timing import interleave

DECISIONS = 2_000
INITIAL_USD = 10_000.0
LIMIT_MS = 2_000.0


def measure(bench: Bench) -> Iterable[BenchRow]:
    """One row against a fixed limit."""
    shape = MarketShape(bench.scale.year_days)
    report = _report(random_walk("SOL", shape), shape)
    cpu_ms = interleave({"page": lambda: _cpu_seconds(report)}, bench.repeats)["page"] * 1e3
    note = f"{len(report.equity):,} bars, {len(report.decisions):,} decisions, {len(html_document(compose(report)).encode()):,} bytes"
    yield BenchRow("report page of a year", cpu_ms, "ms CPU", LIMIT, LIMIT_MS, RatioGate("at most", 1.0), note)


def _cpu_seconds(report: RunReport) -> float:
    """Processor time, which other programs on the machine change little."""
    start = process_time()
    html_document(compose(report))
    return process_time() - start


def _report(bars: Bars, shape: MarketShape) -> RunReport:
    at, close = bars.open_at.tolist(), bars.close.tolist()
    rows = zip(at, bars.open.tolist(), bars.high.tolist(), bars.low.tolist(), close, strict=True)
    equity = [(moment, INITIAL_USD * price / close[0]) for moment, price in zip(at, close, strict=True)]
    document = {"run_id": "bench", "status": "complete", "from": iso(at[0]), "to": iso(shape.end_at)}
    return RunReport(
        document,
        "bench",
        "pitboss: 1\nname: bench\n",
        INITIAL_USD,
        equity,
        baseline_equity={"buy_and_hold": equity},
        prices={"SOL": list(rows)},
        decisions=[_decision(number, at[number * len(at) // DECISIONS]) for number in range(DECISIONS)],
    )


def _decision(number: int, at: int) -> dict[str, Any]:
    call = {"name": "fetch_recent_bars", "arguments": {"symbol": "SOL"}, "result": "row " * 500}
    return {
        "seq": number,
        "tick_at": iso(at),
        "action": "open_long",
        "symbol": "SOL",
        "size_usd": "4000",
        "leverage": 2,
        "outcome": "refused",
        "code": "R3_POSITION_CAP",
        "reason": f"{number} " + "because " * 30,
        "margins": [{"code": "R3_POSITION_CAP", "limit": "2500", "used": "4000", "left": "-1500", "unit": "USD"}],
        "steps": [{"text": "word " * 300, "calls": [call]}] * 3,
    }


MEASURE = Measure("report_page", "rendering the report page of a year", measure, 52)
