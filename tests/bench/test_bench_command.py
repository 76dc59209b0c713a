"""`pitboss bench`: one document, and an exit code that depends on timings only with `--gate`."""

import json
from collections.abc import Callable

import pytest

from pitboss_dev.bench.command import bench
from pitboss_dev.bench.row import BenchRow, RatioGate, skipped
from pitboss_dev.bench.suite import BenchOptions

GATE = RatioGate("at least", 1.5)
SLOW = BenchRow("slow", 1.0, "bars/s", "peer", 1.0, GATE)
FAST = BenchRow("fast", 3.0, "bars/s", "peer", 1.0, GATE)
ABSENT = skipped("absent", "bars/s", "not here", "peer", GATE)


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[BenchOptions]]:
    def give(*rows: BenchRow) -> list[BenchOptions]:
        received: list[BenchOptions] = []

        def run(options: BenchOptions, progress: Callable[[str], None]) -> list[BenchRow]:
            received.append(options)
            progress("measuring")
            return list(rows)

        monkeypatch.setattr("pitboss_dev.bench.suite.run", run)
        return received

    return give


@pytest.mark.parametrize(
    ("rows", "gate", "code"),
    [((SLOW, FAST), False, 0), ((SLOW, FAST), True, 1), ((FAST, ABSENT), True, 0)],
)
def test_only_a_failed_gate_with_gate_ends_in_1(
    measuring: Callable[..., list[BenchOptions]], rows: tuple[BenchRow, ...], gate: bool, code: int
) -> None:
    measuring(*rows)
    assert bench(gate=gate) == code


def test_json_is_one_list_of_rows_and_nothing_else(
    measuring: Callable[..., list[BenchOptions]], capsys: pytest.CaptureFixture[str]
) -> None:
    measuring(SLOW, ABSENT)
    bench(json=True)
    out, _ = capsys.readouterr()
    assert json.loads(out) == [SLOW.plain(), ABSENT.plain()]


def test_the_table_names_every_row(
    measuring: Callable[..., list[BenchOptions]], capsys: pytest.CaptureFixture[str]
) -> None:
    measuring(SLOW, ABSENT)
    bench()
    out, _ = capsys.readouterr()
    assert "slow" in out
    assert "absent" in out


def test_no_peers_measures_no_peer(measuring: Callable[..., list[BenchOptions]]) -> None:
    received = measuring(FAST)
    bench(no_peers=True)
    bench()
    assert [options.peers for options in received] == [(), ("backtesting",)]
