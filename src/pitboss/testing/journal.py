"""`MemoryJournal`: the Journal port without a database, and small chains of records for tests of journals."""

from collections.abc import Iterator, Sequence
from typing import Any

from pitboss.core import codec
from pitboss.core.snapshot import GENESIS, Record, seal
from pitboss.core.state import State
from pitboss.store.journal import Tail, follow


class MemoryJournal:
    """A journal in memory, otherwise as strict as the stored one.

    Built from another journal it continues where that one is, as a second process on the same run would.
    """

    def __init__(self, earlier: "MemoryJournal | None" = None) -> None:
        self._records: list[Record] = [] if earlier is None else list(earlier.records())
        self._state: bytes | None = None if earlier is None else earlier._state
        self.progress = 0.0 if earlier is None else earlier.progress
        self.commits = 0

    async def commit(self, batch: Sequence[Record], state: State, progress: float) -> None:
        last = self._records[-1] if self._records else None
        follow(Tail() if last is None else Tail(last.seq + 1, last.digest), batch, state, progress)
        body = codec.dumps(state)
        self._records.extend(batch)
        self._state = body
        self.progress = max(self.progress, progress)
        self.commits += 1

    def records(self, start: int = 0) -> Iterator[Record]:
        return iter(self._records[start:])

    def latest_state(self) -> tuple[int, Any] | None:
        if self._state is None:
            return None
        plain = codec.loads(self._state)
        return plain["seq"], plain


def chained(count: int, after: Sequence[Record] = ()) -> list[Record]:
    """`count` small records that continue a chain, or begin one."""
    last = after[-1] if after else None
    seq, prev = (0, GENESIS) if last is None else (last.seq + 1, last.digest)
    records: list[Record] = []
    for number in range(seq, seq + count):
        at = number * 300_000
        covered = {"text": f"held at {number}", "receipts": [], "equity": [[at, 300_000, "10000", 1]]}
        records.append(seal(number, "tick", at, prev, covered, {"prompt": f"prompt {number}", "wall_ms": 1.5}))
        prev = records[-1].digest
    return records


def state_after(records: Sequence[Record], world: Any = None) -> State:
    """The state at the end of a chain."""
    if not records:
        return State(world=world)
    last = records[-1]
    return State(world=world, seq=last.seq + 1, prev_digest=last.digest, tick_at=last.tick_at)
