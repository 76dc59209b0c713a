"""The same backtest again when every answer is known: no call is made, and a tick costs what is left without a model.

The first run fills the cache of answers; the model of the reruns fails the measurement if it is asked. Speculation is
on, as it is for real models: where nothing waits it must not cost anything. The bare floor is that of `model_tick`.
"""

from collections.abc import Iterable
from dataclasses import replace

from pitboss.bench.market import MarketShape, walk
from pitboss.bench.measure import Bench, Measure
from pitboss.bench.measures.model_tick import FLOOR_LEVEL, REFERENCE, Floor
from pitboss.bench.measures.speculation import Moody
from pitboss.bench.row import BenchRow, RatioGate
from pitboss.bench.timing import interleave
from pitboss.bench.trial import assembled, model_request, replay_seconds, with_model
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import InvariantError
from pitboss.core.ports import Model, ModelReply, ModelRequest
from pitboss.models.cached import Cached
from pitboss.models.call import DirectClient
from pitboss.sim.speculator import Speculation
from pitboss.store.answers import Answers
from pitboss.store.journal import StoredJournal

ORDERS = 0.05


class UnaskedModel:
    """A model that must not be asked."""

    name = Moody.name

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Ends the measurement."""
        raise InvariantError("a warm rerun asked the model")


class Reruns:
    """One backtest, run again and again over the answers of its first run."""

    def __init__(self, workspace: Workspace, shape: MarketShape, ticks: int) -> None:
        self._workspace = workspace
        self._loaded = assembled(workspace, model_request(shape, ticks))
        self._answers = Answers(workspace.database, workspace.now)
        self._made = 0
        self._digest = ""
        self.ticks = len(self._loaded.script.tick_at)
        self.prompt = ""
        self.calls = self._run(Moody(ORDERS, 0.0, 0))[1]
        self._expected = self._digest

    def seconds(self) -> float:
        """Seconds of one tick."""
        taken, _ = self._run(UnaskedModel())
        if self._digest != self._expected:
            raise InvariantError("a warm rerun has another digest than the run before it")
        return taken / self.ticks

    def _run(self, model: Model) -> tuple[float, int]:
        self._made += 1
        cached = Cached(DirectClient(model), self._answers, f"bench-{self._made}")
        made = with_model(self._loaded, cached)
        made = replace(made, script=replace(made.script, speculation=Speculation()))
        return replay_seconds(self._workspace, made, self._look), cached.calls

    def _look(self, journal: StoredJournal) -> None:
        for record in journal.records(self.ticks - 1):
            self._digest = record.digest
            if record.kind == "tick":
                self.prompt = "\n".join(codec.loads(record.extra)["prompt"])


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Ticks a second, against the bare floor."""
    ticks = bench.scale.model_ticks
    shape = MarketShape(max(8, 4 + ticks // 288))
    with bench.grounds.workspace(shape, "one") as workspace:
        reruns = Reruns(workspace, shape, ticks)
        floor = Floor(bench.grounds.folder / "warm-floor.db", walk("SOL", shape), reruns.prompt, FLOOR_LEVEL)
        try:
            taken = interleave({"warm": reruns.seconds, "floor": lambda: floor.seconds(ticks)}, bench.repeats)
        finally:
            floor.close()
    note = f"0 calls where the first run made {reruns.calls:,}"
    yield BenchRow(
        "warm rerun", 1 / taken["warm"], "ticks/s", REFERENCE, 1 / taken["floor"], RatioGate("at least", 0.12), note
    )


MEASURE = Measure("warm_rerun", "the same backtest when every answer is known, against the bare floor", measure, 21)
