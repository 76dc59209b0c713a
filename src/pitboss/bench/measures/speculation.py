"""What asking ahead is worth: a day of ticks with a model that takes 100 ms, against the same run one tick at a time.

Whether the model orders at a tick hangs on the digest of its prompt alone, so both runs are given the same answers.
Every run is held against a sequential one without any waiting: another digest, a question asked twice, or more waste
than the cap allows ends the measurement. Answers go through the cache that a real model has in front of it, and are
committed.

With the same share of holds, one sequence of orders can be twice as hard as another: what counts is how they are spread.
The gates are held on sequences thrown by chance with that share; beside them stand evenly spaced orders, as of a skill
that acts by the clock.
"""

import asyncio
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median

from pitboss.bench.market import MarketShape
from pitboss.bench.measure import Bench, Measure
from pitboss.bench.row import BenchRow, RatioGate, skipped
from pitboss.bench.trial import assembled, model_request, replay_seconds, with_model
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import InvariantError
from pitboss.core.instant import parse_instant
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.models.cached import Cached
from pitboss.models.call import DirectClient
from pitboss.models.scripted import calls
from pitboss.sim.speculator import Speculation, Tally
from pitboss.store.answers import Answers
from pitboss.store.journal import StoredJournal

TICKS, WAIT_S, STEP_MS = 288, 0.1, 300_000
SHORT_WAIT_S = 0.002
"""For a run that only shows that everything works."""

SHARE_WITHIN, MOST_TRIED = 0.01, 200
"""How near a sequence's share of orders must come to be measured, and how many are looked at."""

REFERENCE = "one tick at a time"


@dataclass(frozen=True, slots=True)
class SpeculationCase:
    """How often the model orders, what may be wasted, and what must come of it."""

    name: str
    orders: float
    max_waste_pct: float
    gate: RatioGate


CASES = (
    SpeculationCase("speculation, 90 % holds, waste up to 50 %", 0.10, 50, RatioGate("at least", 5.0)),
    SpeculationCase("speculation, 95 % holds", 0.05, 35, RatioGate("at least", 8.0)),
    SpeculationCase("speculation, 98 % holds", 0.02, 35, RatioGate("at least", 11.0)),
)
BUSY = SpeculationCase("speculation, orders at every tick", 1.0, 35, RatioGate("at most", 1.05))


