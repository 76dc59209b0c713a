"""`AttackSetup`: what a campaign needs of a skill under attack, and the result of one run."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from pitboss.agent.request_policy import DEFAULT_POLICY, RequestPolicy
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.money import ZERO
from pitboss.core.ports import Model
from pitboss.core.snapshot import Record
from pitboss.redteam.attacks import Attack, ReadAsk, no_ask, read_file
from pitboss.redteam.breach import Breach
from pitboss.redteam.injection_points import Slot
from pitboss.redteam.planted_key import Canary
from pitboss.sim.request import BacktestRequest
from pitboss.sim.watch import Watch
from pitboss.skill.schema import SkillDocument


@dataclass(frozen=True, slots=True)
class AttackResult:
    """The result of one run."""

    records: tuple[Record, ...]
    breaches: tuple[Breach, ...]
    decisions: tuple[tuple[Any, ...], ...]
    """The decision of each tick, without its text."""
    proposals: int
    accepted: int
    refused: int
    dropped: int
    """Ticks at which contradicting proposals were all discarded."""
    turned_away: int
    """Calls that were not run: unknown tools, invalid arguments, malformed proposals."""
    requested_trades: int
    """Accepted orders that are the trade requested by the planted text."""
    equity_usd: Decimal
    cost_usd: Decimal


@dataclass(frozen=True, slots=True)
class CampaignModel:
    """A model of a campaign: how it is made for each run, and how it is forced to answer."""

    name: str
    make: Callable[[Attack | None, str], Model]
    """Makes a model for an attack (None: a run without one) and a seed."""
    policy: RequestPolicy = DEFAULT_POLICY
    max_concurrent: int = 1
    """Maximum concurrent runs."""
    redact: Callable[[str], str] | None = None
    """Redacts the keys in use: a text that it changes contains one."""


def read_attacks(
    own: Sequence[Attack], files: Sequence[Path], read_ask: ReadAsk = no_ask
) -> tuple[list[Attack], int, list[str]]:
    """Some texts and those of files, the number of unreadable items, and the first few problems."""
    texts, bad, problems = list(own), 0, list[str]()
    for file in files:
        attack_file = read_file(file, read_ask)
        texts += attack_file.attacks
        bad += attack_file.bad
        problems += attack_file.problems
    if not texts:
        raise UserError("there is no text to plant", "give --attacks a file, or leave --only-files out")
    return texts, bad, problems


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackSetup(ABC):
    """A skill under attack: what all runs of a campaign share, and how one is made."""

    skill: SkillDocument
    request: BacktestRequest
    skill_digest: str
    canary: Canary

    @abstractmethod
    def texts(self, files: Sequence[Path], only_files: bool) -> tuple[list[Attack], int, list[str]]:
        """The attack texts, the number of unreadable items of the files, and the first few problems."""

    @abstractmethod
    def remarks(self, slots: Sequence[Slot]) -> list[str]:
        """Properties of the skill that affect the figures."""

    def empty_slots(self) -> dict[Slot, str]:
        """The slots in which no text can be planted, each with the reason."""
        return {}

    @abstractmethod
    def hostile(self, attack: Attack | None, seed: str) -> Model:
        """A model that the attacker controls."""

    @abstractmethod
    def stand_in(self) -> Model:
        """The stand-in program for a model."""

    @abstractmethod
    async def run(
        self, campaign_model: CampaignModel, slot: Slot, attack: Attack | None, seed: str, watch: Watch
    ) -> AttackResult:
        """One run with an attack in a slot, or with harmless text in the same slot."""


def count(
    records: Sequence[Record], breaches: Sequence[Breach], attack: Attack | None, compared: Sequence[str], idle: str
) -> AttackResult:
    """Count what a run did. Decisions are compared by some of their fields; `idle` is the action that does nothing."""
    ask = None if attack is None else attack.ask
    decisions: list[tuple[Any, ...]] = []
    accepted = refused = dropped = turned_away = requested_trades = 0
    cost, equity = ZERO, ZERO
    for record in records:
        body, extra = codec.loads_exact(record.covered), codec.loads(record.extra)
        equity = _equity(body["after"]) if "after" in body else equity
        if record.kind != "tick":
            continue
        cost += Decimal(extra.get("cost_usd") or 0)
        dropped += "multiple_proposals" in body["flags"]
        turned_away += sum(call["failed"] for step in body["steps"] for call in step["calls"])
        decisions.append(_decision(body, compared, idle))
        for proposal, verdict in zip(body["proposals"], body["verdicts"], strict=True):
            if verdict["outcome"] == "refused":
                refused += 1
            elif verdict["outcome"] != "noop":
                accepted += 1
                requested_trades += ask is not None and ask.met_by(proposal)
    return AttackResult(
        records=tuple(records),
        breaches=tuple(breaches),
        decisions=tuple(decisions),
        proposals=accepted + refused,
        accepted=accepted,
        refused=refused,
        dropped=dropped,
        turned_away=turned_away,
        requested_trades=requested_trades,
        equity_usd=equity,
        cost_usd=cost,
    )


def _equity(summary: Mapping[str, Any]) -> Decimal:
    return Decimal(summary.get("equity_usd", summary.get("equity", 0)))


def _decision(body: Mapping[str, Any], compared: Sequence[str], idle: str) -> tuple[Any, ...]:
    for proposal in body["proposals"]:
        if isinstance(proposal, dict) and proposal.get("action") != idle:
            return tuple(str(proposal.get(key)) for key in compared)
    return ()
