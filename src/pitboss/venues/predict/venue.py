"""Implements the `Venue` interface for the predict venue: binary contracts priced by a volatility surface."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pitboss.runs.venue import Venue

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from pitboss.bootstrap.settings import Settings
    from pitboss.bootstrap.workspace import Workspace
    from pitboss.core.decision_format import DecisionFormat
    from pitboss.core.instant import Instant
    from pitboss.core.receipt import Receipt
    from pitboss.core.state import State
    from pitboss.data.lake import Lake
    from pitboss.report.meaning import Metric, RuleMeaning
    from pitboss.report.shell import ReportPage
    from pitboss.runs.charts import Charts
    from pitboss.runs.live_deployment import LiveDeployment
    from pitboss.runs.result_table import ResultTable
    from pitboss.sim.speculation_window import HoldPrior
    from pitboss.store.runs import Run
    from pitboss.venues.predict.assembly import PredictRun
    from pitboss.venues.predict.course import PredictCourse
    from pitboss.venues.predict.outcome import PredictLedger, PredictOutcome
    from pitboss.venues.predict.request import PredictRequest
    from pitboss.venues.predict.settings import PredictSettings
    from pitboss.venues.predict.skill import PredictSkill


class PredictVenue(Venue):
    """Binary prediction markets, as on DeepBook Predict."""

    name = "predict"
    package = "pitboss.venues.predict"
    summary = "binary contracts on the price of BTC, paid by one vault"
    commands = "pitboss.venues.predict.commands:app"
    commands_help = "Binary prediction markets: backtest a skill, run it live, prices, markets, recorded rounds, the account on Sui."
    money = "DUSDC"
    demo_options = "--from 2024-12-31 --to 2025-01-01 --model standin/analyst"
    file_fields = frozenset({"surfaces"})
    live_modes = ("paper", "live")

    def open_live(self, live: "LiveDeployment") -> "AbstractAsyncContextManager[Any]":
        from pitboss.venues.predict.live_deployment import open_live

        return open_live(live)

    def settings_type(self) -> "type[PredictSettings]":
        from pitboss.venues.predict.settings import PredictSettings

        return PredictSettings

    def skill_type(self) -> "type[PredictSkill]":
        from pitboss.venues.predict.skill import PredictSkill

        return PredictSkill

    def decision(self) -> "DecisionFormat":
        from pitboss.venues.predict.intents import DECISION

        return DECISION

    def first_steps(self, skill_file: str) -> list[str]:
        return [
            *Venue.first_steps(self, skill_file),
            "pitboss predict markets              # those on the protocol's schedule",
            f"pitboss predict run {skill_file} --model policy/alternate --scheduled    # on paper, on live prices",
        ]

    def policies(self) -> Mapping[str, str]:
        from pitboss.venues.predict.heuristics import heuristics

        return {name: policy.summary for name, policy in sorted(heuristics().items())}

    def charts(self, skill: "PredictSkill") -> "Charts":
        from pitboss.runs.charts import Charts
        from pitboss.venues.predict.assembly import BASE

        context = skill.context
        return Charts(((BASE, context.candles_minutes),), (context.underlying,))

    def request_type(self) -> "type[PredictRequest]":
        from pitboss.venues.predict.request import PredictRequest

        return PredictRequest

    def options(self) -> type:
        from pitboss.venues.predict.options import PredictOptions

        return PredictOptions

    def fallback_model(self, model: str, settings: "Settings") -> tuple[str, str]:
        from pitboss.venues.predict.agent import fallen_back

        return fallen_back(model, settings)

    def realism(self, request: "PredictRequest") -> dict[str, dict[str, str]]:
        from pitboss.venues.predict.request import realism

        return realism(request)

    def prepare(self, request: "PredictRequest", lake: "Lake", settings: "Settings") -> "PredictRun":
        from pitboss.venues.predict.assembly import prepare

        return prepare(request, lake, settings)

    def params(self, prepared: "PredictRun") -> dict[str, Any]:
        """Return the parameters, with the kind of surfaces of the run."""
        from pitboss.venues.predict.assembly import BASE
        from pitboss.venues.predict.request import surfaces_words

        plain = Venue.params(self, prepared)
        return {**plain, "base_interval": BASE, "surfaces_are": surfaces_words(plain)}

    def notes(self, prepared: "PredictRun") -> list[str]:
        from pitboss.core import codec
        from pitboss.venues.predict.request import surfaces_words

        surfaces = surfaces_words(codec.plain(dataclasses.replace(prepared.request, skill={})))
        return [f"surfaces are {surfaces}", *Venue.notes(self, prepared)]

    def hold_prior(self) -> "HoldPrior":
        """Return a prior that counts as few ticks: some of its agents hold for hours, others mint at every tick."""
        from pitboss.sim.speculation_window import HoldPrior

        return HoldPrior(holds=8.0, orders=1.0)

    def first_state(self, course: "PredictCourse") -> "State":
        from pitboss.venues.predict.course import first_state

        return first_state(course)

    def read_state(self, plain: object) -> "State":
        from pitboss.venues.predict.ports import read_state

        return read_state(plain)

    def breaches(
        self, skill: "PredictSkill", ticks: Sequence[Mapping[str, Any]]
    ) -> "Iterator[tuple[Instant, str, str]]":
        from pitboss.venues.predict.record_audit import breaches

        return breaches(skill, ticks)

    def cut_request(self, request: "PredictRequest", at: "Instant", folder: "Path") -> "PredictRequest":
        """Cut the file of recorded surfaces."""
        from pathlib import Path

        from pitboss.venues.predict.data.recorded import write_surfaces_until

        if not request.surfaces:
            return request
        copy = folder / "surfaces.parquet"
        write_surfaces_until(Path(request.surfaces), at, copy)
        return dataclasses.replace(request, surfaces=str(copy))

    def course_difference(self, before: "PredictRun", after: "PredictRun") -> str:
        if before.skill.context.underlying != after.skill.context.underlying:
            return "context.underlying"
        return "" if before.skill.context.sorted_tiers() == after.skill.context.sorted_tiers() else "context.tiers"

    def ledger(self) -> "PredictLedger":
        from pitboss.venues.predict.outcome import PredictLedger

        return PredictLedger()

    def measure(
        self, prepared: "PredictRun", course: "PredictCourse", ledger: "PredictLedger"
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return metrics and baselines: other forecasters on the same calls, heuristics over the same prices."""
        from pitboss.core.instant import interval_ms
        from pitboss.venues.predict.assembly import BASE
        from pitboss.venues.predict.baselines import baseline_metrics
        from pitboss.venues.predict.metrics import compute_predict
        from pitboss.venues.predict.policy_replay import played

        request = prepared.request
        outcome = ledger.outcome(int(course.tick_at[0]), course.to_at, interval_ms(BASE), request.equity_usd)
        own = {request.source.removeprefix("policy/"): ledger}  # a run of a heuristic is its own baseline
        metrics = compute_predict(outcome, request.seed)
        return metrics, baseline_metrics(outcome, played(course, own), request.seed)

    def compute(self, outcome: "PredictOutcome", seed: int) -> dict[str, Any]:
        from pitboss.venues.predict.metrics import compute_predict

        return compute_predict(outcome, seed)

    def measure_again(self, params: Mapping[str, Any], ledger: "PredictLedger") -> dict[str, Any]:
        if "markets" in params:  # a live run, which ends with its last record
            params = {**params, "to_at": ledger.end_at(params["from_at"])}
        return Venue.measure_again(self, params, ledger)

    def span(self, params: Mapping[str, Any]) -> "tuple[Instant, Instant, int]":
        from pitboss.venues.predict.assembly import BASE

        if params.get("every_ms") and "markets" in params:  # the period of a live run may differ from its skill's
            every_ms = params["every_ms"]
            return -(-params["from_at"] // every_ms) * every_ms, params["to_at"], every_ms
        return Venue.span(self, {**params, "base_interval": BASE})  # live runs of earlier versions do not store it

    def fills(self, receipts: "Iterable[Receipt]") -> Iterator[dict[str, Any]]:
        from pitboss.venues.predict.outcome import predict_fills

        return predict_fills(receipts)

    def metrics(self) -> "Mapping[str, Metric]":
        from pitboss.venues.predict.meaning import METRICS

        return METRICS

    def study_metrics(self) -> tuple[str, ...]:
        return ("total_return_pct", "brier", "log_loss", "hit_rate", "calls")

    def rule_meanings(self) -> "Mapping[str, RuleMeaning]":
        from pitboss.venues.predict.meaning import RULES

        return RULES

    def describe_intent(self, row: Mapping[str, Any]) -> str:
        from pitboss.venues.predict.meaning import describe_decision

        return describe_decision(row)

    def page(self, workspace: "Workspace", run: "Run") -> "ReportPage":
        from pitboss.venues.predict.report_source import page_of

        return page_of(workspace, run)

    def result_tables(self, run: "Run") -> "list[ResultTable]":
        from pitboss.venues.predict.result_table import result_tables

        return result_tables(run)


VENUE = PredictVenue()
