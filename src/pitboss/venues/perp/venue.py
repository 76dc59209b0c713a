"""The perp venue behind the platform's `Venue` interface: perpetual futures with funding and liquidation."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pitboss.runs.venue import Venue

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from pitboss.bootstrap.settings import Settings
    from pitboss.bootstrap.trading_accounts import TradingAccount
    from pitboss.bootstrap.workspace import Workspace
    from pitboss.core.decision_format import DecisionFormat
    from pitboss.core.instant import Instant
    from pitboss.core.receipt import Receipt
    from pitboss.core.state import State
    from pitboss.data.lake import Lake
    from pitboss.report.markup import Html
    from pitboss.report.meaning import Metric, RuleMeaning
    from pitboss.report.shell import ReportPage
    from pitboss.report.source import RunReport
    from pitboss.runs.account_guardian import AccountGuardian
    from pitboss.runs.attribution_result import Attribution
    from pitboss.runs.charts import Charts
    from pitboss.runs.checklist import Check
    from pitboss.runs.live_deployment import DeployRequest, LiveDeployment
    from pitboss.runs.result_table import ResultTable
    from pitboss.sim.connections import Connections
    from pitboss.sim.metrics import Outcome
    from pitboss.skill.names import Names
    from pitboss.skill.schema import SkillDocument
    from pitboss.store.deployments import Deployment
    from pitboss.store.runs import Run
    from pitboss.venues.perp.assembly import PerpRun
    from pitboss.venues.perp.course import PerpCourse
    from pitboss.venues.perp.live import PerpLive
    from pitboss.venues.perp.outcome import PerpLedger
    from pitboss.venues.perp.request import PerpRequest
    from pitboss.venues.perp.skill import PerpSkill


class PerpVenue(Venue):
    """Perpetual futures, as on Hyperliquid."""

    name = "perp"
    package = "pitboss.venues.perp"
    summary = "perpetual futures with funding, leverage and liquidation"
    judged_by = "sharpe"
    red_team = "pitboss.venues.perp.redteam.attack_run:make_setup"
    live_modes = ("paper", "shadow", "live")

    def skill_type(self) -> "type[PerpSkill]":
        from pitboss.venues.perp.skill import PerpSkill

        return PerpSkill

    def decision(self) -> "DecisionFormat":
        from pitboss.venues.perp.intents import DECISION

        return DECISION

    def names(self, settings: "Settings") -> "Names":
        from pitboss.skill.names import Names
        from pitboss.tools.registry import agent_tools
        from pitboss.venues.perp.symbols import available_symbols

        symbols = available_symbols(settings)
        paths = (("context", "symbols"), ("risk", "allowed_symbols"))
        return Names(agent_tools(self.tools()), None, dict.fromkeys(paths, ("symbol", symbols)))

    def policies(self) -> Mapping[str, str]:
        from pitboss.venues.perp.policy import policies

        return {name: policy.summary for name, policy in policies().items()}

    def baseline_models(self) -> tuple[str, ...]:
        return ("policy/hold", "policy/buy_and_hold", "policy/random")

    def charts(self, skill: "PerpSkill") -> "Charts":
        from pitboss.runs.charts import Charts
        from pitboss.venues.perp.sections import HIGHER_BARS

        context = skill.context
        most = context.bars_lookback
        higher = ((interval, min(most, HIGHER_BARS)) for interval in context.timeframes())
        tables = ((context.bars_interval, most), *higher)
        return Charts(tables, context.sorted_symbols, bool(context.news_top_k))

    def request_type(self) -> "type[PerpRequest]":
        from pitboss.venues.perp.request import PerpRequest

        return PerpRequest

    def options(self) -> type:
        from pitboss.venues.perp.options import PerpOptions

        return PerpOptions

    def realism(self, request: "PerpRequest") -> dict[str, dict[str, str]]:
        from pitboss.venues.perp.realism import settings

        return settings(request)

    def prepare(self, request: "PerpRequest", lake: "Lake", settings: "Settings") -> "PerpRun":
        from pitboss.venues.perp.assembly import prepare

        return prepare(request, lake, settings)

    def course_at(
        self,
        request: "PerpRequest",
        lake: "Lake",
        settings: "Settings",
        at: "Instant | None" = None,
        connections: "Connections | None" = None,
    ) -> "tuple[PerpCourse, State, Instant]":
        from pitboss.venues.perp.preview import course_at

        return course_at(request, lake, settings, at, connections)

    def params(self, prepared: "PerpRun") -> dict[str, Any]:
        """Return the run's stored parameters: request, blind-run mapping, base interval and listing periods."""
        from pitboss.data.listings import listing_notes
        from pitboss.venues.perp.funding_notes import funding_notes

        request = prepared.request
        universe = listing_notes(prepared.market.listings, request.from_at, request.to_at)
        if prepared.base_gap:
            universe.append(f"{prepared.base_gap}; so the market moves in bars of {prepared.base_interval}.")
        symbols = prepared.skill.context.sorted_symbols
        universe += funding_notes(prepared.market, symbols, request.from_at, request.to_at)
        listed = {"universe": universe} if universe else {}
        return {**Venue.params(self, prepared), "base_interval": prepared.base_interval, **listed}

    def first_state(self, course: "PerpCourse") -> "State":
        from pitboss.venues.perp.course import first_state

        return first_state(course)

    def read_state(self, plain: object) -> "State":
        from pitboss.venues.perp.course import read_state

        return read_state(plain)

    def check_live(self, workspace: "Workspace", deploy: "DeployRequest") -> dict[str, Any]:
        from pitboss.venues.perp.live_checks import check_deployment

        return check_deployment(workspace, deploy)

    def open_live(self, live: "LiveDeployment") -> "AbstractAsyncContextManager[PerpLive]":
        from pitboss.venues.perp.live import open_live

        return open_live(live)

    def open_guardian(
        self, workspace: "Workspace", deployment: "Deployment"
    ) -> "AbstractAsyncContextManager[AccountGuardian]":
        from pitboss.venues.perp.live_guardian import open_guardian

        return open_guardian(workspace, deployment)

    def attribution(
        self, workspace: "Workspace", run: "Run", span: "tuple[Instant, Instant]", data_venue: str
    ) -> "Attribution":
        from pitboss.venues.perp.attribution import attribution

        return attribution(workspace, run, *span, data_venue)

    async def preflight(
        self, workspace: "Workspace", account: "TradingAccount", skill: "SkillDocument | None"
    ) -> "list[Check]":
        from pitboss.venues.perp.live_preflight import preflight_checks
        from pitboss.venues.perp.skill import PerpSkill

        return await preflight_checks(workspace, account, skill if isinstance(skill, PerpSkill) else None)

    def course_difference(self, before: "PerpRun", after: "PerpRun") -> str:
        if before.skill.context.sorted_symbols != after.skill.context.sorted_symbols:
            return "context.symbols"
        return "" if before.base_interval == after.base_interval else "the base interval"

    def ledger(self) -> "PerpLedger":
        from pitboss.venues.perp.outcome import PerpLedger

        return PerpLedger()

    def measure(
        self, prepared: "PerpRun", course: "PerpCourse", ledger: "PerpLedger"
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        from pitboss.venues.perp import baselines
        from pitboss.venues.perp.metrics import compute_together

        interval_ms = course.tape.interval_ms
        outcome = ledger.outcome(int(course.tick_at[0]), course.to_at, interval_ms, course.initial_usd)
        baseline_outcomes = baselines.outcomes(course)
        metrics, *figures = compute_together([outcome, *baseline_outcomes.values()], prepared.request.seed)
        return metrics, dict(zip(baseline_outcomes, figures, strict=True))

    def measure_again(self, params: Mapping[str, Any], ledger: "PerpLedger") -> dict[str, Any]:
        """Compute the metrics from the stored records. A deployment is requested without range and equity: its records have both."""
        if params["to_at"] > params["from_at"]:
            return Venue.measure_again(self, params, ledger)
        request = self.request_of(params)
        initial_usd = request.equity_usd if ledger.first_usd is None else ledger.first_usd
        step = self.span(params)[2]
        return self.compute(ledger.outcome(ledger.first_at, ledger.last_at, step, initial_usd), request.seed)

    def compute(self, outcome: "Outcome", seed: int) -> dict[str, Any]:
        from pitboss.venues.perp.metrics import compute

        return compute(outcome, seed)

    def fills(self, receipts: "Iterable[Receipt]") -> Iterator[dict[str, Any]]:
        from pitboss.venues.perp.outcome import fills

        return fills(receipts)

    def trades(self, receipts: "Iterable[Receipt]") -> "Iterable[dict[str, Any]]":
        from pitboss.venues.perp.trades import trade_rows

        return trade_rows(receipts)

    def closed_trades(self, receipts: "Iterable[Receipt]") -> "list[tuple[Instant, bool]]":
        from pitboss.venues.perp.trades import book

        return [(trade.closed_at, trade.pnl_usd > 0) for trade in book(list(receipts)).closed]

    def metrics(self) -> "Mapping[str, Metric]":
        from pitboss.venues.perp.meaning import METRICS

        return METRICS

    def study_metrics(self) -> tuple[str, ...]:
        return ("total_return_pct", "sharpe", "max_drawdown_pct", "total_trades")

    def rule_meanings(self) -> "Mapping[str, RuleMeaning]":
        from pitboss.venues.perp.meaning import RULES

        return RULES

    def describe_intent(self, row: Mapping[str, Any]) -> str:
        from pitboss.venues.perp.meaning import describe_proposal

        return describe_proposal(row)

    def page(self, workspace: "Workspace", run: "Run") -> "ReportPage":
        from pitboss.venues.perp.panels.page import compose
        from pitboss.venues.perp.report_source import build_report

        return compose(build_report(workspace, run))

    def chart(self, part: str, report: "RunReport") -> "Html | None":
        """Return the equity chart or, for `price/SYMBOL`, the bars of a symbol with the orders in it."""
        from pitboss.report.decisions import anchors
        from pitboss.venues.perp.panels.price import price_chart

        kind, _, symbol = part.partition("/")
        if kind == "price" and symbol in report.prices:
            return price_chart(report, symbol, anchors(report.decisions))
        return Venue.chart(self, part, report)

    def result_tables(self, run: "Run") -> "list[ResultTable]":
        from pitboss.venues.perp.result_table import result_table

        return [result_table(run)]


VENUE = PerpVenue()
