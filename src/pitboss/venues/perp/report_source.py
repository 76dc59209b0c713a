"""Builds the `RunReport` of a stored perp run from its records and the lake; rendering is in `panels`.

Everything about the run itself comes from its records. Prices and the curves of the baselines come from the lake; if
the data has changed or is gone they are left out, and the report states that.
"""

from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import INTERVALS, Instant, interval_ms, iso
from pitboss.core.money import decimal
from pitboss.core.receipt import Receipt
from pitboss.report.source import RunReport
from pitboss.runs.attribution import attribution_document
from pitboss.runs.report import same_data, shared_report, with_rows
from pitboss.runs.stored import request_of, shown_records
from pitboss.runs.venues import venue_of
from pitboss.sim.metrics import Outcome
from pitboss.store.runs import Run
from pitboss.venues.perp import baselines as baseline
from pitboss.venues.perp.assembly import PerpRun
from pitboss.venues.perp.assumptions import assumptions
from pitboss.venues.perp.course import PerpCourse
from pitboss.venues.perp.excursion import excursion
from pitboss.venues.perp.live_words import live_assumptions, live_sentence
from pitboss.venues.perp.outcome import PerpLedger, read_ledger
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.trades import OpenTrade, Trade, book

MOST_BARS, LEAST_BARS = 1_000_000, 6_000
"""Maximum number of bars of all symbols together in a report, and how many each may have anyway; longer ranges use a coarser
interval."""

FloatCurve = list[tuple[Instant, float]]


def build_report(workspace: Workspace, run: Run) -> RunReport:
    """Return everything that the page of a run shows."""
    request = request_of(run)
    live = live_sentence(run)
    lake_data = (
        _LakeData() if live else _lake_data(workspace, run, request)
    )  # first, so that the market is freed before the records are loaded
    rows: list[dict[str, Any]] = []
    ledger = read_ledger(with_rows(shown_records(workspace, run), rows))
    shared = shared_report(workspace, run, venue_of(request.skill), ledger, rows)
    sentences = assumptions(
        run, request, shared.synthetic, data_available=bool(live) or lake_data.available, receipts=ledger.receipts
    )
    if live:
        shared = _of_deployment(workspace, run, shared, ledger)
    return replace(
        shared,
        live=live,
        baseline_equity=lake_data.baselines,
        prices=lake_data.prices,
        trades=_trades(ledger.receipts, lake_data),
        assumptions=live_assumptions(run, sentences) if live else sentences,
    )


def _of_deployment(workspace: Workspace, run: Run, shared: RunReport, ledger: PerpLedger) -> RunReport:
    """Return the report with what only the records of a deployment contain: its period, its first equity, and its replay."""
    period = {"from": iso(ledger.first_at), "to": iso(ledger.last_at)} if ledger.last_at else {}
    document = {**shared.document, **period}
    initial = shared.initial_usd if ledger.first_usd is None else float(ledger.first_usd)
    deployment = workspace.deployments.of_run(run.id)
    if deployment is None:
        return replace(shared, document=document, initial_usd=initial)
    try:
        attribution, note = attribution_document(workspace, deployment), ""
    except UserError as error:
        attribution, note = None, f"There is no replay: {error.message} ({error.hint})."
    return replace(shared, document=document, initial_usd=initial, attribution=attribution, attribution_note=note)


@dataclass(frozen=True, slots=True)
class _LakeData:
    """What the report takes from the lake; empty if the data is no longer available."""

    available: bool = False
    prices: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    """Rows `(open_at, open, high, low, close)`."""
    bar_ms: int = 0
    """Length of the bars in `prices`."""
    baselines: dict[str, FloatCurve] = field(default_factory=dict)
    last_closes: dict[str, Decimal] = field(default_factory=dict)


def _lake_data(workspace: Workspace, run: Run, request: PerpRequest) -> _LakeData:
    prepared = same_data(workspace, run, request)
    if not isinstance(prepared, PerpRun):
        return _LakeData()
    course = prepared.course()
    symbols = course.tape.symbols
    closes = {symbol: course.market.bars[symbol, course.base_interval].close for symbol in symbols}
    interval = _shown_interval(course)
    return _LakeData(
        available=True,
        prices={symbol: _bars(course, symbol, interval) for symbol in symbols},
        bar_ms=INTERVALS[interval],
        baselines={name: _curve(outcome) for name, outcome in baseline.outcomes(course).items()},
        last_closes={symbol: decimal(float(column[-1])) for symbol, column in closes.items()},
    )


def _curve(outcome: Outcome) -> FloatCurve:
    curve = list(zip(outcome.equity_at, map(float, outcome.equity_usd), strict=True))
    flat = bool(curve) and all(usd == curve[0][1] for _, usd in curve)
    return [curve[0], curve[-1]] if flat else curve


def _shown_interval(course: PerpCourse) -> str:
    """Return the finest interval that every symbol has and that gives few enough bars for the report."""
    symbols, bars, base = course.tape.symbols, course.market.bars, interval_ms(course.base_interval)
    fitting = [
        name
        for name, length in INTERVALS.items()
        if length % base == 0 and all((symbol, name) in bars for symbol in symbols)
    ]
    most = max(MOST_BARS // len(symbols), LEAST_BARS)
    span = course.to_at - int(course.tick_at[0])
    return next((name for name in fitting if span // INTERVALS[name] <= most), fitting[-1])


def _bars(course: PerpCourse, symbol: str, interval: str) -> NDArray[np.float64]:
    bars = course.market.bars[symbol, interval]
    low, high = np.searchsorted(bars.open_at, [int(course.tick_at[0]), course.to_at])
    part = bars.slice(int(low), int(high))
    return np.column_stack((part.open_at.astype(np.float64), part.open, part.high, part.low, part.close))


def _trades(receipts: list[Receipt], lake_data: _LakeData) -> list[dict[str, Any]]:
    trades = book(receipts)
    rows = [
        {**asdict(trade), **_excursion(trade, lake_data, trade.exit_price, trade.closed_at)} for trade in trades.closed
    ]
    for trade in trades.open:
        row = {**asdict(trade), "closed_at": None, "exit_reason": "", **_excursion(trade, lake_data)}
        if trade.symbol in lake_data.last_closes:
            row["pnl_usd"] = trade.pnl_usd(lake_data.last_closes[trade.symbol])
        rows.append(row)
    return rows


def _excursion(
    trade: Trade | OpenTrade, lake_data: _LakeData, exit_price: Decimal | None = None, closed_at: Instant | None = None
) -> dict[str, float]:
    if trade.symbol not in lake_data.prices:
        return {}
    prices = (trade.entry_price, exit_price)
    bars = lake_data.prices[trade.symbol]
    best, worst = excursion(bars, trade.side, prices, trade.opened_at, closed_at, lake_data.bar_ms)
    return {"best_pct": best, "worst_pct": worst}
