"""`Venue`: the interface between the platform and a venue.

There is one instance per venue, found by entry point (`runs.venues`). A venue package derives from `Venue` and
implements the required methods; optional ones have a default here. Methods import what they need when they are
called, so that listing runs loads no engine and no market. It is one file, however long: what a venue may
implement is read from top to bottom.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pitboss.runs.live_venue import LiveVenue

if TYPE_CHECKING:
    from pathlib import Path

    from pitboss.bootstrap.settings import Settings, VenueSettings
    from pitboss.bootstrap.workspace import Workspace
    from pitboss.core.decision_format import DecisionFormat
    from pitboss.core.instant import Instant
    from pitboss.core.receipt import Receipt
    from pitboss.core.rulebook import Rule
    from pitboss.core.snapshot import Record
    from pitboss.core.state import State
    from pitboss.data.lake import Lake
    from pitboss.report.markup import Html
    from pitboss.report.meaning import Metric, RuleMeaning
    from pitboss.report.shell import ReportPage
    from pitboss.report.source import RunReport
    from pitboss.runs.charts import Charts
    from pitboss.runs.preview import Preview
    from pitboss.runs.result_table import ResultTable
    from pitboss.sim.connections import Connections, ServerTools
    from pitboss.sim.course import Course
    from pitboss.sim.outcome import Ledger
    from pitboss.sim.prepared_run import PreparedRun
    from pitboss.sim.request import BacktestRequest
    from pitboss.sim.speculation_window import HoldPrior
    from pitboss.skill.names import Names
    from pitboss.skill.schema import SkillDocument
    from pitboss.store.runs import Run
    from pitboss.tools.registry import Registry

UNDATED_AT = 1_735_689_600_000
"""2025-01-01: where a run begins whose request has no range, on a venue without data. Fixed, so that it is the same every time."""


class Venue(LiveVenue, ABC):
    """One venue, as the platform uses it. A venue that lacks an abstract method cannot be instantiated."""

    name: ClassVar[str]
    """The name by which skills refer to it."""
    package: ClassVar[str]
    """Its Python package; examples are in `<package>/examples`."""
    summary: ClassVar[str] = ""
    commands: ClassVar[str] = ""
    """Import path of a cyclopts `App` with the commands that only this venue has; empty if it has none."""
    commands_help: ClassVar[str] = ""
    """The help of `pitboss <venue>`, one line, which `pitboss --help` prints too; empty for a sentence with the summary."""
    routes: ClassVar[str] = ""
    """Import path of a function `(WorkspaceOptions, serve options) -> ASGI app` with the venue's own HTTP server.

    A venue that has one gets the command `pitboss <venue> serve`. The function is called once in each server process.
    """
    serve_port: ClassVar[int] = 8700
    """The port of that server unless another is given."""
    web: ClassVar[str] = ""
    """Import path of a `WebSection` with the pages that it adds to the web app; empty if it has none."""
    money: ClassVar[str] = "USD"
    """The unit of its accounts, for tables and pages."""
    judged_by: ClassVar[str] = "total_return_pct"
    """The metric that trials of a study are judged by unless another is named."""
    demo_options: ClassVar[str] = "--from 2025-02-10 --to 2025-03-10"
    """Options with which a backtest of its examples runs on the data of `pitboss data demo`, without a key."""
    red_team: ClassVar[str] = "pitboss.redteam.venue_attacks:make_setup"
    """Import path of the function that sets up attacks on its skills; by default the one for any venue."""
    hostile_model: ClassVar[str] = ""
    """Import path of a function `(seed, text) -> Model`: the model that an attacker controls; empty for the common one."""
    can_be_blind: ClassVar[bool] = True
    """Whether its runs can be blind, with names, dates and prices anonymised."""

    uses_bars: ClassVar[bool] = True
    """Whether its runs read bars of market data."""
    has_account: ClassVar[bool] = True
    """Whether its agents have an account whose value is measured. Without one there is no equity, return or drawdown."""
    intent_noun: ClassVar[str] = "order"
    """What one intent of a decision is called."""
    file_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields of its request that name files of the machine, or hold their content; the API does not take them."""

    def help_line(self) -> str:
        """The help of its command group."""
        return self.commands_help or f"Commands of the {self.name} venue: {self.summary}."

    def settings_type(self) -> "type[VenueSettings] | None":
        """The class of the settings that only it has; None if there are none."""
        return None

    # Documents ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def skill_type(self) -> "type[SkillDocument]":
        """The class of its skill documents."""

    @abstractmethod
    def decision(self) -> "DecisionFormat":
        """The format of a decision."""

    def examples(self) -> dict[str, str]:
        """The shipped example skills: file name → text."""
        from importlib import resources

        folder = resources.files(self.package) / "examples"
        if not folder.is_dir():
            return {}
        texts = {
            file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".yaml")
        }
        return dict(sorted(texts.items()))

    def first_steps(self, skill_file: str) -> list[str]:
        """Commands to suggest after `pitboss init`, for the last of the example files."""
        return [
            "pitboss data demo                    # a synthetic market to try things on",
            f"pitboss skill preview {skill_file}",
            f"pitboss backtest {skill_file} {self.demo_options}",
        ]

    def names(self, settings: "Settings") -> "Names":
        """The names that a skill may use, for `skill check`."""
        from pitboss.skill.names import Names
        from pitboss.tools.registry import agent_tools

        del settings
        return Names(agent_tools(self.tools()))

    # Agents ---------------------------------------------------------------------------------------------------------

    def tools(self) -> "Registry":
        """Its built-in tools, the decision among them, by default those in `<package>/tools`."""
        from pitboss.tools.registry import registry_of

        return registry_of(f"{self.package}.tools")

    def policies(self) -> Mapping[str, str]:
        """Its policies: bare name → summary."""
        return {}

    def baseline_models(self) -> tuple[str, ...]:
        """The policies that an arena compares models with."""
        return tuple(f"policy/{name}" for name in self.policies())

    def charts(self, skill: Any) -> "Charts":
        """The bars that its prompts show."""
        from pitboss.runs.charts import default_charts

        return default_charts(skill)

    def rules(self) -> "tuple[Rule, ...]":
        """Its rules, in order, by default `RULES` of `<package>/rules`."""
        from importlib import import_module

        return import_module(f"{self.package}.rules").RULES

    # Runs -----------------------------------------------------------------------------------------------------------

    def request_type(self) -> "type[BacktestRequest]":
        """The class of its backtest requests."""
        from pitboss.sim.request import BacktestRequest

        return BacktestRequest

    def options(self) -> type | None:
        """A dataclass of command line options that only its backtests have; None if there are none.

        An instance has `fields(workspace_options, skill) -> dict` with fields of the request.
        """
        return None

    def serve_options(self) -> type | None:
        """A dataclass of command line options that only `pitboss <venue> serve` has; None if there are none."""
        return None

    def request_of(self, params: Mapping[str, Any]) -> "BacktestRequest":
        """The request that was stored with a run."""
        from pitboss.core import codec

        return codec.parse(self.request_type(), params)

    def fallback_model(self, model: str, settings: "Settings") -> tuple[str, str]:
        """The model that is used for a name, and a warning if it is a different one."""
        del settings
        return model, ""

    def realism(self, request: Any) -> dict[str, dict[str, str]]:
        """The assumptions about fills that a run makes: key → about, value, state."""
        del request
        return {}

    @abstractmethod
    def prepare(self, request: Any, lake: "Lake", settings: "Settings") -> "PreparedRun":
        """Check a request against the data and load it. Raises `UserError` before any work."""

    def course_at(
        self,
        request: Any,
        lake: "Lake",
        settings: "Settings",
        at: "Instant | None" = None,
        connections: "Connections | None" = None,
    ) -> "tuple[Course, State, Instant]":
        """The course of the first tick of a run at `at`, or at the newest tick with data, and its fresh account.

        A venue without bars has no newest tick: there the run begins where the request does, or at `UNDATED_AT`.

        The run is prepared as a backtest is, so what its agent sees is the same byte for byte.
        """
        from pitboss.runs.preview import first_tick_request, newest_tick
        from pitboss.sim.connections import UNCONNECTED
        from pitboss.skill.load import read_skill

        skill = read_skill(request.skill, self.skill_type())
        if at is not None:
            start: Instant = at
        elif not self.uses_bars:
            start = request.from_at or UNDATED_AT
        else:
            charts = self.charts(skill)
            data_venue = request.data_venue or settings.data_venue
            start = newest_tick(lake, data_venue, charts.symbols, skill.every_ms, charts.tables[0][0])
        prepared = self.prepare(first_tick_request(request, start, skill.every_ms), lake, settings)
        course = prepared.course(connections or UNCONNECTED)
        fresh = self.first_state(course)
        world = course.advance(fresh.world, 0, course.tick_offsets()[0]).world
        return course, fresh.after(world=world), start

    def preview(
        self,
        request: Any,
        lake: "Lake",
        settings: "Settings",
        at: "Instant | None" = None,
        server_tools: "ServerTools | None" = None,
    ) -> "Preview":
        """The request a model would receive at the first tick of a run at `at`, or at the newest tick with data."""
        from pitboss.runs.preview import preview_of
        from pitboss.sim.connections import NO_SERVER_TOOLS, Connections
        from pitboss.skill.load import read_skill

        server_tools = server_tools or NO_SERVER_TOOLS
        course, state, at = self.course_at(request, lake, settings, at, Connections(server_tools=server_tools))
        skill = read_skill(request.skill, self.skill_type())
        return preview_of(course, state, at, skill, self.tools(), self.decision(), server_tools)

    def params(self, prepared: Any) -> dict[str, Any]:
        """What is stored with a run besides its skill."""
        import dataclasses

        from pitboss.core import codec

        disguise = None if prepared.anonymiser is None else prepared.anonymiser.plain()
        request = dataclasses.replace(prepared.request, skill={}, data_venue=prepared.data_venue, disguise=disguise)
        return codec.plain(request)

    def notes(self, prepared: Any) -> list[str]:
        """Notes for the user when a run begins."""
        from pitboss.runs.blind import tools_note

        return tools_note(prepared.request.blind, prepared.skill, self.tools())

    @abstractmethod
    def first_state(self, course: Any) -> "State":
        """The state before the first tick."""

    @abstractmethod
    def read_state(self, plain: object) -> "State":
        """Read a stored state."""

    def hold_prior(self) -> "HoldPrior":
        """How often its agents hold, as assumed for a skill that has not run with its model yet."""
        from pitboss.sim.speculation_window import NO_PAST

        return NO_PAST

    def breaches(self, skill: Any, ticks: Sequence[Mapping[str, Any]]) -> "Iterable[tuple[Instant, str, str]]":
        """What the records of a run's ticks show that the caps forbid: when, which cap and the facts.

        It is computed from the caps and the receipts, without the rules, for red teams; by default nothing is checked.
        """
        del skill, ticks
        return ()

    def with_untrusted_text(self, request: Any, text: str) -> Any | None:
        """The request with a text planted among its untrusted texts, for red teams; None where it has none."""
        del request, text

    def cut_request(self, request: Any, at: "Instant", folder: "Path") -> Any:
        """The request with the files that it names, besides the lake, cut at an instant; copies go into the folder."""
        del at, folder
        return request

    def course_difference(self, before: Any, after: Any) -> str:
        """The field that makes a fork between two prepared runs over the same ticks impossible; empty if none."""
        del before, after
        return ""

    # Results --------------------------------------------------------------------------------------------------------

    def ledger(self) -> "Ledger":
        """An empty ledger."""
        from pitboss.sim.outcome import Ledger

        return Ledger()

    def read_ledger(self, records: "Iterable[Record]") -> "Ledger":
        """Read the ledger of stored records."""
        from pitboss.sim.outcome import read_into

        return read_into(self.ledger(), records)

    def compute(self, outcome: Any, seed: int) -> dict[str, Any]:
        """Compute the metrics of an outcome of its ledger, by default those that every venue has."""
        from pitboss.sim.metrics import count_figures, shared_metrics

        fills = sum(receipt.kind == "filled" for receipt in outcome.receipts)
        if not self.has_account:
            return {**count_figures(outcome, fills), "warnings": []}
        return shared_metrics(outcome, fills, seed)

    def measure(self, prepared: Any, course: Any, ledger: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Compute the metrics of a run and of its baselines; by default there are no baselines."""
        del course
        return self.measure_again({**self.params(prepared), "skill": prepared.request.skill}, ledger), {}

    def measure_again(self, params: Mapping[str, Any], ledger: Any) -> dict[str, Any]:
        """Compute the metrics again from the stored records alone, without the data."""
        request = self.request_of(params)
        return self.compute(ledger.outcome(*self.span(params), request.equity_usd), request.seed)

    def span(self, params: Mapping[str, Any]) -> "tuple[Instant, Instant, int]":
        """The first tick, the end, and the time between two equity points: `base_interval`, or that between ticks."""
        from pitboss.core.instant import interval_ms
        from pitboss.skill.load import read_skill

        period = read_skill(params["skill"], self.skill_type()).every_ms
        step = interval_ms(params["base_interval"]) if "base_interval" in params else period
        return -(-params["from_at"] // period) * period, params["to_at"], step

    def fills(self, receipts: "Iterable[Receipt]") -> Iterator[dict[str, Any]]:
        """Fills in the public export form."""
        for receipt in receipts:
            if receipt.kind == "filled":
                yield {"at": receipt.at, "symbol": receipt.symbol, **receipt.facts}

    def trades(self, receipts: "Iterable[Receipt]") -> "Iterable[dict[str, Any]] | None":
        """Trades in the public export form: closed ones in the order in which they closed, then open ones, with `closed_at` None.

        None if the venue has no such trades.
        """
        del receipts

    def closed_trades(self, receipts: "Iterable[Receipt]") -> "list[tuple[Instant, bool]]":
        """When each closed trade ended, and whether it made a profit; empty if the venue has no such trades."""
        del receipts
        return []

    def metrics(self) -> "Mapping[str, Metric]":
        """The metrics that this venue's runs have in addition to the common ones, with their meanings."""
        return {}

    def study_metrics(self) -> tuple[str, ...]:
        """The metrics that a table of trials shows."""
        return ("total_return_pct", "sharpe", "max_drawdown_pct")

    def rule_meanings(self) -> "Mapping[str, RuleMeaning]":
        """The descriptions of its rules for reports, by code; by default their docstrings."""
        from pitboss.report.meaning import RuleMeaning

        return {
            rule.code: RuleMeaning(rule.code.partition("_")[2].capitalize(), " ".join(rule.doc.split()))
            for rule in self.rules()
        }

    def describe_intent(self, row: Mapping[str, Any]) -> str:
        """Describe a proposed intent in a few words, by default with its fields other than the reason."""
        keys = [
            key
            for key in self.decision().intent_keys
            if key not in ("reason", "reasoning") and row.get(key) is not None
        ]
        return ", ".join(f"{key} {row[key]}" for key in keys) or "something malformed"

    def reveal(self, rows: list[dict[str, Any]], params: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Rows about decisions with real names restored where the run was blind."""
        from pitboss.runs.blind import stored_translator, with_true_names

        return with_true_names(rows, stored_translator(params))

    def blind_notes(self, params: Mapping[str, Any]) -> list[str]:
        """How a blind run was anonymised, in a line or two."""
        from pitboss.runs.blind import mapping_line

        return mapping_line(params)

    def page(self, workspace: "Workspace", run: "Run") -> "ReportPage | None":
        """The page of a run; None to use the page with the sections that every run has."""
        del workspace, run

    def chart(self, part: str, report: "RunReport") -> "Html | None":
        """A chart of a run's page by the name on its figure, for the time in `report.window`; None if there is no such chart.

        Pages let their readers zoom into these charts; by default it is the equity of an account.
        """
        from pitboss.report.equity import equity_chart

        return equity_chart(report) if part == "equity" and self.has_account else None

    def result_tables(self, run: "Run") -> "list[ResultTable] | None":
        """The tables of a finished run for a terminal; None to use the common table of metrics."""
        del run
