"""A record is sealed over its bytes: any change of a covered byte, of a column or of the order is noticed."""

import dataclasses

import pytest

from pitboss.core.errors import ReplayMismatch
from pitboss.core.snapshot import GENESIS, Record, check, seal
from pitboss.testing.journal import chained


def test_a_chain_checks_link_by_link() -> None:
    records = chained(4)
    prev = GENESIS
    for seq, record in enumerate(records):
        check(record, seq, prev)
        prev = record.digest


def test_the_digest_does_not_cover_what_may_differ_between_honest_runs() -> None:
    one = seal(0, "tick", 5, GENESIS, {"text": "a"}, {"wall_ms": 1})
    other = seal(0, "tick", 5, GENESIS, {"text": "a"}, {"wall_ms": 2})
    assert one.digest == other.digest
    assert seal(0, "tick", 5, GENESIS, {"text": "b"}, {}).digest != one.digest


@pytest.mark.parametrize("place", range(0, 120, 7))
def test_one_changed_byte_is_noticed(place: int) -> None:
    record = chained(1)[0]
    covered = bytearray(record.covered)
    covered[place % len(covered)] ^= 1
    with pytest.raises(ReplayMismatch):
        check(dataclasses.replace(record, covered=bytes(covered)), 0, GENESIS)


@pytest.mark.parametrize(
    "change", [{"seq": 1}, {"kind": "span"}, {"tick_at": 1}, {"prev_digest": "1" * 64}, {"digest": "0" * 64}]
)
def test_a_column_that_disagrees_with_the_record_is_noticed(change: dict[str, object]) -> None:
    record: Record = dataclasses.replace(chained(1)[0], **change)  # type: ignore[arg-type]
    with pytest.raises(ReplayMismatch):
        check(record, record.seq, record.prev_digest)


def test_a_record_in_the_wrong_place_is_noticed() -> None:
    first, second = chained(2)
    with pytest.raises(ReplayMismatch):
        check(second, 0, GENESIS)
    with pytest.raises(ReplayMismatch):
        check(first, 0, second.digest)
