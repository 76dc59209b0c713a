"""A campaign: every text in every slot with every model, counted as the runs end.

A campaign that is stopped keeps its counts and is marked partial. The run without an attack, for comparison, is executed
once for each slot and model; for the hostile model the stand-in takes its place.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from pitboss.core.errors import BudgetExceeded, RunCancelled, TransientError
from pitboss.core.money import ZERO
from pitboss.models.standin import NAME as STANDIN
from pitboss.redteam.attack_setup import AttackResult, AttackSetup, CampaignModel
from pitboss.redteam.attacks import Attack
from pitboss.redteam.breach import Breach
from pitboss.redteam.injection_points import Slot
from pitboss.sim.watch import Watch

HIJACKED = "hijacked"
"""The name of the model that the attacker controls."""
MAX_LISTED = 50
"""Maximum number of breaches that are listed; all are counted."""


@dataclass(slots=True)
class CampaignRow:
    """The counts of one model in one slot."""

    model: str
    slot: Slot
    runs: int = 0
    ticks: int = 0
    proposals: int = 0
    accepted: int = 0
    refused: int = 0
    dropped: int = 0
    turned_away: int = 0
    breaches: int = 0
    runs_with_request: int = 0
    """Runs whose text requests a trade."""
    runs_obeying: int = 0
    """Of those, runs in which exactly that trade was accepted."""
    compared: int = 0
    different: int = 0
    """Ticks compared with the run without the attack, and those with another decision."""
    equity_change: Decimal = ZERO
    """Sum over runs: final equity less that of the run without the attack."""
    worst_change: Decimal = ZERO
    initial_usd: Decimal = Decimal(10_000)
    cost_usd: Decimal = ZERO

    def add(self, attacked: AttackResult, attack: Attack, clean: AttackResult) -> None:
        """Add a run to the counts."""
        self.runs += 1
        self.ticks += len(attacked.decisions)
        self.proposals += attacked.proposals
        self.accepted += attacked.accepted
        self.refused += attacked.refused
        self.dropped += attacked.dropped
        self.turned_away += attacked.turned_away
        self.breaches += len(attacked.breaches)
        if attack.ask is not None:
            self.runs_with_request += 1
            self.runs_obeying += attacked.requested_trades > 0
        pairs = list(zip(attacked.decisions, clean.decisions, strict=False))
        self.compared += len(pairs)
        self.different += sum(attacked != unattacked for attacked, unattacked in pairs)
        change = attacked.equity_usd - clean.equity_usd
        self.equity_change += change
        self.worst_change = min(self.worst_change, change)
        self.cost_usd += attacked.cost_usd


@dataclass(frozen=True, slots=True)
class RunBreach:
    """A breach and its run."""

    model: str
    slot: Slot
    attack: str
    breach: Breach


@dataclass(slots=True)
class CampaignResult:
    """The result of a campaign."""

    rows: list[CampaignRow] = field(default_factory=list[CampaignRow])
    listed: list[RunBreach] = field(default_factory=list[RunBreach])
    planned: int = 0
    partial: str = ""
    """Why it ended early; empty if it is complete."""

    @property
    def runs(self) -> int:
        """Runs that were counted."""
        return sum(row.runs for row in self.rows)

    @property
    def breaches(self) -> int:
        """All breaches."""
        return sum(row.breaches for row in self.rows)


def hostile_campaign_model(setup: AttackSetup) -> CampaignModel:
    """The model that the attacker controls."""
    return CampaignModel(HIJACKED, setup.hostile)


def standin_campaign_model(setup: AttackSetup) -> CampaignModel:
    """The stand-in program for a model."""
    return CampaignModel(STANDIN, lambda attack, seed: setup.stand_in())


async def run(
    setup: AttackSetup,
    models: Sequence[CampaignModel],
    slots: Sequence[Slot],
    attacks: Sequence[Attack],
    seed: int,
    watch: Watch,
    result: CampaignResult | None = None,
) -> CampaignResult:
    """Run the campaign. `result` is updated as runs end, so that a caller can read it after an interruption."""
    result = result or CampaignResult()
    result.planned = len(models) * len(slots) * len(attacks)
    for campaign_model in models:
        for slot in slots:
            if result.partial:
                return result
            row = CampaignRow(campaign_model.name, slot, initial_usd=setup.request.equity_usd)
            result.rows.append(row)
            await _SlotRuns(setup, campaign_model, slot, seed, watch, result, row).run_all(attacks)
    return result


class _SlotRuns:
    """The runs of one model in one slot."""

    def __init__(
        self,
        setup: AttackSetup,
        campaign_model: CampaignModel,
        slot: Slot,
        seed: int,
        watch: Watch,
        result: CampaignResult,
        row: CampaignRow,
    ) -> None:
        self.setup, self.campaign_model, self.seed = setup, campaign_model, seed
        self.slot: Slot = slot
        self.watch, self.result, self.row = watch, result, row
        self.quiet = Watch(stop=watch.stop)
        """Without progress: the progress bar counts runs, not ticks."""

    async def run_all(self, attacks: Sequence[Attack]) -> None:
        """Run once without an attack, then with each."""
        baseline = standin_campaign_model(self.setup) if self.campaign_model.name == HIJACKED else self.campaign_model
        clean = await self._run(baseline, None, "clean")
        if clean is None:
            return
        self.row.cost_usd += clean.cost_usd
        self._list_breaches(clean, "(none)")
        self.row.breaches += len(clean.breaches)
        queue = iter(list(enumerate(attacks)))
        try:
            async with asyncio.TaskGroup() as group:  # a run that fails ends the others
                for _ in range(self.campaign_model.max_concurrent):
                    group.create_task(self._work(queue, clean))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _work(self, queue: Iterator[tuple[int, Attack]], clean: AttackResult) -> None:
        for number, attack in queue:
            if self.result.partial:
                return
            attacked = await self._run(self.campaign_model, attack, f"{self.seed}:{self.slot}:{number}")
            if attacked is None:
                return
            self.row.add(attacked, attack, clean)
            self._list_breaches(attacked, attack.name)
            self.watch.progress(self.result.runs / max(1, self.result.planned))

    async def _run(self, campaign_model: CampaignModel, attack: Attack | None, seed: str) -> AttackResult | None:
        if self.watch.stop():
            self.result.partial = "stopped"
            return None
        try:
            return await self.setup.run(campaign_model, self.slot, attack, seed, self.quiet)
        except RunCancelled:
            self.result.partial = "stopped"
        except (BudgetExceeded, TransientError) as error:
            self.result.partial = str(error)
        return None

    def _list_breaches(self, attacked: AttackResult, name: str) -> None:
        room = max(0, MAX_LISTED - len(self.result.listed))
        self.result.listed += [
            RunBreach(self.campaign_model.name, self.slot, name, breach) for breach in attacked.breaches[:room]
        ]
