"""Implements the `Venue` interface for the community venue: a forum of agents that examine smart contracts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pitboss.runs.venue import Venue

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from pitboss.bootstrap.settings import Settings
    from pitboss.bootstrap.workspace import Workspace
    from pitboss.core.decision_format import DecisionFormat
    from pitboss.core.instant import Instant
    from pitboss.core.receipt import Receipt
    from pitboss.core.state import State
    from pitboss.data.lake import Lake
    from pitboss.report.meaning import Metric
    from pitboss.report.shell import ReportPage
    from pitboss.runs.live_deployment import DeployRequest, LiveDeployment
    from pitboss.runs.result_table import ResultTable
    from pitboss.store.runs import Run
    from pitboss.venues.community.assembly import CommunityRun
    from pitboss.venues.community.course import ScenarioCourse
    from pitboss.venues.community.options import CommunityOptions
    from pitboss.venues.community.request import CommunityRequest
    from pitboss.venues.community.settings import CommunitySettings
    from pitboss.venues.community.skill import CommunitySkill
    from pitboss.venues.community.sns.serve_options import SnsOptions


class CommunityVenue(Venue):
    """Communities around smart contracts, as on a forum for agents with signed writes."""

    name = "community"
    package = "pitboss.venues.community"
    summary = "a forum in which agents examine smart contracts and report to their owners"
    commands = "pitboss.venues.community.commands:APP"
    commands_help = "A forum in which agents examine smart contracts: serve it, run agents in it."
    routes = "pitboss.venues.community.sns.app:make_app"
    serve_port = 8710
    web = "pitboss.venues.community.web.section:SECTION"
    judged_by = "bugs_found_pct"
    demo_options = "--from 2025-01-01 --to 2025-01-01T00:12Z"
    hostile_model = "pitboss.venues.community.hostile_model:hostile_model"
    can_be_blind = False
    uses_bars = False
    has_account = False
    intent_noun = "action"
    file_fields = frozenset({"scenario"})
    live_modes = ("live",)

    def check_live(self, workspace: "Workspace", deploy: "DeployRequest") -> dict[str, Any]:
        from pitboss.venues.community.live_deployment import check_deployment

        return check_deployment(workspace, deploy)

    def open_live(self, live: "LiveDeployment") -> "AbstractAsyncContextManager[Any]":
        from pitboss.venues.community.live_deployment import open_live

        return open_live(live)

    def settings_type(self) -> "type[CommunitySettings]":
        from pitboss.venues.community.settings import CommunitySettings

        return CommunitySettings

    def skill_type(self) -> "type[CommunitySkill]":
        from pitboss.venues.community.skill import CommunitySkill

        return CommunitySkill

    def decision(self) -> "DecisionFormat":
        from pitboss.venues.community.intents import DECISION

        return DECISION

    def first_steps(self, skill_file: str) -> list[str]:
        return [
            f"pitboss backtest {skill_file} {self.demo_options}",
            "pitboss community serve              # a forum server on this machine",
        ]

    def policies(self) -> Mapping[str, str]:
        from pitboss.venues.community.policies import POLICIES

        return {name: policy.summary for name, policy in POLICIES.items()}

    def request_type(self) -> "type[CommunityRequest]":
        from pitboss.venues.community.request import CommunityRequest

        return CommunityRequest

    def options(self) -> "type[CommunityOptions]":
        from pitboss.venues.community.options import CommunityOptions

        return CommunityOptions

    def serve_options(self) -> "type[SnsOptions]":
        from pitboss.venues.community.sns.serve_options import SnsOptions

        return SnsOptions

    def prepare(self, request: "CommunityRequest", lake: "Lake", settings: "Settings") -> "CommunityRun":
        from pitboss.venues.community.assembly import prepare

        del lake
        return prepare(request, settings)

    def with_untrusted_text(self, request: "CommunityRequest", text: str) -> "CommunityRequest":
        from pitboss.venues.community.planted_text import with_posts

        return with_posts(request, text)

    def breaches(
        self, skill: "CommunitySkill", ticks: Sequence[Mapping[str, Any]]
    ) -> "Iterator[tuple[Instant, str, str]]":
        from pitboss.venues.community.record_audit import breaches

        return breaches(skill, ticks)

    def first_state(self, course: "ScenarioCourse") -> "State":
        from pitboss.core.state import State

        return State(course.first_world())

    def read_state(self, plain: object) -> "State":
        from pitboss.core.state import parse_state
        from pitboss.venues.community.simulated_world import SimulatedWorld

        return parse_state(plain, SimulatedWorld)

    def measure_again(self, params: Mapping[str, Any], ledger: Any) -> dict[str, Any]:
        from pitboss.venues.community.scenario_file import shipped_scenario
        from pitboss.venues.community.score import score

        if params.get("mode") == "live":
            return Venue.measure_again(self, params, ledger)
        planted = len((params.get("scenario") or shipped_scenario()).get("bugs", ()))
        return {**Venue.measure_again(self, params, ledger), **score(ledger.receipts).metrics(planted)}

    def compute(self, outcome: Any, seed: int) -> dict[str, Any]:
        from pitboss.venues.community.ports import spent_wei

        actions = [str(receipt.facts["action"]) for receipt in outcome.receipts if "action" in receipt.facts]
        return {
            **Venue.compute(self, outcome, seed),
            "posts": sum(action in ("create_thread", "comment") for action in actions),
            "transactions": sum(receipt.kind == "filled" for receipt in outcome.receipts),
            "duplicate_posts": outcome.rejections_by_rule.get("C6_DUPLICATE", 0),
            "spent_wei": str(spent_wei(outcome.receipts)),
        }

    def fills(self, receipts: "Iterable[Receipt]") -> Iterator[dict[str, Any]]:
        for receipt in receipts:
            if receipt.kind == "filled":
                yield {"at": receipt.at, "contract": receipt.symbol, **receipt.facts}

    def describe_intent(self, row: Mapping[str, Any]) -> str:
        from pitboss.venues.community.action_text import describe_action

        return describe_action(row)

    def page(self, workspace: "Workspace", run: "Run") -> "ReportPage":
        from pitboss.venues.community.report_source import page_of

        return page_of(workspace, run)

    def metrics(self) -> "Mapping[str, Metric]":
        from pitboss.report.meaning import Metric

        return {
            "bugs_found": Metric("Bugs found", "count", "Planted bugs that the agent reported before anybody else."),
            "bugs_planted": Metric("Bugs planted", "count", "Bugs that the scenario holds."),
            "bugs_found_pct": Metric("Share of bugs found", "percent", "Bugs found of those planted."),
            "false_reports": Metric("False reports", "count", "Reports about no planted bug."),
            "repeated_reports": Metric("Repeated reports", "count", "Reports about bugs that had been reported."),
            "duplicate_posts": Metric("Duplicate posts", "count", "Posts that were refused as repetitions."),
            "posts": Metric("Posts", "count", "Threads and comments."),
            "transactions": Metric("Transactions", "count", "Transactions that were mined."),
            "spent_wei": Metric("Spent on the chain", "whole", "Values and fees of the transactions, in wei."),
        }

    def study_metrics(self) -> tuple[str, ...]:
        return ("bugs_found_pct", "false_reports", "posts")

    def result_tables(self, run: "Run") -> "list[ResultTable] | None":
        from pitboss.venues.community.result_table import result_tables

        return result_tables(run)


VENUE = CommunityVenue()
