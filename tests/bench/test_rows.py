"""Rows and gates: what is printed, and when a gate holds."""

import pytest

from pitboss_dev.bench import row_table
from pitboss_dev.bench.row import LIMIT, BenchRow, RatioGate, failed, skipped

DOCUMENTED = {"name", "value", "unit", "reference", "reference_value", "ratio"}


def test_a_row_prints_the_documented_keys_and_its_ratio() -> None:
    plain = BenchRow("fast thing", 300.0, "bars/s", "peer", 200.0).plain()
    assert set(plain) >= DOCUMENTED
    assert plain["ratio"] == 1.5
    assert plain["gate"] is None


def test_a_row_without_a_reference_has_no_ratio() -> None:
    plain = BenchRow("thing", 3.0, "µs").plain()
    assert (plain["reference"], plain["reference_value"], plain["ratio"]) == (None, None, None)


def test_a_reference_of_zero_gives_no_ratio_instead_of_an_error() -> None:
    assert BenchRow("thing", 3.0, "µs", "floor", 0.0, RatioGate("at most", 1.0)).holds is None


@pytest.mark.parametrize(
    ("gate", "value", "holds"),
    [
        (RatioGate("at least", 1.5), 1.5, True),
        (RatioGate("at least", 1.5), 1.49, False),
        (RatioGate("at most", 8.0), 8.0, True),
        (RatioGate("at most", 8.0), 8.01, False),
    ],
)
def test_a_gate_holds_up_to_and_including_its_limit(gate: RatioGate, value: float, holds: bool) -> None:
    row = BenchRow("thing", value, "×", LIMIT, 1.0, gate)
    assert row.holds is holds
    assert row.plain()["gate"] == {"sense": gate.sense, "ratio": gate.limit, "holds": holds}


def test_only_gates_that_were_measured_and_do_not_hold_have_failed() -> None:
    slow = BenchRow("slow", 1.0, "bars/s", "peer", 1.0, RatioGate("at least", 1.5))
    rows = [
        BenchRow("fast", 2.0, "bars/s", "peer", 1.0, RatioGate("at least", 1.5)),
        slow,
        BenchRow("free", 1.0, "µs"),
        skipped("absent", "bars/s", "it does not install here", "peer", RatioGate("at least", 1.5)),
    ]
    assert failed(rows) == [slow]


def test_a_skipped_row_says_why_and_keeps_its_gate_unjudged() -> None:
    plain = skipped("absent", "bars/s", "it does not install here", "peer", RatioGate("at least", 1.5)).plain()
    assert plain["value"] is None
    assert plain["gate"]["holds"] is None
    assert plain["note"] == "skipped: it does not install here"


def test_the_table_shows_the_ratio_and_whether_the_gate_holds() -> None:
    cells = row_table.cells(
        BenchRow("slow", 123_456.7, "bars/s", "peer", 246_913.4, RatioGate("at least", 1.5), "a note")
    )
    assert cells == ("slow", "123,457", "bars/s", "peer", "246,913", "0.50×", "≥ 1.5× FAILS", "a note")
    assert row_table.cells(skipped("absent", "s", "no")).count("–") == 1
