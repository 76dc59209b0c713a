"""A stored run of very many ticks, made cheaply: the records of one replayed day, repeated and chained anew.

It has everything that a page reads: a decision at every tick with reason and margins, fills, equity, metrics, the bars of its range.
It is not a run that could have happened, so it does not verify.
"""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.instant import DAY_MS, Instant, iso
from pitboss.core.snapshot import GENESIS, Record, seal
from pitboss.runs.run import params_of, start
from pitboss.runs.stored import journal_of
from pitboss.store.import_run import insert_run
from pitboss.store.runs import Run
from pitboss_dev.bench.backtests import policy_request, prepare
from pitboss_dev.bench.market import START_AT, MarketShape

TICK_MS = 300_000


def store_long_run(workspace: Workspace, shape: MarketShape) -> Run:
    """Store a complete run with a record for every bar of the market after its first day; `shape` is that of the workspace."""
    whole = replace(policy_request(shape, START_AT + DAY_MS), decisions="")
    day = replace(whole, to_at=whole.from_at + DAY_MS, decisions="\n".join(_decisions(whole.from_at)))
    short = asyncio.run(start(workspace, day))
    pattern = [record for record in journal_of(workspace, short).records() if record.kind == "tick"]
    prepared = prepare(workspace, whole)
    chain = list(_repeated(pattern, whole.from_at, whole.to_at))
    run = replace(
        short,
        id="longlonglong",
        params={**short.params, **params_of(prepared), "decisions": ""},
        data_digest=prepared.data_digest,
        digest=chain[-1].digest,
        ticks=len(chain),
    )
    insert_run(workspace.database, run, chain, None)
    return run


def _decisions(from_at: Instant) -> Iterator[str]:
    """A proposal at every tick of a day: mostly refused for its size, now and then a position of a few hours."""
    for number in range(DAY_MS // TICK_MS):
        proposal: dict[str, Any] = {"action": "open_short", "symbol": "SOL", "size_usd": 900_000, "leverage": 3}
        if number % 40 == 10:
            proposal |= {"action": "open_long", "size_usd": 20_000, "leverage": 2}
        elif number % 40 == 30:
            proposal = {"action": "close", "symbol": "SOL"}
        proposal["reason"] = (
            f"Number {number}: the last bars and the wider trend point the same way, so it is worth a try."
        )
        yield json.dumps({"tick_at": iso(from_at + number * TICK_MS), "proposal": proposal})


def _repeated(pattern: list[Record], from_at: Instant, to_at: Instant) -> Iterator[Record]:
    bodies = [(codec.loads(record.covered), record.extra) for record in pattern]
    prev, seq = GENESIS, 0
    for at in range(from_at, to_at, TICK_MS):
        body, extra = bodies[seq % len(bodies)]
        shift = at - body["tick_at"]
        equity = [(piece[0] + shift, *piece[1:]) for piece in body["equity"]]
        receipts = [{**receipt, "at": receipt["at"] + shift} for receipt in body["receipts"]]
        covered = {**body, "equity": equity, "receipts": receipts}
        record = seal(seq, "tick", at, prev, covered, extra)
        yield record
        prev, seq = record.digest, seq + 1
