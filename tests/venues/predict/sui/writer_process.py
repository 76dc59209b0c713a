"""A process of its own that opens the writer as the program does, and submits one order or finds out about it."""

import asyncio
import json
import sys
from pathlib import Path

from pitboss.bootstrap.settings import Settings
from pitboss.core.instant import MINUTE_MS
from pitboss.store.database import open_database
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.sui_setup import open_writer
from venues.predict.sui.writer_machine import TICK, fresh_desk, mint_request


async def work(home: Path, action: str, orders: int) -> dict[str, object]:
    desk = fresh_desk()
    kinds: list[str] = []
    with open_database(home / "pitboss.db") as database:
        async with open_writer(Settings(home=home), database, PredictCaps()) as broker:
            print("ready", flush=True)
            sys.stdin.readline()
            for number in range(orders):
                at = TICK + number * MINUTE_MS
                if action == "settle":
                    placed = await broker.settle(desk, TICK - 1, TICK)
                else:
                    placed = await broker.submit(desk, mint_request(tick_at=at), at)
                desk = placed.world
                kinds += [placed.refusal] if placed.refusal else [receipt.kind for receipt in placed.receipts]
    return {"kinds": kinds, "cash": desk.world.accounts["agent"].cash}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(work(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))), flush=True)
