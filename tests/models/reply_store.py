"""A reply store in memory, for tests of the cache and of shared calls."""

import asyncio
from dataclasses import dataclass
from decimal import Decimal

from pitboss.core.money import ZERO
from pitboss.core.ports import ModelReply


@dataclass
class StoredReply:
    run_id: str
    cost_usd: Decimal | None
    reply: ModelReply


class MemoryReplyStore:
    """A reply store in memory; the first reply of a key stays."""

    def __init__(self) -> None:
        self.rows: dict[str, StoredReply] = {}

    def get(self, key: str) -> StoredReply | None:
        return self.rows.get(key)

    async def put(
        self, key: str, model: str, run_id: str, cost_usd: Decimal | None, reply: ModelReply, more: bool = False
    ) -> None:
        await asyncio.sleep(0)
        self.rows.setdefault(key, StoredReply(run_id, cost_usd, reply))

    async def put_paid(self, key: str, model: str, run_id: str, cost_usd: Decimal | None, reply: ModelReply) -> None:
        await self.put(f"{key}:{len(self.rows)}", model, run_id, cost_usd, reply)

    def paid_usd(self, run_id: str) -> Decimal:
        return sum((row.cost_usd or ZERO for row in self.rows.values() if row.run_id == run_id), ZERO)
