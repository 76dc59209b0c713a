"""The page of a run with a decision at each of 100,000 ticks, from a server that has just started.

Everything that a browser asks for until the page is complete counts: the page, its first rows, and the charts zoomed once. What a
worker writes when it writes the report of a run is there already; composing it is timed on its own, without a limit.
"""

from collections.abc import Iterable
from time import perf_counter

from starlette.testclient import TestClient

from pitboss.bootstrap.machine import random_hex
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import InvariantError
from pitboss.runs.indexed_runs import keep_index, keep_page
from pitboss.runs.report import page_of
from pitboss.server.access.sign_in import SignIn, digest
from pitboss.server.app import create_app
from pitboss_dev.bench.long_run import store_long_run
from pitboss_dev.bench.market import MarketShape
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import LIMIT, BenchRow, RatioGate
from pitboss_dev.bench.timing import interleave

LIMIT_MS = 2_000.0
TOKEN = "b" * 48


def measure(bench: Bench) -> Iterable[BenchRow]:
    """One row against the limit, and the time of composing."""
    shape = MarketShape(min(bench.scale.year_days, 349))  # 348 days of 5m ticks are 100,224
    with bench.folder.workspace(shape) as workspace:
        run = store_long_run(workspace, shape)
        start = perf_counter()
        keep_index(workspace, run)
        keep_page(workspace, run, page_of(workspace, run))
        composed_s = perf_counter() - start
        zoomed = f"?from={run.params['from_at']}&to={run.params['from_at'] + 86_400_000}"
        paths = (
            f"/runs/{run.id}",
            f"/api/runs/{run.id}/decisions?limit=100",
            f"/api/runs/{run.id}/decisions?outcome=refused&skip={run.ticks // 2}",
            f"/runs/{run.id}/charts/equity{zoomed}",
            f"/runs/{run.id}/charts/price/SOL{zoomed}",
            f"/runs/{run.id}/decisions/{run.ticks // 2}",
        )
        opened_ms = interleave({"page": lambda: _open(workspace, paths)}, bench.repeats)["page"] * 1e3
    note = f"{run.ticks:,} ticks, one decision each; page, rows, both charts zoomed and one decision"
    gate = RatioGate("at most", 1.0)
    yield BenchRow("run page of 100,000 ticks opens", opened_ms, "ms", LIMIT, LIMIT_MS, gate, note)
    yield BenchRow("run page of 100,000 ticks composed by the worker", composed_s, "s")


def _open(workspace: Workspace, paths: Iterable[str]) -> float:
    """Seconds for all requests to a new app, which has nothing in memory."""
    app = create_app(workspace, SignIn(digest(TOKEN), random_hex))
    client = TestClient(app, base_url="http://127.0.0.1:8700", headers={"Authorization": f"Bearer {TOKEN}"})
    start = perf_counter()
    for path in paths:
        reply = client.get(path)
        if reply.status_code != 200:
            raise InvariantError(f"{path}: {reply.status_code} {reply.text[:200]}")
    return perf_counter() - start


MEASURE = Measure("run_page", "opening the page of a run with 100,000 ticks", measure, 53)
