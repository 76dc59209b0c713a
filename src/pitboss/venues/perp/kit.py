"""The perp venue's side of a run: what is stored with it, how it is measured, what it is held against."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.instant import Instant, interval_ms
from pitboss.data.lake import Lake
from pitboss.data.listings import listing_notes
from pitboss.sim.metrics import compute, compute_together
from pitboss.sim.outcome import Ledger, fills, read_ledger
from pitboss.store.runs import Run
from pitboss.venues.perp import baselines as baseline
from pitboss.venues.perp.assembly import Assembly, assemble, read_skill
from pitboss.venues.perp.blind import setup as blind
from pitboss.venues.perp.course import PerpCourse, first_state, read_state
from pitboss.venues.perp.form import realism, request_of
from pitboss.venues.perp.request import PerpRequest

if TYPE_CHECKING:
    from pitboss.bootstrap.mcp_tools import Offered
    from pitboss.venues.perp.preview import Preview

new_request = PerpRequest
__all__ = [
    "assemble",
    "fills",
    "first_state",
    "read_ledger",
    "read_skill",
    "read_state",
    "realism",
    "request_of",
]


def preview(
    request: PerpRequest, lake: Lake, settings: Settings, at: Instant | None = None, outside: "Offered | None" = None
) -> "Preview":
    """What a model would be given at a tick."""
    from pitboss.venues.perp.preview import preview as build

    return build(request, lake, settings, at, outside)


def params(assembly: Assembly) -> dict[str, Any]:
    """The request as it is stored, with the disguise it was given and the bars it runs on."""
    disguise = assembly.script.ports.context.disguise
    request = dataclasses.replace(
        assembly.request,
        skill={},
        data_venue=assembly.venue,
        disguise=None if disguise is None else disguise.plain(),
    )
    listings = assembly.script.market.listings
    universe = listing_notes(listings, request.from_at, request.to_at)
    return {
        **codec.plain(request),
        "base_interval": assembly.script.base_interval,
        **({"universe": universe} if universe else {}),
    }


def notes(assembly: Assembly) -> list[str]:
    """What a blind run does without."""
    return blind.notes(assembly.request.blind, assembly.skill)


def measure(assembly: Assembly, ledger: Ledger) -> tuple[dict[str, Any], dict[str, Any]]:
    """Metrics of a run and of its baselines."""
    script, seed = assembly.script, assembly.request.seed
    start, interval = int(script.tick_at[0]), script.tape.interval_ms
    ran = ledger.outcome(start, script.to_at, interval, script.initial_usd)
    baselines = baseline.outcomes(script)
    metrics, *others = compute_together([ran, *baselines.values()], seed)
    return metrics, dict(zip(baselines, others, strict=True))


def measure_again(params: Mapping[str, Any], ledger: Ledger) -> dict[str, Any]:
    """The metrics from the records and the request."""
    request = request_of(params)
    start, to_at, step = span(params)
    return compute(ledger.outcome(start, to_at, step, request.equity_usd), request.seed)


def span(params: Mapping[str, Any]) -> tuple[Instant, Instant, int]:
    """The first tick, the end, and the time between two points of equity."""
    period = interval_ms(params["skill"]["schedule"]["every"])
    start = -(-params["from_at"] // period) * period
    return start, params["to_at"], interval_ms(params["base_interval"])


def changed_course(one: PerpCourse, other: PerpCourse) -> str:
    """What two scripts over the same ticks do not share, if they are no one course; empty if they are."""
    if one.tape.symbols != other.tape.symbols:
        return "context.symbols"
    return "" if one.base_interval == other.base_interval else "the base interval"


def page(workspace: Workspace, run: Run) -> str:
    """The report."""
    from pitboss.venues.perp.panels.page import render
    from pitboss.venues.perp.report_source import build_report

    return render(build_report(workspace, run))
