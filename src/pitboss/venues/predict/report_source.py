"""Builds the `PredictReport` of a stored predict run from its records and data.

Everything about the run itself comes from its records. The curves of the heuristics, and which markets had a recorded
surface, come from the data. If the data has changed or is missing they are omitted, and the page states that.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.curve import Piece, points
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, iso, parse_instant
from pitboss.models.providers import PROGRAMS
from pitboss.report.shell import ReportPage
from pitboss.runs.report import same_data, shared_report, with_rows
from pitboss.runs.stored import shown_records
from pitboss.runs.venues import venue_of
from pitboss.store.runs import Run
from pitboss.venues.predict.assembly import PredictRun
from pitboss.venues.predict.data.recorded import read_surfaces
from pitboss.venues.predict.live_words import live_assumptions, live_sentence
from pitboss.venues.predict.outcome import MarketCall, PredictLedger, read_predict_ledger
from pitboss.venues.predict.panels import PredictReport, compose
from pitboss.venues.predict.panels.source import Surfaces
from pitboss.venues.predict.policy_replay import played
from pitboss.venues.predict.request import SURFACES_PROTOCOL, PredictRequest


def page_of(workspace: Workspace, run: Run) -> ReportPage:
    """The page of a run."""
    return compose(build_predict_report(workspace, run))


def build_predict_report(workspace: Workspace, run: Run) -> PredictReport:
    """Collect everything the page shows of a run."""
    request = codec.parse(PredictRequest, run.params)
    live = bool(run.params.get("mode"))
    prepared = None if live else same_data(workspace, run, request)
    rows: list[dict[str, Any]] = []
    ledger = read_predict_ledger(with_rows(shown_records(workspace, run), rows))
    shared = shared_report(workspace, run, venue_of(request.skill), ledger, rows)
    page = replace(
        shared,
        document={**shared.document, **(_period(ledger) if live else {})},
        baseline_equity=_curves(prepared, run, ledger) if isinstance(prepared, PredictRun) else {},
        fills=_fills(ledger),
        assumptions=live_assumptions(run)
        if live
        else [*_assumptions(run, request, shared.synthetic, prepared is not None), *shared.assumptions],
        realism=(),
        live=live_sentence(run) if live else "",
    )
    if run.params.get("surfaces_are") == SURFACES_PROTOCOL:
        return PredictReport(page, ledger.calls, "protocol")
    surfaces, note = surfaces_of(request, ledger.calls)
    return PredictReport(page, ledger.calls, surfaces, note)


def _period(ledger: PredictLedger) -> dict[str, str]:
    """Return the first and last instant of a live run, whose parameters have only its start."""
    instants = [at for at, _ in points(ledger.equity)]
    return {"from": iso(instants[0]), "to": iso(instants[-1])} if instants else {}


def surfaces_of(request: PredictRequest, calls: Sequence[MarketCall]) -> tuple[Surfaces, str]:
    """Return the kind of surfaces a run used, and a note on how many of its calls had a recorded surface."""
    if not request.surfaces:
        return "fitted", ""
    try:
        rows = read_surfaces(Path(request.surfaces))
    except UserError:
        return (
            "mixed",
            "The file with the recorded surfaces is missing, so the number of calls that had one is unknown.",
        )
    since: dict[str, int] = {}
    for name, at in zip(rows.market_id, rows.at.tolist(), strict=True):
        since.setdefault(name, at)
    forecast_calls = [call for call in calls if call.forecast]
    with_surface = sum(_had_surface(call, since) for call in forecast_calls)
    if not forecast_calls:
        return "mixed", ""
    complete = with_surface == len(forecast_calls)
    return "recorded" if complete else "mixed", f"{with_surface:,} of {len(forecast_calls):,} calls had a recorded one."


def _had_surface(call: MarketCall, since: dict[str, int]) -> bool:
    """Whether a surface of the call's market, by id or expiry, was available when the call was made."""
    names = [call.market_id]
    with suppress(UserError):  # the id may not follow the paper venue's naming
        names.append(str(parse_instant(call.market_id.partition("-")[2])))
    return any(since.get(name, call.at + 1) <= call.at for name in names)


def _curve(equity: Sequence[Piece]) -> list[tuple[Instant, float]]:
    return [(at, float(usd)) for at, usd in points(equity)]


def _curves(prepared: PredictRun, run: Run, ledger: PredictLedger) -> dict[str, list[tuple[Instant, float]]]:
    """Return the equity curve of each heuristic over the same course; a finished run of a heuristic is reused."""
    own = {run.model.removeprefix("policy/"): ledger} if run.status == "complete" else {}
    return {name: _curve(baseline.equity) for name, baseline in played(prepared.course(), own).items()}


def _fills(ledger: PredictLedger) -> list[dict[str, Any]]:
    """Return one row per trade of the account, with its action."""
    own = (
        receipt
        for receipt in ledger.receipts
        if receipt.kind == "filled" and receipt.facts.get("account") == ledger.account_id
    )
    return [{"at": receipt.at, "reason": receipt.facts["action"]} for receipt in own]


def _assumptions(run: Run, request: PredictRequest, synthetic: bool, data_found: bool) -> list[str]:
    """Return one or two sentences for each assumption of the run."""
    sentences = [
        "Prices are closes of one-minute bars, each available from the end of its bar. A market is priced by the newest of "
        "them and settles at the first one at or after its expiry.",
        "A decision is executed at the first price at or after its tick, with a new quote for its size; it is refused if "
        "that price comes too late.",
        f"One vault of {request.vault_usd:,f} is the counterparty of every contract; no other account trades with it.",
        "There is no fee besides the spread. Winning contracts are paid out when their market settles; contracts that have "
        "not settled by the end are valued at their bid.",
        f"Up to {request.max_gap} missing bars in a row were tolerated; during a gap prices become stale and mints are refused.",
    ]
    if request.decisions is not None:
        sentences.append("The decisions were read from a file. Its author may have known later prices.")
    elif run.model.startswith(PROGRAMS):
        sentences.append(f"{run.model} is a fixed rule that reads numbers; it does not read the skill's text.")
    if synthetic:
        sentences.append("The prices are synthetic: generated by `pitboss data demo`. They are not market data.")
    if not data_found:
        sentences.append(
            "The data of this run is missing or has changed, so the equity curves of the heuristics are omitted; their figures "
            "are those computed when the run ended."
        )
    return sentences
