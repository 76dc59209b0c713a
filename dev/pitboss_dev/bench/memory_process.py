"""One run in a process of its own, which prints its peak memory.

    python -m pitboss_dev.bench.memory_process HOME MODEL TICKS SHAPE

The market must have been written before, so that making it is not measured. `TICKS` 0 means the whole range.
"""

import asyncio
import json
import resource
import sys
from dataclasses import replace
from pathlib import Path

from pitboss.core.instant import DAY_MS
from pitboss.runs.run import start
from pitboss_dev.bench.backtests import BenchFolder, policy_request
from pitboss_dev.bench.market import START_AT, STEP_MS, MarketShape


def peak_mb() -> float:
    """The peak resident memory of this process. On Linux not from `ru_maxrss`, which starts at the parent's value."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text("ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def main(home: str, model: str, ticks: str, shape_text: str) -> None:
    """Run the backtest, then print one JSON document."""
    plain = json.loads(shape_text)
    shape = MarketShape(plain["days"], tuple(plain["symbols"]), plain["funding"])
    before = peak_mb()
    folder = BenchFolder(Path(home).parent)
    if not folder.market(shape).samefile(home):
        raise SystemExit(f"the market is not in {home}")
    request = policy_request(shape, model=model)
    if int(ticks):
        from_at = START_AT + min(3, shape.days // 2) * DAY_MS
        request = replace(request, from_at=from_at, to_at=min(from_at + int(ticks) * STEP_MS, shape.end_at))
    with folder.workspace(shape) as workspace:
        run = asyncio.run(start(workspace, request))
    print(json.dumps({"peak_mb": peak_mb(), "before_mb": before, "ticks": run.ticks}))


if __name__ == "__main__":
    main(*sys.argv[1:])
