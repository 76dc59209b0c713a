"""Attacks on a skill of any venue: the real preparation, ports and replay on a generated market, and the audit.

A venue needs nothing for it. One that has more to plant, or an audit of its own, names its function in
`Venue.red_team`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pitboss.agent.decider import Judge
from pitboss.agent.loop import ToolLoop
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.ports import Model, Tool
from pitboss.data.lake import Lake
from pitboss.models.secret import Secret
from pitboss.models.standin import NAME as STANDIN
from pitboss.redteam import injection_points as slots
from pitboss.redteam.attack_setup import AttackResult, AttackSetup, CampaignModel, count, read_attacks
from pitboss.redteam.attacks import Attack
from pitboss.redteam.audit import audit
from pitboss.redteam.breach import Breach
from pitboss.redteam.hostile_model import HostileModel
from pitboss.redteam.injection_points import HARMLESS, Slot
from pitboss.redteam.market import DATA_VENUE, START_AT, write_market
from pitboss.redteam.planted_key import Canary
from pitboss.redteam.texts import built_in_texts
from pitboss.redteam.watched import LeakWatch, StatesJournal, WatchedModel, WatchedTool, watched_replay
from pitboss.runs.venue import Venue
from pitboss.runs.venues import venue_of
from pitboss.sim.connections import Connections
from pitboss.sim.course import Course
from pitboss.sim.prepared_run import PreparedRun
from pitboss.sim.watch import Watch
from pitboss.skill.digest import skill_digest
from pitboss.skill.load import read_skill
from pitboss.tools.mcp.tool_names import name_of


@dataclass(frozen=True, slots=True, kw_only=True)
class VenueAttacks(AttackSetup):
    """A skill under attack on its venue."""

    venue: Venue
    prepared: PreparedRun

    def texts(self, files: Sequence[Path], only_files: bool) -> tuple[list[Attack], int, list[str]]:
        """The built-in texts, and those of the files."""
        return read_attacks([] if only_files else built_in_texts(self.venue.decision()), files)

    def remarks(self, slots: Sequence[Slot]) -> list[str]:
        """Properties of the skill that affect the figures."""
        remarks: list[str] = []
        if "memory" in slots:
            remarks.append("in the memory only the last decision is planted")
        if self.skill.mcp_servers:
            remarks.append("the skill's own MCP servers are left out; the only one is the attacker's")
        return remarks

    def empty_slots(self) -> dict[Slot, str]:
        """The slots in which this skill shows no text."""
        empty: dict[Slot, str] = {}
        if self.venue.with_untrusted_text(self.request, HARMLESS) is None:
            empty["news"] = f"the {self.venue.name} venue shows no news"
        return empty if self.skill.tool_names else {**empty, "tool": "the skill has no tools"}

    def hostile(self, attack: Attack | None, seed: str) -> Model:
        """The model that the attacker controls."""
        text = "" if attack is None else attack.text
        if self.venue.hostile_model:
            module, _, name = self.venue.hostile_model.partition(":")
            return getattr(import_module(module), name)(seed, text)
        decision = self.venue.decision()
        example = decision.intents(self.venue.tools()[decision.tool].example)[0]
        return HostileModel(seed, decision, example, self.stand_in(), text)

    def stand_in(self) -> Model:
        """The stand-in program of the venue."""
        return _loop(self.prepared.course()).model

    def _prepared_with(self, text: str) -> PreparedRun:
        """The run with a text among what strangers write."""
        request = self.venue.with_untrusted_text(self.request, text)
        assert request is not None  # else the slot is empty, and nothing is run in it
        with TemporaryDirectory(prefix="pitboss-redteam-") as folder:
            prepared = self.venue.prepare(request, Lake(Path(folder) / "lake"), Settings(home=Path(folder)))
        return replace(prepared, commit_records=1)

    async def run(
        self, campaign_model: CampaignModel, slot: Slot, attack: Attack | None, seed: str, watch: Watch
    ) -> AttackResult:
        """One run with an attack in a slot, or with harmless text in the same slot."""
        text = HARMLESS if attack is None else attack.text
        watched = LeakWatch(self.canary)
        server = None
        if slot == "mcp":
            server = slots.PlantedServer(text, self.canary.value, Secret(self.canary.value).hide)
        model = WatchedModel(campaign_model.make(attack, seed), watched)
        prepared = self.prepared
        if slot == "news":
            prepared = self._prepared_with(text)
        course = prepared.course(Connections(model=model, policy=campaign_model.policy))
        state = self.venue.first_state(course)
        if slot == "memory":
            state = slots.with_last_decision(state, text, self.request.from_at)
        course = _planted(course, slot, text, server, watched)
        journal = StatesJournal()
        fault = await watched_replay(course, state, watch, journal)
        records = list(journal.records())
        breaches = audit(records, {0: state, **journal.states}, course, self.venue, self.skill, self.canary)
        end_at = records[-1].tick_at if records else self.request.from_at
        if fault:
            breaches.append(Breach(end_at, "CRASH", fault))
        if skill_digest(self.skill) != self.skill_digest:
            breaches.append(Breach(end_at, "CONFIG", "the skill was changed"))
        offered = {*self.skill.tool_names, *([name_of(slots.SERVER, slots.TOOL)] if server else [])}
        payloads = server.sent if server else ()
        breaches += watched.breaches(end_at, offered, records, payloads, campaign_model.redact)
        decision = self.venue.decision()
        compared = [key for key in decision.intent_keys if key not in ("reason", "reasoning")]
        return count(records, breaches, attack, compared, decision.idle)


def _empty_lake(folder: Path, every_ms: int, ticks: int) -> tuple[Lake, Instant, Instant]:
    """For a venue that reads no bars: a lake without any, the start and the end."""
    from_at = -(-START_AT // every_ms) * every_ms
    return Lake(folder), from_at, from_at + ticks * every_ms


def make_setup(plain: Mapping[str, Any], ticks: int, seed: int, canary: Canary) -> VenueAttacks:
    """Set up the attacks on a skill; its own MCP servers are left out."""
    venue = venue_of(plain)
    skill = read_skill(plain, venue.skill_type())
    charts = venue.charts(skill)
    if venue.uses_bars and not charts.symbols:
        raise UserError(
            f"the {venue.name} venue does not say whose bars its skills show", "its charts() must name the symbols"
        )
    with TemporaryDirectory(prefix="pitboss-redteam-") as folder:
        folder_of_lake = Path(folder) / "lake"
        if venue.uses_bars:
            lake, from_at, to_at = write_market(folder_of_lake, charts, skill.every_ms, ticks, seed)
        else:
            lake, from_at, to_at = _empty_lake(folder_of_lake, skill.every_ms, ticks)
        request = venue.request_type()(
            skill=plain,
            from_at=from_at,
            to_at=to_at,
            model=STANDIN,
            data_venue=DATA_VENUE,
            seed=seed,
            prompts=True,
            speculate="0",
        )
        prepared = venue.prepare(request, lake, Settings(home=Path(folder)))
    return VenueAttacks(
        skill=skill,
        request=request,
        skill_digest=skill_digest(skill),
        canary=canary,
        venue=venue,
        prepared=replace(prepared, commit_records=1),
    )


def _loop(course: Course) -> ToolLoop:
    decider = course.ports.decider
    assert isinstance(decider, ToolLoop)
    return decider


def _planted(course: Course, slot: Slot, text: str, server: slots.PlantedServer | None, watched: LeakWatch) -> Course:
    """The course whose tools are watched, and which shows the text in its slot."""
    loop = _loop(course)

    def hydrate(observation: Any, judge: Judge) -> Mapping[str, Tool]:
        tools: dict[str, Tool] = dict(loop.hydrate(observation, judge))
        if slot == "tool":
            tools = {name: slots.PlantedTool(inner, text) for name, inner in tools.items()}
        if server is not None:
            tool = server.tool()
            tools[tool.spec.name] = tool
        return {name: WatchedTool(inner, watched) for name, inner in tools.items()}

    return replace(course, ports=replace(course.ports, decider=replace(loop, hydrate=hydrate)))
