"""Processes that claim the same run: `python competing_claims.py ADDRESS SKILL CONTENDERS ROUNDS PERIOD_S SPREAD`.

Every contender is a fork of this process and claims once in every round; `SPREAD` is the share of the period over which the
claims are spread, 0 for all at the same moment. One run is enqueued before every round. Prints JSON: how long each claim
took, in seconds, and how many found the database unreachable.
"""

import json
import os
import socket
import sys
import time
from collections.abc import Sequence
from typing import TextIO

from pitboss.core.instant import Instant
from pitboss.store.database import open_database
from pitboss.store.queue import Job, Queue
from pitboss.store.retry import Unreachable


def contend(address: str, number: int, line: TextIO, turns: Sequence[float]) -> dict[str, object]:
    """Claim at these times after the start, at which every contender has opened the database."""
    took_s: list[float] = []
    unreachable = 0
    with open_database(address) as database:
        queue = Queue(database, now, str)
        queue.claim(f"early-{number}", build="none of ours")
        started_at_s = wait_for_start(line)
        for turn in turns:
            sleep_until(started_at_s + turn)
            claimed_s = time.perf_counter()
            try:
                queue.claim(f"w-{number}")
            except Unreachable:
                unreachable += 1
            took_s.append(time.perf_counter() - claimed_s)
    return {"took_s": took_s, "unreachable": unreachable}


def feed(address: str, skill_id: str, moments: list[float]) -> None:
    """Enqueue one run at each of these times."""
    with open_database(address) as database:
        ids = iter(f"run{number}" for number in range(len(moments)))
        queue = Queue(database, now, lambda: next(ids))
        for moment in moments:
            sleep_until(moment)
            queue.enqueue([Job(skill_id, 1, "policy/hold", {}, build="ours")])


def now() -> Instant:
    return time.time_ns() // 1_000_000


def sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.time()))


def main(address: str, skill_id: str, contenders: int, rounds: int, period_s: float, spread: float) -> None:
    lines: list[TextIO] = []
    for number in range(contenders):
        here, there = socket.socketpair()
        if not os.fork():
            here.close()
            late_s = spread * period_s * number / contenders
            try:
                line = there.makefile("rw")
                result = contend(address, number, line, [turn * period_s + late_s for turn in range(rounds)])
                line.write(json.dumps(result))
                line.flush()
            finally:
                os._exit(0)  # a fork must not continue as its parent; a missing result fails the test
        there.close()
        lines.append(here.makefile("rw"))
    for line in lines:
        line.readline()
    start = time.time() + 1.0
    for line in lines:
        line.write(f"{start}\n")
        line.flush()
    feed(address, skill_id, [start + (turn - 0.5) * period_s for turn in range(rounds)])
    results = [json.loads(line.read()) for line in lines]
    took_s = [seconds for result in results for seconds in result["took_s"]]
    print(json.dumps({"took_s": took_s, "unreachable": sum(result["unreachable"] for result in results)}))


def wait_for_start(line: TextIO) -> float:
    """Report that this process is ready; returns the time of the start."""
    line.write("ready\n")
    line.flush()
    return float(line.readline())


if __name__ == "__main__":
    address, skill_id, contenders, rounds, period_s, spread = sys.argv[1:]
    main(address, skill_id, int(contenders), int(rounds), float(period_s), float(spread))
