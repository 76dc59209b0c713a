"""From a stored run to its report: reads records and data, puts them into a `RunReport`, writes the page.

Everything about the run itself comes from its records. Prices and the curves of the baselines come from the lake; if
the data has changed or is gone they are left out, and the report says so.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, fields
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from pitboss import __version__
from pitboss.bootstrap.kits import kit_of
from pitboss.bootstrap.machine import new_id
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.curve import points
from pitboss.core.errors import UserError
from pitboss.core.instant import INTERVALS, Instant, interval_ms
from pitboss.core.money import decimal
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import Record
from pitboss.models.providers import PROGRAMS
from pitboss.report.decisions import MOST_ROWS
from pitboss.report.source import RunReport
from pitboss.runs.stored import decision_rows, document, is_synthetic, journal_of, request_of
from pitboss.sim.metrics import Outcome
from pitboss.sim.outcome import fills, read_ledger
from pitboss.skill.document import to_json
from pitboss.skill.load import check_plain
from pitboss.store.runs import Run
from pitboss.venues.perp import baselines as baseline
from pitboss.venues.perp import realism
from pitboss.venues.perp.assembly import Assembly, PerpRequest, assemble
from pitboss.venues.perp.assumptions import assumptions
from pitboss.venues.perp.blind import setup as blind
from pitboss.venues.perp.trades import OpenTrade, Trade, book

MOST_BARS = 6_000
"""Bars of a symbol that go into a report; longer ranges are shown in a coarser interval."""

Curve = list[tuple[Instant, float]]


def write_report(workspace: Workspace, run_id: str, out: Path | None = None) -> Path:
    """Write the page of a run, to its place in the workspace unless another is named, and remember where."""
    run = workspace.runs.get(run_id)
    path = (out or workspace.report_path(run.id)).absolute()
    page = kit_of(run.params["skill"]).page(workspace, run)
    part = path.with_name(f".{path.name}.{new_id()[:8]}.part")  # of this writer alone: another may write the same page
    try:
        if out is None:
            path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(page, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}", "name another file with --out") from None
    finally:
        with suppress(OSError):
            part.unlink()  # also after a Ctrl-C
    workspace.runs.set_report(run.id, str(path))
    return path


def build_report(workspace: Workspace, run: Run) -> RunReport:
    """Everything the page shows of a run."""
    request = request_of(run)
    scene = _scene(workspace, run, request)  # first, so that the market is out of memory before the records come in
    rows: list[dict[str, Any]] = []
    ledger = read_ledger(noticing(journal_of(workspace, run).records(), rows))
    synthetic = is_synthetic(workspace, run)
    return RunReport(
        document=document(run, workspace.settings.model_cutoffs),
        skill_name=str(request.skill.get("name", "")),
        skill_text=skill_text(request),
        initial_usd=float(request.equity_usd),
        equity=[(at, float(usd)) for at, usd in points(ledger.equity)],
        baseline_equity=scene.baselines,
        prices=scene.prices,
        fills=list(fills(ledger.receipts)),
        decisions=blind.unmasked(rows, blind.disguise_of(run.params)),
        trades=_trades(ledger.receipts, scene.last_closes),
        assumptions=assumptions(run, request, synthetic, data_found=scene.found, receipts=ledger.receipts),
        realism=realism.rows(request),
        synthetic=synthetic,
        standin=run.model.startswith(PROGRAMS),
        halts=[
            {"at": receipt.at, "kind": receipt.facts["halt"]} for receipt in ledger.receipts if receipt.kind == "halted"
        ],
        version=str(run.params.get("version", __version__)),
    )


@dataclass(frozen=True, slots=True)
class _Scene:
    """What the report takes from the lake; empty if the data is not there any more."""

    found: bool = False
    prices: dict[str, list[tuple[int, float, float, float, float]]] = field(default_factory=dict)
    baselines: dict[str, Curve] = field(default_factory=dict)
    last_closes: dict[str, Decimal] = field(default_factory=dict)


def _scene(workspace: Workspace, run: Run, request: PerpRequest) -> _Scene:
    assembly = same_data(workspace, run, request)
    if assembly is None:
        return _Scene()
    symbols, script = assembly.script.tape.symbols, assembly.script
    closes = {symbol: script.market.bars[symbol, script.base_interval].close for symbol in symbols}
    return _Scene(
        found=True,
        prices={symbol: _bars(assembly, symbol) for symbol in symbols},
        baselines={name: _curve(outcome) for name, outcome in baseline.outcomes(script).items()},
        last_closes={symbol: decimal(float(column[-1])) for symbol, column in closes.items()},
    )


def _curve(outcome: Outcome) -> Curve:
    curve = list(zip(outcome.equity_at, map(float, outcome.equity_usd), strict=True))
    flat = bool(curve) and all(usd == curve[0][1] for _, usd in curve)
    return [curve[0], curve[-1]] if flat else curve


def same_data(workspace: Workspace, run: Run, request: PerpRequest) -> Assembly | None:
    """The run's data as it was, or None if it is not there any more."""
    try:
        assembly = assemble(request, workspace.lake_of(run.params), workspace.settings)
    except UserError:
        return None
    return assembly if assembly.data_digest == run.data_digest else None


def skill_text(request: PerpRequest) -> str:
    """The skill as it ran, overrides included."""
    check = check_plain(dict(request.skill))
    body = to_json(check.skill) if check.skill else codec.dumps(codec.number_fragments(dict(request.skill)))
    return orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2).decode()


def noticing(records: Iterable[Record], rows: list[dict[str, Any]]) -> Iterator[Record]:
    """Pass the records on, and gather a row for each decision on the way.

    A page shows the details of a couple of thousand decisions at most, so those that it cannot show are not kept: a
    year of them would fill the memory.
    """
    quiet, acting, recent = 0, 0, deque[dict[str, Any]]()
    for record in records:
        for row in decision_rows(record):
            rows.append(row)
            if row["outcome"] == "noop":
                quiet += 1
                if quiet > MOST_ROWS:
                    _bare(row)
                continue
            acting += 1
            if acting > MOST_ROWS:
                recent.append(row)
            if len(recent) > MOST_ROWS:
                _bare(recent.popleft())
        yield record


def _bare(row: dict[str, Any]) -> None:
    for name in ("margins", "steps", "text", "detail"):
        row.pop(name, None)


def _bars(assembly: Assembly, symbol: str) -> list[tuple[int, float, float, float, float]]:
    script = assembly.script
    start, base = int(script.tick_at[0]), interval_ms(script.base_interval)
    fitting = [
        name for name, length in INTERVALS.items() if length % base == 0 and (symbol, name) in script.market.bars
    ]
    coarse = (name for name in fitting if (script.to_at - start) // INTERVALS[name] <= MOST_BARS)
    bars = script.market.bars[symbol, next(coarse, fitting[-1])]
    low, high = np.searchsorted(bars.open_at, [start, script.to_at])
    part = bars.slice(int(low), int(high))
    columns = (part.open_at, part.open, part.high, part.low, part.close)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _trades(receipts: list[Receipt], last_closes: dict[str, Decimal]) -> list[dict[str, Any]]:
    trades = book(receipts)
    rows = [_fields(trade) for trade in trades.closed]
    for trade in trades.open:
        row = {**_fields(trade), "closed_at": None, "exit_reason": "still open"}
        if trade.symbol in last_closes:
            row["pnl_usd"] = trade.pnl_usd(last_closes[trade.symbol])
        rows.append(row)
    return rows


def _fields(trade: Trade | OpenTrade) -> dict[str, Any]:
    return {field.name: getattr(trade, field.name) for field in fields(trade)}
