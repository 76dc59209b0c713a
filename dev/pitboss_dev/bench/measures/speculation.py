"""The speed-up of speculation: a day of ticks with a model that takes 100 ms, compared with one tick at a time.

Whether the model orders at a tick depends on the digest of its prompt alone, so both runs get the same replies. Every run
is checked against a sequential one without waiting: a different digest, a request sent twice, or more waste than the cap
allows fails the measurement. Replies go through the cache that a real model has in front of it, and are committed.

With the same share of holds, one sequence of orders can be twice as hard as another: their spacing counts. The gates hold
for random sequences with that share; rows without a gate show evenly spaced orders, as of a skill that acts by the clock.
"""

import asyncio
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import InvariantError
from pitboss.core.instant import parse_instant
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.models.cached import Cached
from pitboss.models.call import DirectClient
from pitboss.models.scripted import calls
from pitboss.sim.speculation import Speculation, Tally
from pitboss.store.answers import Answers
from pitboss.store.journal import StoredJournal
from pitboss_dev.bench.backtests import model_course, model_request, prepare, replay_seconds
from pitboss_dev.bench.market import STEP_MS, MarketShape
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import BenchRow, RatioGate, skipped

TICKS, WAIT_S = 288, 0.1
SHORT_WAIT_S = 0.002
"""For a run that only shows that everything works."""

SHARE_WITHIN, MOST_TRIED = 0.01, 200
"""How close the share of orders in a sequence must be for it to be measured, and how many sequences are tried."""

REFERENCE = "one tick at a time"


@dataclass(frozen=True, slots=True)
class SpeculationCase:
    """The share of ticks at which the model orders, the cap on waste, and the gate."""

    name: str
    orders: float
    max_waste_pct: float
    gate: RatioGate


CASES = (
    SpeculationCase("speculation, 90 % holds, waste up to 50 %", 0.10, 50, RatioGate("at least", 5.0)),
    SpeculationCase("speculation, 95 % holds", 0.05, 35, RatioGate("at least", 8.0)),
    SpeculationCase("speculation, 98 % holds", 0.02, 35, RatioGate("at least", 11.0)),
)
ALWAYS_ORDERS = SpeculationCase("speculation, orders at every tick", 1.0, 35, RatioGate("at most", 1.05))


