"""Records: one tick (or one sequence of no-op ticks) as stored, chained to the previous record by digest.

A `Record` has two parts. `covered` is the canonical JSON that the digest covers; two runs of the same inputs share it
byte for byte. `extra` holds what may differ between them: prompt texts, timings, provider ids, cost.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

from pitboss.core import codec
from pitboss.core.errors import ReplayMismatch
from pitboss.core.instant import Instant
from pitboss.core.noun import noun

GENESIS = "0" * 64
RecordKind = Literal["tick", "span", "close"]


@noun
class Record:
    """One snapshot with its position in the chain and its digest."""

    seq: int
    kind: RecordKind
    tick_at: Instant
    prev_digest: str
    digest: str
    covered: bytes
    extra: bytes

    def body(self) -> dict[str, Any]:
        """Both parts as plain values, `extra` under its own key."""
        return {**codec.loads(self.covered), "extra": codec.loads(self.extra), "digest": self.digest}


def seal(
    seq: int,
    kind: RecordKind,
    tick_at: Instant,
    prev_digest: str,
    covered: Mapping[str, Any],
    extra: Mapping[str, Any] | bytes,
) -> Record:
    """Make a record: add the position in the chain and compute the digest. `extra` may already be canonical bytes."""
    data = codec.dumps({**covered, "seq": seq, "kind": kind, "tick_at": tick_at, "prev_digest": prev_digest})
    extra_data = extra if isinstance(extra, bytes) else codec.dumps(extra)
    return Record(seq, kind, tick_at, prev_digest, hashlib.sha256(data).hexdigest(), data, extra_data)


_COST = re.compile(rb'\{"cost_usd":(null|"[^"\\]*")[,}]')


def recorded_cost(record: Record) -> str | None:
    """The cost of a tick as recorded. Keys are sorted, so it comes first, and the prompts that follow it are not read."""
    first = _COST.match(record.extra)
    return codec.loads(first[1]) if first else codec.loads(record.extra)["cost_usd"]


ZERO_COST_EXTRA = codec.dumps({"cost_usd": "0"})
"""The `extra` of a record without a model call."""


def check(record: Record, expected_seq: int, expected_prev: str) -> None:
    """Raise `ReplayMismatch` unless the record is the next in the chain and matches its digest."""
    if hashlib.sha256(record.covered).hexdigest() != record.digest:
        raise ReplayMismatch(f"record {record.seq} does not hash to its digest")
    covered = codec.loads(record.covered)
    claimed = (covered["seq"], covered["kind"], covered["tick_at"], covered["prev_digest"])
    if claimed != (record.seq, record.kind, record.tick_at, record.prev_digest):
        raise ReplayMismatch(f"record {record.seq} does not hold what its columns say")
    if record.seq != expected_seq or record.prev_digest != expected_prev:
        raise ReplayMismatch(f"record {record.seq} is not the next link after {expected_seq - 1}")


def prompt_sha256(prompt: tuple[str, str]) -> str:
    """The hash that identifies a prompt: of system and user text, separated by a zero byte."""
    sha256 = _system_sha256(prompt[0]).copy()
    sha256.update(prompt[1].encode())
    return sha256.hexdigest()


@lru_cache(maxsize=16)
def _system_sha256(system: str) -> "hashlib._Hash":  # pyright: ignore[reportPrivateUsage]
    """Cached, because the system text is the same at every tick."""
    return hashlib.sha256(f"{system}\n\x00\n".encode())
