"""One run in a process of its own, which then tells its peak memory: `python -m pitboss_dev.bench.lone HOME MODEL TICKS SHAPE`.

The market has been written before: making it is not part of what is measured. 0 ticks: the whole range.
"""

import asyncio
import json
import resource
import sys
from dataclasses import replace
from pathlib import Path

from pitboss.core.instant import DAY_MS
from pitboss.runs.run import start
from pitboss_dev.bench.market import START_AT, MarketShape
from pitboss_dev.bench.trial import Grounds, policy_request


def peak_mb() -> float:
    """The most memory this process has had. Linux: not `ru_maxrss`, which starts from the parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text("ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def main(home: str, model: str, ticks: str, shape_text: str) -> None:
    """Run, then print one JSON document."""
    plain = json.loads(shape_text)
    shape = MarketShape(plain["days"], tuple(plain["symbols"]), plain["funding"])
    before = peak_mb()
    grounds = Grounds(Path(home).parent)
    if not grounds.market(shape).samefile(home):
        raise SystemExit(f"the market is not in {home}")
    request = policy_request(shape, model=model)
    if int(ticks):
        from_at = START_AT + min(3, shape.days // 2) * DAY_MS
        request = replace(request, from_at=from_at, to_at=min(from_at + int(ticks) * 300_000, shape.end_at))
    with grounds.workspace(shape) as workspace:
        run = asyncio.run(start(workspace, request))
    print(json.dumps({"peak_mb": peak_mb(), "before_mb": before, "ticks": run.ticks}))


if __name__ == "__main__":
    main(*sys.argv[1:])
