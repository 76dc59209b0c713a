"""The predict venue's side of a run: what is stored with it, how it is measured, what it is held against."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.instant import Instant, interval_ms
from pitboss.data.lake import Lake
from pitboss.store.runs import Run
from pitboss.venues.predict.agent import read_predict_skill as read_skill
from pitboss.venues.predict.assembly import BASE, PredictAssembly, assemble
from pitboss.venues.predict.baselines import baseline_metrics
from pitboss.venues.predict.course import PredictCourse, first_state
from pitboss.venues.predict.form import PredictRequest, realism, request_of, surfaces_words
from pitboss.venues.predict.heuristics import heuristics
from pitboss.venues.predict.ladder_policy import LEAST
from pitboss.venues.predict.metrics import compute_predict
from pitboss.venues.predict.outcome import PredictLedger
from pitboss.venues.predict.outcome import predict_fills as fills
from pitboss.venues.predict.outcome import read_predict_ledger as read_ledger
from pitboss.venues.predict.policy_replay import play
from pitboss.venues.predict.ports import read_state

if TYPE_CHECKING:
    from pitboss.bootstrap.mcp_tools import Offered
    from pitboss.venues.perp.preview import Preview

new_request = PredictRequest
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
    request: PredictRequest, lake: Lake, settings: Settings, at: Instant | None = None, outside: "Offered | None" = None
) -> "Preview":
    """What a model would be given at a tick. No MCP servers are offered on this venue."""
    from pitboss.venues.predict.preview import preview as build

    del outside
    return build(request, lake, settings, at)


def params(assembly: PredictAssembly) -> dict[str, Any]:
    """The request as it is stored, and which surfaces the run had."""
    request = dataclasses.replace(assembly.request, skill={}, data_venue=assembly.venue)
    plain: dict[str, Any] = codec.plain(request)
    return {**plain, "base_interval": BASE, "surfaces_are": surfaces_words(plain)}


def notes(assembly: PredictAssembly) -> list[str]:
    """What every number of the run rests on."""
    return [f"surfaces are {surfaces_words(codec.plain(dataclasses.replace(assembly.request, skill={})))}"]


def measure(assembly: PredictAssembly, ledger: PredictLedger) -> tuple[dict[str, Any], dict[str, Any]]:
    """Metrics of a run, scores of other forecasters on its calls, and the heuristics' trading over the same prices."""
    script, request = assembly.script, assembly.request
    ran = ledger.outcome(int(script.tick_at[0]), script.to_at, interval_ms(BASE), request.equity_usd)
    own = {request.source.removeprefix("policy/"): ledger}  # a run of a heuristic is its own baseline
    return compute_predict(ran, request.seed), baseline_metrics(ran, played(script, own), request.seed)


def measure_again(params: Mapping[str, Any], ledger: PredictLedger) -> dict[str, Any]:
    """The metrics from the records and the request."""
    request = request_of(params)
    return compute_predict(ledger.outcome(*span(params), request.equity_usd), request.seed)


def span(params: Mapping[str, Any]) -> tuple[Instant, Instant, int]:
    """The first tick, the end, and the time between two points of equity."""
    period = read_skill(params["skill"]).schedule.every_ms
    return -(-params["from_at"] // period) * period, params["to_at"], interval_ms(BASE)


def changed_course(one: PredictCourse, other: PredictCourse) -> str:
    """What two scripts over the same ticks do not share, if they are no one course; empty if they are."""
    if one.ports.underlying != other.ports.underlying:
        return "context.underlying"
    return "" if one.tiers == other.tiers else "context.tiers"


def page(workspace: Workspace, run: Run) -> str:
    """The report."""
    from pitboss.runs.stored import journal_of
    from pitboss.venues.predict.report_source import page_of

    return page_of(workspace, run, read_ledger(journal_of(workspace, run).records()), played)


def played(script: PredictCourse, known: Mapping[str, PredictLedger]) -> dict[str, PredictLedger]:
    """Every heuristic over the same course, with the same caps and the same money; `known` need not be played again."""
    return {name: known.get(name) or play(script, policy.intent, LEAST) for name, policy in heuristics().items()}