class Moody:
    """A model that waits, and then holds or turns its position round as the digest of the prompt says."""

    name = "scripted/moody"

    def __init__(self, orders: float, wait_s: float, salt: int | None) -> None:
        """Without a salt the orders are evenly spaced."""
        self._share, self._every = int(orders * 2**32), round(1 / orders)
        self._wait_s, self._salt = wait_s, None if salt is None else str(salt).encode()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The answer to this prompt."""
        if self._wait_s:
            await asyncio.sleep(self._wait_s)
        (message,) = request.messages
        if not self._orders(message.text):
            return calls("propose_order", action="no_op", symbol="SOL", reason="Nothing has changed enough.")
        if "no open positions" not in message.text:
            return calls("propose_order", action="close", symbol="SOL", reason="The move has had its time.")
        words = {"action": "open_long", "symbol": "SOL", "size_usd": 20_000, "leverage": 2}
        return calls("propose_order", **words, reason="It turns up.")

    def _orders(self, prompt: str) -> bool:
        if self._salt is not None:
            return int.from_bytes(hashlib.sha256(self._salt + prompt.encode()).digest()[:4]) < self._share
        shown = prompt.split("## Time\n", 1)[1].split(" UTC", 1)[0]
        return parse_instant(shown.replace(" ", "T") + "Z") // STEP_MS % self._every == self._every - 1


class RepeatedDay:
    """The same day again and again."""

    def __init__(self, workspace: Workspace, shape: MarketShape, ticks: int) -> None:
        self._workspace = workspace
        self._loaded = assembled(workspace, model_request(shape, ticks))
        self._answers = Answers(workspace.database, workspace.now)
        self._made = 0
        self.digest = ""
        self.ordered: list[bool] = []

    def quick(self, case: SpeculationCase, salt: int | None) -> None:
        """What must come out, found without waiting and without a cache."""
        replay_seconds(self._workspace, with_model(self._loaded, Moody(case.orders, 0.0, salt)), self._look)

    def seconds(self, case: SpeculationCase, wait_s: float, salt: int | None, plan: Speculation | None = None) -> float:
        """One run. No run finds the answers of another."""
        self._made += 1
        cached = Cached(
            DirectClient(Moody(case.orders, wait_s, salt)), self._answers, f"bench-{self._made}", self._made
        )
        made = with_model(self._loaded, cached)
        made = replace(made, script=replace(made.script, speculation=plan))
        taken = replay_seconds(self._workspace, made, self._look)
        paid = len(made.script.tick_at) + (plan.tally.wasted if plan else 0)
        if cached.calls != paid:
            raise InvariantError(f"{cached.calls} questions were asked where {paid} were accounted for")
        return taken

    def checked(self, case: SpeculationCase, wait_s: float, salt: int | None) -> tuple[float, Tally]:
        """One run ahead, held against the run that `quick` has just made."""
        plan, digest = Speculation(max_waste_pct=case.max_waste_pct), self.digest
        taken = self.seconds(case, wait_s, salt, plan)
        if digest != self.digest:
            raise InvariantError(f"{case.name}: the run has another digest than the sequential one")
        if plan.tally.waste_pct > case.max_waste_pct:
            raise InvariantError(f"{case.name}: {plan.tally.waste_pct:.1f} % was wasted")
        return taken, plan.tally

    def _look(self, journal: StoredJournal) -> None:
        self.ordered = []
        for record in journal.records():
            self.digest = record.digest
            if record.kind == "tick":
                self.ordered.append(codec.loads(record.covered)["verdicts"][0]["outcome"] != "noop")


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Three shares of holds, and none."""
    ticks = min(TICKS, bench.scale.model_ticks)
    wait_s = WAIT_S if ticks == TICKS else SHORT_WAIT_S
    shape = MarketShape(8)
    rounds = max(1, min(bench.repeats * 3, 15))  # sequences differ more than measurements do
    with bench.grounds.workspace(shape, "one") as workspace:
        runs = RepeatedDay(workspace, shape, ticks)
        runs.quick(BUSY, 0)
        alone = runs.seconds(CASES[1], wait_s, 0)  # nearly all of it is waiting: once is enough
        for case in CASES:
            yield _row(case, runs, alone, wait_s, rounds)
        for case in CASES:
            runs.quick(case, None)
            taken, tally = runs.checked(case, wait_s, None)
            name = f"{case.name}, evenly spaced orders"
            yield BenchRow(name, ticks / taken, "ticks/s", REFERENCE, ticks / alone, note=_waste([tally]))
        runs.quick(BUSY, 0)
        taken, tally = runs.checked(BUSY, wait_s, 0)
        yield BenchRow(BUSY.name, taken, "s", REFERENCE, runs.seconds(BUSY, wait_s, 0), BUSY.gate, _waste([tally]))


def _row(case: SpeculationCase, runs: RepeatedDay, alone: float, wait_s: float, rounds: int) -> BenchRow:
    """The speed-up over several sequences of answers."""
    took: list[float] = []
    tallies: list[Tally] = []
    ticks = len(runs.ordered)
    for salt in range(MOST_TRIED):
        runs.quick(case, salt)
        if abs(sum(runs.ordered) / ticks - case.orders) <= max(SHARE_WITHIN, 1 / ticks):
            taken, tally = runs.checked(case, wait_s, salt)
            took.append(taken)
            tallies.append(tally)
            if len(took) == rounds:
                break
    if not took:
        return skipped(case.name, "ticks/s", "no sequence of answers with that share of holds", REFERENCE, case.gate)
    note = f"{len(took)} sequences, {alone / max(took):.1f} to {alone / min(took):.1f}×; {_waste(tallies)}"
    return BenchRow(case.name, ticks / median(took), "ticks/s", REFERENCE, ticks / alone, case.gate, note)


def _waste(tallies: list[Tally]) -> str:
    launched, used, wasted = (sum(getattr(one, word) for one in tallies) for word in ("launched", "used", "wasted"))
    most = max(one.waste_pct for one in tallies)
    return f"{launched:,} asked ahead, {used:,} used, {wasted:,} wasted, at most {most:.0f} % of a run"


MEASURE = Measure("speculation", "288 ticks of 100 ms asked ahead, against one after the other", measure, 22)
