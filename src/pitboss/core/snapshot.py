"""One tick (or one run of no-op ticks) as it is kept for ever, chained to the one before by digest.

A `Record` has two halves. `covered` is the canonical JSON that the digest is taken over and that any two honest runs
share byte for byte; `extra` holds what may differ between them: prompt texts, timings, provider ids, cost.
"""

import hashlib
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
    """A sealed snapshot, ready to be stored."""

    seq: int
    kind: RecordKind
    tick_at: Instant
    prev_digest: str
    digest: str
    covered: bytes
    extra: bytes

    def body(self) -> dict[str, Any]:
        """Both halves as plain values, `extra` under its own key."""
        return {**codec.loads(self.covered), "extra": codec.loads(self.extra), "digest": self.digest}


def seal(
    seq: int,
    kind: RecordKind,
    tick_at: Instant,
    prev_digest: str,
    covered: Mapping[str, Any],
    extra: Mapping[str, Any] | bytes,
) -> Record:
    """Close a snapshot: add its place in the chain and take the digest. `extra` may be canonical bytes already."""
    data = codec.dumps({**covered, "seq": seq, "kind": kind, "tick_at": tick_at, "prev_digest": prev_digest})
    beside = extra if isinstance(extra, bytes) else codec.dumps(extra)
    return Record(seq, kind, tick_at, prev_digest, hashlib.sha256(data).hexdigest(), data, beside)


FREE = codec.dumps({"cost_usd": "0"})
"""What stands beside a record of which nothing was asked and nothing paid for."""


def check(record: Record, expected_seq: int, expected_prev: str) -> None:
    """Raise `ReplayMismatch` unless the record is the next link and hashes to what it says."""
    if hashlib.sha256(record.covered).hexdigest() != record.digest:
        raise ReplayMismatch(f"record {record.seq} does not hash to its digest")
    covered = codec.loads(record.covered)
    claimed = (covered["seq"], covered["kind"], covered["tick_at"], covered["prev_digest"])
    if claimed != (record.seq, record.kind, record.tick_at, record.prev_digest):
        raise ReplayMismatch(f"record {record.seq} does not hold what its columns say")
    if record.seq != expected_seq or record.prev_digest != expected_prev:
        raise ReplayMismatch(f"record {record.seq} is not the next link after {expected_seq - 1}")


def prompt_sha256(prompt: tuple[str, str]) -> str:
    """The name of a prompt: system and user text, kept apart by a zero byte."""
    name = _system_sha256(prompt[0]).copy()
    name.update(prompt[1].encode())
    return name.hexdigest()


@lru_cache(maxsize=16)
def _system_sha256(system: str) -> "hashlib._Hash":  # pyright: ignore[reportPrivateUsage]
    """The system text is the same at every tick: it is hashed once."""
    return hashlib.sha256(f"{system}\n\x00\n".encode())
