"""A study of a thousand runs: how long it takes to list the studies, to filter its runs, to open it, and to judge its luck.

The runs are rows as real runs leave them: one is really made, and stored again under other names, with daily returns of two
months for each. What is measured is what a page or a command calls, from the database to the finished document; judging
counts from the second time on, as the first reads every record of every run once.
"""

import asyncio
from collections.abc import Callable, Iterable
from time import process_time

from numpy.random import PCG64, Generator
from sqlalchemy import insert

from pitboss.bench.market import MarketShape
from pitboss.bench.measure import FULL, Bench, Measure
from pitboss.bench.row import LIMIT, BenchRow, RatioGate
from pitboss.bench.timing import Side, interleave, seconds
from pitboss.bench.trial import policy_request
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.jobs.run_series import RunSeries, save_series, series_key
from pitboss.jobs.study import StudySettings, study
from pitboss.jobs.study_plans import sweep_plan
from pitboss.jobs.study_status import evaluated_study, runs_of, study_list, study_summary
from pitboss.sim.study.axis import parse_axes
from pitboss.store import sealed_rows as rows
from pitboss.store.schema import SEAL
from pitboss.store.schema import runs as table

RUNS, FEW = 1_000, 20
LIMIT_MS = 300.0
GATE = RatioGate("at most", 1.0)
DAYS = 60
"""So many daily returns make 16 blocks, the most that judging takes."""
SHARES = 50
"""Values of the varied field; each has its part of the runs, told apart by their seed."""


def measure(bench: Bench) -> Iterable[BenchRow]:
    """One row each for the list, a filter, the whole, and the whole with how much of it is luck."""
    count = RUNS if bench.scale == FULL else FEW
    shape = MarketShape(4)
    with bench.grounds.workspace(shape) as workspace:
        study_id = _made(workspace, shape, count)
        asked = {
            "listed": lambda: study_list(workspace),
            "filtered": lambda: runs_of(workspace, study_id, "complete", point={"risk.max_position_pct": "7"}),
            "opened": lambda: study_summary(workspace, study_id),
            "judged": lambda: evaluated_study(workspace, study_id),
        }
        found = len(runs_of(workspace, study_id))
        taken = interleave({name: _timed(call) for name, call in asked.items()}, max(3, bench.repeats))
        for name, call in asked.items():
            began = process_time()
            call()
            note = f"{found:,} runs in the study; {(process_time() - began) * 1_000:.0f} ms of processor"
            yield BenchRow(f"study {name}", taken[name], "ms", LIMIT, LIMIT_MS, GATE, note)


def _timed(call: Callable[[], object]) -> Side:
    return lambda: seconds(call) * 1_000


def _made(workspace: Workspace, shape: MarketShape, count: int) -> str:
    """A study of so many runs, of which one was really done."""
    made = sweep_plan(policy_request(shape), parse_axes(["risk.max_position_pct=1"]))
    done = asyncio.run(study(workspace, made.plan, made.method, StudySettings("here", 1)))
    with workspace.database.write() as connection:
        (first,) = rows.fetch_all(connection, rows.raw(table).where(table.c.study_id == done.id))
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
    names = [series_key(run.id, run.digest) for run in runs_of(workspace, done.id) if run.digest is not None]
    save_series(workspace, done.id, [(name, RunSeries(tuple(random.normal(0, 0.01, DAYS).tolist()))) for name in names])
    return done.id


MEASURE = Measure("study", "a study of a thousand runs: listed, filtered, opened, judged", measure, 60)
