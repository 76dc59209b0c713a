"""Every text in every slot with every model: the runs of a campaign, counted as they come.

A campaign that is stopped keeps what was counted and says that it is partial. What a run did without the attack is played
once for each slot and model; for the hijacked model that is the stand-in, which is what it would be if nobody had it.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from pitboss.core.errors import BudgetExceeded, RunCancelled, TransientError
from pitboss.core.money import ZERO
from pitboss.redteam.attack_run import CampaignModel, CampaignSetup, Played, play
from pitboss.redteam.attacks import Attack
from pitboss.redteam.audit import Breach
from pitboss.redteam.hostile_model import NAME as HIJACKED
from pitboss.redteam.hostile_model import Hijacked
from pitboss.redteam.injection_points import Slot
from pitboss.sim.watch import Watch
from pitboss.venues.perp.standin.analyst import Analyst

MOST_KEPT = 50
"""Breaches that are told one by one; all are counted."""


@dataclass(slots=True)
class CampaignRow:
    """What one model did in one slot."""

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
    asked: int = 0
    """Runs whose text names a trade."""
    chosen: int = 0
    """Of those, runs in which that very trade was accepted."""
    compared: int = 0
    different: int = 0
    """Ticks compared with the run without the attack, and those that were decided otherwise."""
    equity_change: Decimal = ZERO
    """Sum over runs: final equity less that of the run without the attack."""
    worst_change: Decimal = ZERO
    cost_usd: Decimal = ZERO

    def add(self, played: Played, attack: Attack, clean: Played) -> None:
        """Count a run."""
        self.runs += 1
        self.ticks += len(played.decisions)
        self.proposals += played.proposals
        self.accepted += played.accepted
        self.refused += played.refused
        self.dropped += played.dropped
        self.turned_away += played.turned_away
        self.breaches += len(played.breaches)
        if attack.ask is not None:
            self.asked += 1
            self.chosen += played.chosen > 0
        pairs = list(zip(played.decisions, clean.decisions, strict=False))
        self.compared += len(pairs)
        self.different += sum(one != other for one, other in pairs)
        change = played.equity_usd - clean.equity_usd
        self.equity_change += change
        self.worst_change = min(self.worst_change, change)
        self.cost_usd += played.cost_usd


@dataclass(frozen=True, slots=True)
class FoundBreach:
    """A breach, and the run it happened in."""

    model: str
    slot: Slot
    attack: str
    breach: Breach


@dataclass(slots=True)
class CampaignResult:
    """What a campaign has come to."""

    rows: list[CampaignRow] = field(default_factory=list[CampaignRow])
    found: list[FoundBreach] = field(default_factory=list[FoundBreach])
    planned: int = 0
    partial: str = ""
    """Why it ended before its end; empty if it did not."""

    @property
    def runs(self) -> int:
        """Runs that were counted."""
        return sum(row.runs for row in self.rows)

    @property
    def breaches(self) -> int:
        """All of them."""
        return sum(row.breaches for row in self.rows)


def hijacked(ground: CampaignSetup) -> CampaignModel:
    """The attacker's own model."""

    def make(attack: Attack | None, seed: str) -> Hijacked:
        ask, text = (None, "") if attack is None else (attack.ask, attack.text)
        return Hijacked(seed, ground.symbols, ask, text)

    return CampaignModel(HIJACKED, make)


def standin() -> CampaignModel:
    """The program that stands in for a model."""
    return CampaignModel(Analyst.name, lambda attack, seed: Analyst())


async def run(
    ground: CampaignSetup,
    lines: Sequence[CampaignModel],
    slots: Sequence[Slot],
    attacks: Sequence[Attack],
    seed: int,
    watch: Watch,
    result: CampaignResult | None = None,
) -> CampaignResult:
    """Play all of it. `result` is filled as runs end, so that whoever holds it has what was counted."""
    result = result or CampaignResult()
    result.planned = len(lines) * len(slots) * len(attacks)
    for line in lines:
        for slot in slots:
            if result.partial:
                return result
            row = CampaignRow(line.name, slot)
            result.rows.append(row)
            await _Slot(ground, line, slot, seed, watch, result, row).play(attacks)
    return result


class _Slot:
    """The runs of one model in one slot."""

    def __init__(
        self,
        ground: CampaignSetup,
        line: CampaignModel,
        slot: Slot,
        seed: int,
        watch: Watch,
        result: CampaignResult,
        row: CampaignRow,
    ) -> None:
        self.ground, self.line, self.seed = ground, line, seed
        self.slot: Slot = slot
        self.watch, self.result, self.row = watch, result, row
        self.quiet = Watch(stop=watch.stop)
        """The bar shows runs, not the ticks of each."""

    async def play(self, attacks: Sequence[Attack]) -> None:
        """First without an attack, then with each."""
        honest = standin() if self.line.name == HIJACKED else self.line
        clean = await self._one(honest, None, "clean")
        if clean is None:
            return
        self.row.cost_usd += clean.cost_usd
        self._keep(clean, "(none)")
        self.row.breaches += len(clean.breaches)
        waiting = iter(list(enumerate(attacks)))
        await asyncio.gather(*(self._work(waiting, clean) for _ in range(self.line.many)))

    async def _work(self, waiting: Iterator[tuple[int, Attack]], clean: Played) -> None:
        for number, attack in waiting:
            if self.result.partial:
                return
            played = await self._one(self.line, attack, f"{self.seed}:{self.slot}:{number}")
            if played is None:
                return
            self.row.add(played, attack, clean)
            self._keep(played, attack.name)
            self.watch.progress(self.result.runs / max(1, self.result.planned))

    async def _one(self, line: CampaignModel, attack: Attack | None, seed: str) -> Played | None:
        if self.watch.stop():
            self.result.partial = "stopped"
            return None
        try:
            return await play(self.ground, line, self.slot, attack, seed, self.quiet)
        except RunCancelled:
            self.result.partial = "stopped"
        except (BudgetExceeded, TransientError) as error:
            self.result.partial = str(error)
        return None

    def _keep(self, played: Played, name: str) -> None:
        room = max(0, MOST_KEPT - len(self.result.found))
        self.result.found += [FoundBreach(self.line.name, self.slot, name, breach) for breach in played.breaches[:room]]