class HashedOrdersModel:
    """A model that waits, then holds, opens or closes as the digest of the prompt decides."""

    name = "scripted/hashed-orders"

    def __init__(self, orders: float, wait_s: float, salt: int | None) -> None:
        """Without a salt the orders are evenly spaced."""
        self._threshold, self._every = int(orders * 2**32), round(1 / orders)
        self._wait_s, self._salt = wait_s, None if salt is None else str(salt).encode()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply to this prompt."""
        if self._wait_s:
            await asyncio.sleep(self._wait_s)
        (message,) = request.messages
        if not self._orders(message.text):
            return calls("propose_order", action="no_op", symbol="SOL", reason="Nothing has changed enough.")
        if "no open positions" not in message.text:
            return calls("propose_order", action="close", symbol="SOL", reason="The move has had its time.")
        order = {"action": "open_long", "symbol": "SOL", "size_usd": 20_000, "leverage": 2}
        return calls("propose_order", **order, reason="It turns up.")

    def _orders(self, prompt: str) -> bool:
        if self._salt is not None:
            return int.from_bytes(hashlib.sha256(self._salt + prompt.encode()).digest()[:4]) < self._threshold
        time = prompt.split("## Time\n", 1)[1].split(" UTC", 1)[0]
        return parse_instant(time.replace(" ", "T") + "Z") // STEP_MS % self._every == self._every - 1


class RepeatedDay:
    """A backtest of one day that can be repeated. `digest` and `orders` are those of its last run."""

    def __init__(self, workspace: Workspace, shape: MarketShape, ticks: int) -> None:
        self._workspace = workspace
        self._prepared = prepare(workspace, model_request(shape, ticks))
        self._answers = Answers(workspace.database, workspace.now)
        self._runs = 0
        self.digest = ""
        self.orders: list[bool] = []

    def run_sequential(self, case: SpeculationCase, salt: int | None) -> None:
        """The expected result, without waiting and without a cache."""
        course = model_course(self._prepared, HashedOrdersModel(case.orders, 0.0, salt))
        replay_seconds(self._workspace, self._prepared, course, self._read_records)

    def seconds(
        self, case: SpeculationCase, wait_s: float, salt: int | None, speculation: Speculation | None = None
    ) -> float:
        """The duration of one run. No run uses the cached replies of another."""
        self._runs += 1
        model = HashedOrdersModel(case.orders, wait_s, salt)
        cached = Cached(DirectClient(model), self._answers, f"bench-{self._runs}", self._runs)
        course = model_course(self._prepared, cached, speculation)
        duration = replay_seconds(self._workspace, self._prepared, course, self._read_records)
        expected = len(self._prepared.tick_at) + (speculation.tally.wasted if speculation else 0)
        if cached.calls != expected:
            raise InvariantError(f"{cached.calls} requests were sent where {expected} were accounted for")
        return duration

    def checked_seconds(self, case: SpeculationCase, wait_s: float, salt: int | None) -> tuple[float, Tally]:
        """The duration of a run with speculation, checked against the run of `run_sequential` before it."""
        speculation, digest = Speculation(max_waste_pct=case.max_waste_pct), self.digest
        duration = self.seconds(case, wait_s, salt, speculation)
        if digest != self.digest:
            raise InvariantError(f"{case.name}: the run has another digest than the sequential one")
        if speculation.tally.waste_pct > case.max_waste_pct:
            raise InvariantError(f"{case.name}: {speculation.tally.waste_pct:.1f} % was wasted")
        return duration, speculation.tally

    def _read_records(self, journal: StoredJournal) -> None:
        self.orders = []
        for record in journal.records():
            self.digest = record.digest
            if record.kind == "tick":
                self.orders.append(codec.loads(record.covered)["verdicts"][0]["outcome"] != "noop")


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Three shares of holds, and none."""
    ticks = min(TICKS, bench.scale.model_ticks)
    wait_s = WAIT_S if ticks == TICKS else SHORT_WAIT_S
    shape = MarketShape(8)
    sequences = max(1, min(bench.repeats * 3, 15))  # sequences differ more than measurements do
    with bench.folder.workspace(shape, "one") as workspace:
        day = RepeatedDay(workspace, shape, ticks)
        day.run_sequential(ALWAYS_ORDERS, 0)
        sequential_s = day.seconds(CASES[1], wait_s, 0)  # nearly all of it is waiting: once is enough
        for case in CASES:
            yield _random_orders_row(case, day, sequential_s, wait_s, sequences)
        for case in CASES:
            day.run_sequential(case, None)
            duration, tally = day.checked_seconds(case, wait_s, None)
            name = f"{case.name}, evenly spaced orders"
            yield BenchRow(name, ticks / duration, "ticks/s", REFERENCE, ticks / sequential_s, note=_waste([tally]))
        case = ALWAYS_ORDERS
        day.run_sequential(case, 0)
        duration, tally = day.checked_seconds(case, wait_s, 0)
        yield BenchRow(case.name, duration, "s", REFERENCE, day.seconds(case, wait_s, 0), case.gate, _waste([tally]))
        name, gate = f"{case.name}, wasted guesses", RatioGate("at most", 0.05)
        yield BenchRow(name, tally.wasted, "guesses", "all ticks", ticks, gate)


def _random_orders_row(
    case: SpeculationCase, day: RepeatedDay, sequential_s: float, wait_s: float, sequences: int
) -> BenchRow:
    """The median speed-up over several sequences of replies."""
    durations: list[float] = []
    tallies: list[Tally] = []
    ticks = len(day.orders)
    for salt in range(MOST_TRIED):
        day.run_sequential(case, salt)
        if abs(sum(day.orders) / ticks - case.orders) <= max(SHARE_WITHIN, 1 / ticks):
            duration, tally = day.checked_seconds(case, wait_s, salt)
            durations.append(duration)
            tallies.append(tally)
            if len(durations) == sequences:
                break
    if not durations:
        return skipped(case.name, "ticks/s", "no sequence of replies with that share of holds", REFERENCE, case.gate)
    slowest, fastest = sequential_s / max(durations), sequential_s / min(durations)
    note = f"{len(durations)} sequences, {slowest:.1f} to {fastest:.1f}×; {_waste(tallies)}"
    return BenchRow(case.name, ticks / median(durations), "ticks/s", REFERENCE, ticks / sequential_s, case.gate, note)


def _waste(tallies: list[Tally]) -> str:
    launched, used, wasted = (sum(getattr(tally, name) for tally in tallies) for name in ("launched", "used", "wasted"))
    most = max(tally.waste_pct for tally in tallies)
    return f"{launched:,} asked ahead, {used:,} used, {wasted:,} wasted, at most {most:.0f} % of a run"


MEASURE = Measure("speculation", "288 ticks of 100 ms with speculation, against one after the other", measure, 22)
