"""The coin venue as pitboss sees it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pitboss.core.decision_format import DecisionFormat
from pitboss.core.instant import Instant
from pitboss.core.ports import ToolSpec
from pitboss.core.rulebook import Rule
from pitboss.core.state import State
from pitboss.data.lake import Lake
from pitboss.report.meaning import Metric, RuleMeaning
from pitboss.runs.preview import Preview, check_tick, offered
from pitboss.runs.venue import Venue
from pitboss.sim.metrics import shared_metrics
from pitboss.sim.outcome import Ledger
from pitboss.sim.request import BacktestRequest
from pitboss.skill.load import read_skill
from pitboss.tools.registry import Registry, registry_of
from pitboss_coin.intents import DECISION
from pitboss_coin.rules import RULES
from pitboss_coin.run import CoinCourse, CoinRun, prepare, read_state
from pitboss_coin.skill import CoinSkill
from pitboss_coin.world import CoinWorld


class CoinVenue(Venue):
    """Bets on whether the next bar closes above its open."""

    name = "coin"
    package = "pitboss_coin"
    summary = "a toy: bets on whether the next bar closes above its open"

    def skill_type(self) -> type[CoinSkill]:
        return CoinSkill

    def decision(self) -> DecisionFormat:
        return DECISION

    def tools(self) -> Registry:
        return registry_of("pitboss_coin.tools")

    def policies(self) -> Mapping[str, str]:
        return {"heads": "the largest stake on heads at every tick"}

    def rules(self) -> tuple[Rule, ...]:
        return RULES

    def prepare(self, request: BacktestRequest, lake: Lake, settings: Any) -> CoinRun:
        return prepare(request, lake, settings)

    def preview(
        self, request: BacktestRequest, lake: Lake, settings: Any, at: Instant | None = None, server_tools: Any = None
    ) -> Preview:
        del server_tools
        skill = read_skill(request.skill, CoinSkill)
        period = skill.every_ms
        if at is None:
            data_venue = request.data_venue or settings.data_venue or lake.venues("bars")[0]
            extent = lake.extent(data_venue, skill.symbol, skill.every)
            at = (extent[1] if extent else 0) // period * period
        check_tick(at, period, skill.every)
        run = prepare(replace(request, from_at=at, to_at=at + period, model="standin/analyst"), lake, settings)
        course = run.course()
        prompt = course.ports.context.prompt(course.ports.observe(self.first_state(course), at))
        tools = [ToolSpec(tool.name, tool.description, tool.schema) for tool in self.tools().values()]
        return Preview(at, prompt.system, prompt.user, offered(tools))

    def first_state(self, course: CoinCourse) -> State:
        return State(CoinWorld(course.cash))

    def read_state(self, plain: object) -> State:
        return read_state(plain)

    def measure(self, prepared: CoinRun, course: CoinCourse, ledger: Ledger) -> tuple[dict[str, Any], dict[str, Any]]:
        del course
        return self._metrics(prepared.request, prepared.skill, ledger), {}

    def measure_again(self, params: Mapping[str, Any], ledger: Ledger) -> dict[str, Any]:
        return self._metrics(self.request_of(params), read_skill(params["skill"], CoinSkill), ledger)

    def span(self, params: Mapping[str, Any]) -> tuple[Instant, Instant, int]:
        period = read_skill(params["skill"], CoinSkill).every_ms
        return -(-params["from_at"] // period) * period, params["to_at"], period

    def metrics(self) -> Mapping[str, Metric]:
        return {
            "bets": Metric("Bets", "count", "Bets that were placed."),
            "bets_won": Metric("Bets won", "count", "Bets that paid."),
        }

    def rule_meanings(self) -> Mapping[str, RuleMeaning]:
        return {
            "C1_SHAPE": RuleMeaning("Malformed", "The decision was not a valid bet."),
            "C2_STAKE": RuleMeaning("Stake", "The stake was above the cap or the cash at hand, or a bet was open."),
        }

    def describe_intent(self, row: Mapping[str, Any]) -> str:
        return f"{row.get('action')} {row.get('stake')} on {row.get('side')}"

    def _metrics(self, request: BacktestRequest, skill: CoinSkill, ledger: Ledger) -> dict[str, Any]:
        start = -(-request.from_at // skill.every_ms) * skill.every_ms
        outcome = ledger.outcome(start, request.to_at, skill.every_ms, request.equity_usd)
        bets = sum(receipt.kind == "filled" for receipt in ledger.receipts)
        won = sum(receipt.kind == "settled" and bool(receipt.facts["won"]) for receipt in ledger.receipts)
        return {**shared_metrics(outcome, bets, request.seed), "bets": bets, "bets_won": won}


VENUE = CoinVenue()
