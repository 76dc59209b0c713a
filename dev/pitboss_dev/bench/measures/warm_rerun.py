"""The same backtest again when every reply is cached: no model is called, and a tick costs what is left.

The first run fills the cache; the model of the reruns fails the measurement if it is called. Speculation is on, as for real
models: where nothing waits it must not cost anything. The floor is that of `model_tick`.
"""

from collections.abc import Iterable

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import InvariantError
from pitboss.core.ports import Model, ModelReply, ModelRequest
from pitboss.models.cached import Cached
from pitboss.models.call import DirectClient
from pitboss.sim.speculation import Speculation
from pitboss.store.answers import Answers
from pitboss.store.journal import StoredJournal
from pitboss_dev.bench.backtests import model_course, model_request, prepare, replay_seconds
from pitboss_dev.bench.market import MarketShape, random_walk
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.measures.model_tick import FLOOR_LEVEL, REFERENCE, Floor
from pitboss_dev.bench.measures.speculation import HashedOrdersModel
from pitboss_dev.bench.row import BenchRow, RatioGate
from pitboss_dev.bench.timing import interleave

ORDERS = 0.05


class RefusingModel:
    """A model that must not be called."""

    name = HashedOrdersModel.name

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Fails the measurement."""
        raise InvariantError("a warm rerun called the model")


class Reruns:
    """One backtest, repeated over the cached replies of its first run."""

    def __init__(self, workspace: Workspace, shape: MarketShape, ticks: int) -> None:
        self._workspace = workspace
        self._prepared = prepare(workspace, model_request(shape, ticks))
        self._answers = Answers(workspace.database, workspace.now)
        self._runs = 0
        self._digest = ""
        self.ticks = len(self._prepared.tick_at)
        self.prompt = ""
        self.calls = self._run(HashedOrdersModel(ORDERS, 0.0, 0))[1]
        self._expected = self._digest

    def seconds(self) -> float:
        """Seconds of one tick."""
        duration, _ = self._run(RefusingModel())
        if self._digest != self._expected:
            raise InvariantError("a warm rerun has another digest than the run before it")
        return duration / self.ticks

    def _run(self, model: Model) -> tuple[float, int]:
        self._runs += 1
        cached = Cached(DirectClient(model), self._answers, f"bench-{self._runs}")
        course = model_course(self._prepared, cached, Speculation())
        return replay_seconds(self._workspace, self._prepared, course, self._read_records), cached.calls

    def _read_records(self, journal: StoredJournal) -> None:
        for record in journal.records(self.ticks - 1):
            self._digest = record.digest
            if record.kind == "tick":
                self.prompt = "\n".join(codec.loads(record.extra)["prompt"])


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Ticks a second, compared with the floor."""
    ticks = bench.scale.model_ticks
    shape = MarketShape(max(8, 4 + ticks // 288))
    with bench.folder.workspace(shape, "one") as workspace:
        reruns = Reruns(workspace, shape, ticks)
        floor = Floor(bench.folder.path / "warm-floor.db", random_walk("SOL", shape), reruns.prompt, FLOOR_LEVEL)
        try:
            tick_s = interleave({"warm": reruns.seconds, "floor": lambda: floor.seconds(ticks)}, bench.repeats)
        finally:
            floor.close()
    note = f"0 calls where the first run made {reruns.calls:,}"
    gate = RatioGate("at least", 0.12)
    yield BenchRow("warm rerun", 1 / tick_s["warm"], "ticks/s", REFERENCE, 1 / tick_s["floor"], gate, note)


MEASURE = Measure("warm_rerun", "the same backtest with every reply cached, against the bare floor", measure, 21)
