"""A study of a thousand runs: listing the studies, filtering its runs, opening it, estimating the part of luck.

The runs are rows as real runs store them: one run is made and stored again under other ids, each with two months of daily
returns. What is measured is what a page or a command calls, from the database to the finished document. Estimating counts
from the second time on, because the first reads every record of every run once.
"""

import asyncio
from collections.abc import Callable, Iterable
from time import process_time

from numpy.random import PCG64, Generator
from sqlalchemy import insert

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.jobs.run_series import RunSeries, save_series, series_key
from pitboss.jobs.study import study
from pitboss.jobs.study_plans import sweep_plan
from pitboss.jobs.study_queue import StudySettings
from pitboss.jobs.study_status import evaluated_study, runs_of, study_list, study_summary
from pitboss.sim.study.axis import parse_axes
from pitboss.store import sealed_rows as rows
from pitboss.store.schema import SEAL
from pitboss.store.schema import runs as table
from pitboss_dev.bench.backtests import policy_request
from pitboss_dev.bench.market import MarketShape
from pitboss_dev.bench.measure import FULL, Bench, Measure
from pitboss_dev.bench.row import LIMIT, BenchRow, RatioGate
from pitboss_dev.bench.timing import Side, interleave, seconds

RUNS, FEW = 1_000, 20
LIMIT_MS = 300.0
GATE = RatioGate("at most", 1.0)
DAYS = 60
"""Enough daily returns for 16 blocks, the most that the estimate uses."""
SHARES = 50
"""Values of the varied field; the runs of each value differ by their seed."""


def measure(bench: Bench) -> Iterable[BenchRow]:
    """One row each for the list, a filter, the study, and the study with its estimate of luck."""
    count = RUNS if bench.scale == FULL else FEW
    shape = MarketShape(4)
    with bench.folder.workspace(shape) as workspace:
        study_id = _make_study(workspace, shape, count)
        queries = {
            "listed": lambda: study_list(workspace),
            "filtered": lambda: runs_of(workspace, study_id, "complete", point={"risk.max_position_pct": "7"}),
            "opened": lambda: study_summary(workspace, study_id),
            "judged": lambda: evaluated_study(workspace, study_id),
        }
        count = len(runs_of(workspace, study_id))
        ms = interleave({name: _timed(call) for name, call in queries.items()}, max(3, bench.repeats))
        for name, call in queries.items():
            start = process_time()
            call()
            note = f"{count:,} runs in the study; {(process_time() - start) * 1_000:.0f} ms of processor"
            yield BenchRow(f"study {name}", ms[name], "ms", LIMIT, LIMIT_MS, GATE, note)


def _timed(call: Callable[[], object]) -> Side:
    return lambda: seconds(call) * 1_000


def _make_study(workspace: Workspace, shape: MarketShape, count: int) -> str:
    """A study of `count` runs, one of which was executed."""
    planned = sweep_plan(policy_request(shape), parse_axes(["risk.max_position_pct=1"]))
    finished = asyncio.run(study(workspace, planned.plan, planned.method, StudySettings("here", 1)))
    with workspace.database.write() as connection:
        (first,) = rows.fetch_all(connection, rows.raw(table).where(table.c.study_id == finished.id))
        params = codec.loads(first["params"])
        copies: list[dict[str, object]] = []
        for number in range(1, count):
            point = {"risk.max_position_pct": str(number % SHARES + 1), "seed": str(number // SHARES)}
            mark = {**params["study"], "trial": number, "point": point, "key": f"{number:016x}"}
            body = codec.dumps({**params, "study": mark})
            row = {**first, "id": f"{number:012x}", "params": body, "created_at": first["created_at"] + number}
            copies.append({**row, SEAL: rows.seal_of(table, row)})
        connection.execute(insert(table), copies)
    random = Generator(PCG64(0))
    keys = [series_key(run.id, run.digest) for run in runs_of(workspace, finished.id) if run.digest is not None]
    series = [(key, RunSeries(tuple(random.normal(0, 0.01, DAYS).tolist()))) for key in keys]
    save_series(workspace, finished.id, series)
    return finished.id


MEASURE = Measure("study", "a study of a thousand runs: list, filter, open, estimate of luck", measure, 60)
