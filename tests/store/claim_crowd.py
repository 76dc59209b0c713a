"""A crowd that wants one run: `python claim_crowd.py ADDRESS SKILL CONTENDERS ROUNDS PERIOD_S SPREAD`, told as JSON.

Every contender is a process of its own, a fork of this one, and asks once in every round; `SPREAD` is the share of the period
over which they ask, 0 for all at the same moment. One run is queued before every round. Tells how long each claim took, in
seconds, and how many were told that the database is away.
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
    """Ask at these moments after the begin, which is when all have the database open."""
    took: list[float] = []
    away = 0
    with open_database(address) as database:
        queue = Queue(database, now, str)
        queue.claim(f"early-{number}", build="none of ours")
        began = begun(line)
        for turn in turns:
            sleep_until(began + turn)
            asked = time.perf_counter()
            try:
                queue.claim(f"w-{number}")
            except Unreachable:
                away += 1
            took.append(time.perf_counter() - asked)
    return {"took": took, "away": away}


def feed(address: str, skill_id: str, moments: list[float]) -> None:
    """One run at each of these moments."""
    with open_database(address) as database:
        ids = iter(f"one{number}" for number in range(len(moments)))
        queue = Queue(database, now, lambda: next(ids))
        for moment in moments:
            sleep_until(moment)
            queue.enqueue([Job(skill_id, 1, "policy/hold", {}, build="ours")])


def now() -> Instant:
    return time.time_ns() // 1_000_000


def sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.time()))


def main(address: str, skill_id: str, contenders: int, rounds: int, period_s: float, spread: float) -> None:
    ours: list[TextIO] = []
    for number in range(contenders):
        here, there = socket.socketpair()
        if not os.fork():
            here.close()
            late_s = spread * period_s * number / contenders
            try:
                line = there.makefile("rw")
                told = contend(address, number, line, [turn * period_s + late_s for turn in range(rounds)])
                line.write(json.dumps(told))
                line.flush()
            finally:
                os._exit(0)  # a fork must not go on as its parent; what it did not tell is missed
        there.close()
        ours.append(here.makefile("rw"))
    for line in ours:
        line.readline()
    begin = time.time() + 1.0
    for line in ours:
        line.write(f"{begin}\n")
        line.flush()
    feed(address, skill_id, [begin + (turn - 0.5) * period_s for turn in range(rounds)])
    told = [json.loads(line.read()) for line in ours]
    print(json.dumps({"took": [one for each in told for one in each["took"]], "away": sum(e["away"] for e in told)}))


def begun(line: TextIO) -> float:
    """Say that we are ready, and hear when it begins."""
    line.write("ready\n")
    line.flush()
    return float(line.readline())


if __name__ == "__main__":
    address, skill_id, contenders, rounds, period_s, spread = sys.argv[1:]
    main(address, skill_id, int(contenders), int(rounds), float(period_s), float(spread))
