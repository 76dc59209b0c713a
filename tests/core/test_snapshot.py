"""A record is sealed over its bytes: any change of a covered byte, of a column or of the order is noticed."""

import dataclasses
from decimal import Decimal

import pytest

from pitboss.core import codec
from pitboss.core.errors import ReplayMismatch
from pitboss.core.snapshot import GENESIS, ZERO_COST_EXTRA, Record, check, recorded_cost, seal
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


@pytest.mark.parametrize(
    "extra",
    [
        {"cost_usd": Decimal("0.0021"), "prompt": ["a", "b"], "steps": []},
        {"cost_usd": None, "prompt": ['"cost_usd":"7"', "}"]},
        {"cost_usd": "1\\", "usage": {}},
        {"cost_usd": 5, "usage": {"cost_usd": "9"}},
        {"calls": [{"cost_usd": "9"}], "cost_usd": "3"},
        ZERO_COST_EXTRA,
    ],
)
def test_the_cost_of_a_tick_is_what_is_recorded(extra: dict[str, object] | bytes) -> None:
    record = seal(0, "tick", 5, GENESIS, {}, extra)
    assert recorded_cost(record) == codec.loads(record.extra)["cost_usd"]


def test_a_record_in_the_wrong_place_is_noticed() -> None:
    first, second = chained(2)
    with pytest.raises(ReplayMismatch):
        check(second, 0, GENESIS)
    with pytest.raises(ReplayMismatch):
        check(first, 0, second.digest)
