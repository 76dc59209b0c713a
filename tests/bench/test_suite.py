"""A tiny run of the measurements, the peers' environments, and the names that are refused."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from example_counts import cases
from pitboss.core.errors import UserError
from pitboss.core.ports import ModelRequest
from pitboss_dev.bench.backtests import trading_model
from pitboss_dev.bench.market import MarketShape, random_walk
from pitboss_dev.bench.measure import TINY, Bench, Measure
from pitboss_dev.bench.measures import policy_year
from pitboss_dev.bench.peers import environment
from pitboss_dev.bench.peers.environment import UnavailablePeer, install
from pitboss_dev.bench.peers.process import Peer, PeerFailed, save_bars
from pitboss_dev.bench.row import BenchRow
from pitboss_dev.bench.suite import BenchOptions, all_measures, run

KEYS = {"name", "value", "unit", "reference", "reference_value", "ratio", "gate", "note"}
QUICK = (
    "policy_year",
    "model_tick",
    "memory_year",
    "hydration",
    "history",
    "parts",
    "report_page",
    "run_page",
    "importing",
)
QUICKEST = ("policy_year", "hydration", "parts")


@pytest.fixture(scope="module", params=cases((QUICKEST, QUICK), (QUICKEST,)), ids=["quickest", "quick"])
def rows(request: pytest.FixtureRequest) -> list[BenchRow]:
    return run(BenchOptions(only=request.param, scale=TINY, repeats=1, peers=()))


def test_every_file_in_measures_is_a_measurement_in_its_order() -> None:
    assert list(all_measures()) == [
        "policy_year",
        "model_tick",
        "hydration",
        "warm_rerun",
        "speculation",
        "predict_week",
        "memory_year",
        "memory",
        "history",
        "model_calls",
        "parts",
        "report_page",
        "run_page",
        "importing",
        "jobs",
        "study",
        "live_deployments",
        "halt_latency",
        "community_server",
        "web_server",
        "program",
    ]
    assert all(isinstance(measure, Measure) and measure.summary for measure in all_measures().values())


def test_a_tiny_run_gives_rows_with_the_documented_keys_and_positive_values(rows: list[BenchRow]) -> None:
    for row in rows:
        plain = json.loads(json.dumps(row.plain()))
        assert set(plain) == KEYS
        assert plain["value"] > 0
        if plain["reference_value"] is not None:
            assert plain["ratio"] == pytest.approx(plain["value"] / plain["reference_value"])


def test_no_two_rows_have_the_same_name(rows: list[BenchRow]) -> None:
    names = [row.name for row in rows]
    assert len(names) == len(set(names))


PROMISED = {
    "sma_cross year, whole run": ("at least", 1.5),
    "report page of a year": ("at most", 1.0),
    "run page of 100,000 ticks opens": ("at most", 1.0),
    "model tick, commit per 50": ("at most", 8.0),
    "model tick, commit each": ("at most", 13.0),
    "model tick with news, events and memory": ("at most", 3.0),
    "model tick with tools and a server": ("at most", 1.1),
    "policy tick after 2×4 days": ("at most", 1.1),
    "model tick after 2×4 days": ("at most", 1.1),
    "guard verdict, 99th percentile": ("at most", 1.0),
    "guard verdict, worst input": ("at most", 1.0),
    "import of a year of 5m bars": ("at most", 5.0),
    "import of a year in daily files": ("at most", 5.0),
    "import of a calendar": ("at most", 5.0),
    "import of the same year again": ("at most", 5.0),
}


def test_the_promised_gates_are_there(rows: list[BenchRow]) -> None:
    promised = {name: gate for name, gate in PROMISED.items() if name in {row.name for row in rows}}
    assert promised
    assert {row.name: (row.gate.sense, row.gate.limit) for row in rows if row.gate} == promised


@pytest.mark.parametrize("rows", [pytest.param(QUICK, marks=pytest.mark.proof)], indirect=True)
def test_every_promised_gate_is_measured(rows: list[BenchRow]) -> None:
    assert {row.name for row in rows if row.gate} == set(PROMISED)


def test_without_peers_the_peer_row_says_so_and_its_gate_is_not_judged(rows: list[BenchRow]) -> None:
    (row,) = [row for row in rows if row.name == policy_year.WHOLE]
    assert row.holds is None
    assert "no peer" in row.note


def test_memory_is_measured_in_a_process_of_its_own() -> None:
    policy, standin = run(BenchOptions(only=("memory",), scale=TINY, repeats=1, peers=()))
    assert 10 < (policy.value or 0) < 400
    assert 10 < (standin.value or 0) < 400
    assert policy.note.startswith("1,152 ticks")
    assert standin.note.startswith("10 ticks")


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (BenchOptions(only=("policy_yaer",)), "did you mean policy_year?"),
        (BenchOptions(peers=("backtestin",)), "did you mean backtesting?"),
        (BenchOptions(repeats=0), ""),
    ],
)
def test_unknown_names_and_no_repeats_are_refused(options: BenchOptions, hint: str) -> None:
    with pytest.raises(UserError) as refused:
        run(options)
    assert refused.value.hint == hint


@pytest.mark.chaos
def test_a_peer_that_does_not_install_is_unavailable_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(environment.REQUIREMENTS, "backtesting", str(tmp_path / "no-such-package.whl"))
    messages: list[str] = []
    peer = install("backtesting", tmp_path / "peers", messages.append)
    assert isinstance(peer, UnavailablePeer)
    assert peer.reason.startswith("backtesting does not install here: ")
    assert len(messages) == 1


def test_an_environment_that_is_complete_is_used_again(tmp_path: Path) -> None:
    home = tmp_path / "backtesting"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "python").symlink_to(sys.executable)
    (home / "installed").write_text("complete\n")
    assert install("backtesting", tmp_path, lambda text: pytest.fail(text)) == home / "bin" / "python"


def test_a_peer_that_cannot_start_is_an_error_with_its_reason(tmp_path: Path) -> None:
    path = save_bars(random_walk("SOL", MarketShape(1)), tmp_path / "bars.npz")
    with pytest.raises(PeerFailed, match="backtesting stopped: ModuleNotFoundError"):
        Peer("backtesting", Path(sys.executable), path, 1_000, 25, 4.5)


def test_the_scripted_model_opens_and_closes_once_in_forty_requests() -> None:
    model = trading_model()
    request = ModelRequest("", (), ())

    def action() -> str:
        reply = model.complete(request)
        try:
            reply.send(None)
        except StopIteration as done:
            return json.loads(done.value.calls[0].arguments)["action"]
        raise AssertionError("it waited")

    actions = [action() for _ in range(80)]
    assert actions.count("open_long") == actions.count("close") == 2
    assert actions.index("open_long") < actions.index("close")
    assert model.requests == 80
    assert model.inner.requests == []


def test_measurements_run_with_the_options_in_a_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benches: list[Bench] = []

    def measure(bench: Bench) -> Iterable[BenchRow]:
        benches.append(bench)
        return [BenchRow("row", 1.0, "×")]

    monkeypatch.setattr(
        "pitboss_dev.bench.suite.all_measures", lambda: {"short": Measure("short", "a summary", measure)}
    )
    messages: list[str] = []
    rows = run(BenchOptions(scale=TINY, repeats=3, peers=(), peers_folder=tmp_path), messages.append)
    assert [row.name for row in rows] == ["row"]
    assert messages == ["short: a summary"]
    assert (benches[0].scale, benches[0].repeats, benches[0].peers_folder) == (TINY, 3, tmp_path)
    assert not benches[0].folder.path.exists()


def test_help_names_every_measurement() -> None:
    from pitboss_dev.bench.command import bench

    names = " ".join((bench.__doc__ or "").split()).split("Measurements: ")[1].split(". ")[0].split(", ")
    assert sorted(names) == sorted(all_measures())
