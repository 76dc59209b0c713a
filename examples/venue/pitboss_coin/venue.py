"""The coin venue as pitboss sees it: what it must bring, and a few things that have a default."""

from collections.abc import Mapping
from typing import Any

from pitboss.bootstrap.settings import Settings
from pitboss.core.decision_format import DecisionFormat
from pitboss.core.state import State, parse_state
from pitboss.data.lake import Lake
from pitboss.report.meaning import Metric
from pitboss.runs.charts import Charts
from pitboss.runs.venue import Venue
from pitboss.sim.bar_course import BarCourse
from pitboss.sim.metrics import Outcome
from pitboss.sim.request import BacktestRequest
from pitboss.skill.load import read_skill
from pitboss_coin.agent import SHOWN_FLIPS
from pitboss_coin.intents import DECISION
from pitboss_coin.run import CoinRun
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

    def policies(self) -> Mapping[str, str]:
        return {"heads": "the largest stake on heads at every tick"}

    def charts(self, skill: CoinSkill) -> Charts:
        return Charts(((skill.every, SHOWN_FLIPS),), (skill.symbol,))

    def prepare(self, request: BacktestRequest, lake: Lake, settings: Settings) -> CoinRun:
        skill = read_skill(request.skill, CoinSkill)
        run = CoinRun.load(request, skill, lake, settings, (skill.symbol,), skill.every)
        run.course()  # refuses an unknown policy and an invalid decisions file
        return run

    def first_state(self, course: BarCourse) -> State:
        return State(course.first_world)

    def read_state(self, plain: object) -> State:
        return parse_state(plain, CoinWorld)

    def compute(self, outcome: Outcome, seed: int) -> dict[str, Any]:
        shared = Venue.compute(self, outcome, seed)
        won = sum(receipt.kind == "settled" and bool(receipt.facts["won"]) for receipt in outcome.receipts)
        return {**shared, "bets": shared["funnel"]["fills"], "bets_won": won}

    def metrics(self) -> Mapping[str, Metric]:
        return {
            "bets": Metric("Bets", "count", "Bets that were placed."),
            "bets_won": Metric("Bets won", "count", "Bets that paid."),
        }


VENUE = CoinVenue()
