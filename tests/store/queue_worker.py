"""A worker as bare as it can be, to be killed: python queue_worker.py ADDRESS NAME STALE_MS RECORDS PAUSE_MS."""

import asyncio
import sys
import time

from pitboss.core.errors import InvariantError
from pitboss.store.database import open_database
from pitboss.store.journal import StoredJournal
from pitboss.store.lifecycle import LeaseLost
from pitboss.store.queue import Lease, Queue
from pitboss.store.retry import Unreachable, retry_while_unreachable
from pitboss.store.runs import Runs
from pitboss.testing.journal import chained, state_after

MOST = 50
address, name, stale_ms, records, pause_ms = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])


def pause() -> None:
    time.sleep(pause_ms / 1_000)


async def work(runs: Runs, queue: Queue, lease: Lease) -> None:
    chain = chained(records)
    journal = StoredJournal(database, lease.run_id, lease.epoch, logged=True)
    stored = journal.latest_state()
    done = 0 if stored is None else stored[0]
    for number in range(done, records):
        await journal.commit(chain[number : number + 1], state_after(chain[: number + 1]), number / records)
        pause()
        beat = await retry_while_unreachable(lambda: queue.beat({lease.run_id: lease.epoch}))
        if beat.lost:
            return
    await retry_while_unreachable(lambda: runs.set_status(lease.run_id, "computing_metrics", lease.epoch))
    end = {"digest": chain[-1].digest, "metrics": {}, "baselines": {}}
    await retry_while_unreachable(lambda: runs.finish(lease.run_id, lease.epoch, **end))


with asyncio.run(retry_while_unreachable(lambda: open_database(address))) as database:
    runs, queue = Runs(database, lambda: 0, str), Queue(database, lambda: 0, str)
    while True:
        try:
            queue.sweep(stale_ms, MOST)
            lease = queue.claim(name, into="running")
            if lease is not None:
                asyncio.run(work(runs, queue, lease))
            elif queue.depth().working == queue.depth().ready == 0:
                break
            else:
                pause()
        except (LeaseLost, Unreachable):
            pause()
        except InvariantError as error:  # nothing else may happen: the harness finds this line
            print("INVARIANT", error, flush=True)
