"""`pitboss runs` and `pitboss report`: looking at, checking and taking out what was stored."""

import json
import sqlite3
from collections.abc import Callable
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from market_files import FROM, TO, rows, write_bars
from run_command import pitboss, pitboss_ok, pitboss_refused

from pitboss.bootstrap.machine import SystemClock
from pitboss.bootstrap.run_lock import executing
from pitboss.core.errors import TransientError
from pitboss.core.snapshot import GENESIS
from pitboss.venues.perp.standin.analyst import Analyst

RANGE = ("--from", FROM, "--to", TO)
FILL = {"at", "symbol", "side", "size", "price", "fee_usd", "slippage_usd", "penalty_usd", "liquidity", "reason"}


@pytest.fixture
def run(finished_run: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """A finished run of a policy."""
    return finished_run("policy/sma_cross")


def export(home: Path, run: dict[str, Any], what: str) -> list[Any]:
    return pitboss_ok("runs", "export", run["run_id"], "--what", what, "--home", home).lines


def test_show_is_the_document_with_the_life_of_the_run_next_to_it(home: Path, run: dict[str, Any]) -> None:
    shown = pitboss_ok("runs", "show", run["run_id"][:6], "--json", "--home", home).json
    assert {key: shown[key] for key in run} == run
    assert set(shown) - set(run) == {"progress_pct", "error_text", "created_at", "started_at", "finished_at"}
    assert (shown["progress_pct"], shown["error_text"]) == (100, None)
    assert shown["finished_at"].endswith("Z")
    assert run["digest"] in pitboss_ok("runs", "show", run["run_id"], "--home", home).out


def test_the_list_is_short_documents_newest_first(home: Path, skill: Path, run: dict[str, Any]) -> None:
    second = pitboss_ok("backtest", skill, *RANGE, "--model", "policy/hold", "--json", "--home", home).json
    listed = pitboss_ok("runs", "list", "--json", "--home", home).json
    assert {one["run_id"] for one in listed} == {run["run_id"], second["run_id"]}
    assert "metrics" not in listed[0]
    assert len(pitboss_ok("runs", "list", "--limit", "1", "--json", "--home", home).json) == 1
    assert pitboss_ok("runs", "list", "--status", "error", "--json", "--home", home).json == []
    assert run["run_id"] in pitboss_ok("runs", "list", "--home", home).out


def test_fills_have_exactly_the_promised_keys_with_exact_amounts_in_strings(home: Path, run: dict[str, Any]) -> None:
    fills = export(home, run, "fills")
    assert fills
    for fill in fills:
        assert set(fill) == FILL
        assert fill["side"] in ("buy", "sell")
        assert fill["liquidity"] in ("maker", "taker")
        assert fill["at"].endswith("Z")
        for key in ("size", "price", "fee_usd", "slippage_usd", "penalty_usd"):
            assert isinstance(fill[key], str)
            assert "e" not in fill[key].lower()
        fee = Decimal(fill["size"]) * Decimal(fill["price"]) * Decimal("0.00045")
        assert abs(Decimal(fill["fee_usd"]) - fee) < Decimal("1e-30")


def test_equity_has_a_point_at_every_close_of_a_base_bar(home: Path, run: dict[str, Any]) -> None:
    points = export(home, run, "equity")
    assert len(points) == 3 * 288
    assert set(points[0]) == {"at", "equity_usd"}
    assert (points[0]["at"], points[-1]["at"]) == ("2025-06-02T00:05:00Z", "2025-06-05T00:00:00Z")
    assert points[0]["equity_usd"] == "10000"
    assert float(points[-1]["equity_usd"]) == run["metrics"]["final_equity_usd"]


def test_receipts_come_in_order_and_hold_the_fills(home: Path, run: dict[str, Any]) -> None:
    receipts = export(home, run, "receipts")
    assert [receipt["at"] for receipt in receipts] == sorted(receipt["at"] for receipt in receipts)
    assert sum(receipt["kind"] == "filled" for receipt in receipts) == len(export(home, run, "fills"))
    assert {receipt["kind"] for receipt in receipts} >= {"accepted", "filled", "funded"}


def test_snapshots_are_chained_and_carry_the_bytes_that_were_hashed(home: Path, run: dict[str, Any]) -> None:
    previous = GENESIS
    for seq, snapshot in enumerate(export(home, run, "snapshots")):
        assert (snapshot["seq"], snapshot["run_id"], snapshot["prev_digest"]) == (seq, run["run_id"], previous)
        assert sha256(snapshot["covered"].encode()).hexdigest() == snapshot["digest"]
        assert {"tick_at", "receipts", "equity", "flags", "proposal", "verdict"} <= set(snapshot)
        if snapshot["kind"] == "tick":
            assert snapshot["proposal"] == snapshot["proposals"][0]
            assert snapshot["verdict"]["outcome"] == "allowed"
        previous = snapshot["digest"]
    assert previous == run["digest"]


@pytest.mark.parametrize("model", ["policy/sma_cross", "policy/random", "standin/analyst"])
def test_exported_decisions_run_again_give_the_same_fills_and_equity(
    home: Path, skill: Path, tmp_path: Path, model: str
) -> None:
    words = ("backtest", skill, "--from", FROM, "--to", "2025-06-03T12:00:00Z", "--json", "--home", home)
    first = pitboss_ok(*words, "--model", model).json
    exported = pitboss_ok("runs", "export", first["run_id"], "--what", "decisions", "--home", home)
    assert exported.lines
    assert all(set(line) == {"tick_at", "proposal"} for line in exported.lines)
    file = tmp_path / "again.jsonl"
    file.write_text(exported.out)
    again = pitboss_ok(*words, "--decisions", file).json
    assert export(home, again, "fills") == export(home, first, "fills") != []
    assert export(home, again, "equity") == export(home, first, "equity")
    assert pitboss_ok("runs", "export", again["run_id"], "--what", "decisions", "--home", home).out == exported.out


def test_numbers_of_a_proposal_leave_with_exactly_the_digits_they_came_with(
    home: Path, skill: Path, tmp_path: Path
) -> None:
    file = tmp_path / "exact.jsonl"
    size = "499.123456789012345678901234567890123456789"
    line = '{"tick_at": "2025-06-02T01:00:00Z", "proposal": {"action": "open_long", "symbol": "BTC", "size_usd": %s, "reason": "r"}}'
    file.write_text(line % size + "\n")
    run = pitboss_ok("backtest", skill, *RANGE, "--decisions", file, "--json", "--home", home).json
    assert (
        f'"size_usd":{size}' in pitboss_ok("runs", "export", run["run_id"], "--what", "decisions", "--home", home).out
    )
    assert (
        f'"size_usd":{size}' in pitboss_ok("runs", "export", run["run_id"], "--what", "snapshots", "--home", home).out
    )


def test_verify_says_ok_with_the_digest(home: Path, run: dict[str, Any]) -> None:
    assert pitboss_ok("runs", "verify", run["run_id"], "--home", home).out.strip() == f"OK {run['digest']}"
    found = pitboss_ok("runs", "verify", run["run_id"], "--json", "--home", home).json
    assert (found["ok"], found["digest"], found["problems"]) == (True, run["digest"], [])


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE records SET covered = x'00' || substr(covered, 2) WHERE seq = 3",
        "UPDATE records SET tick_at = tick_at + 1 WHERE seq = 2",
        "UPDATE runs SET metrics = replace(metrics, '\"total_trades\":', '\"total_trades\":1')",
        "UPDATE runs SET model = 'policy/hold'",
        "DELETE FROM records WHERE seq = 4",
    ],
)
def test_verify_finds_what_was_changed_behind_its_back(home: Path, run: dict[str, Any], change: str) -> None:
    with sqlite3.connect(home / "pitboss.db") as connection:
        assert connection.execute(change).rowcount == 1
    connection.close()
    answer = pitboss("runs", "verify", run["run_id"], "--json", "--home", home)
    assert answer.code == 1
    assert answer.json["ok"] is False
    assert answer.json["problems"]
    assert pitboss("runs", "verify", run["run_id"], "--home", home).out.startswith("DIFFERENT: ")


def test_verify_calls_a_damaged_file_a_difference_not_a_mistake_of_the_person(home: Path, run: dict[str, Any]) -> None:
    file = home / "pitboss.db"
    data = bytearray(file.read_bytes())
    data[100:2000] = bytes(1900)
    file.write_bytes(data)
    answer = pitboss("runs", "verify", run["run_id"], "--json", "--home", home)
    assert answer.code == 1
    assert answer.json["ok"] is False


def test_a_run_that_does_not_exist_is_a_mistake_with_the_latest_runs_as_hint(home: Path, run: dict[str, Any]) -> None:
    for command in (["show"], ["verify"], ["cancel"], ["resume"], ["delete"], ["export", "--what", "fills"]):
        said = pitboss_refused("runs", command[0], "nope", *command[1:], "--home", home)
        assert "nope" in said
        assert run["run_id"] in said
    pitboss_refused("report", "nope", "--home", home)


def test_two_runs_are_compared_by_their_first_differing_record_and_their_metrics(
    home: Path, skill: Path, run: dict[str, Any]
) -> None:
    same = pitboss_ok("backtest", skill, *RANGE, "--json", "--home", home).json
    other = pitboss_ok("backtest", skill, *RANGE, "--fees-taker-bps", "9", "--json", "--home", home).json
    assert pitboss_ok("runs", "diff", run["run_id"], same["run_id"], "--json", "--home", home).json["same"] is True
    found = pitboss_ok("runs", "diff", run["run_id"], other["run_id"], "--json", "--home", home).json
    assert found["same"] is False
    assert found["first_difference"]["fields"]
    assert set(found["metrics"]["total_fees_usd"]) == {"first", "second"}
    assert "first difference" in pitboss_ok("runs", "diff", run["run_id"], other["run_id"], "--home", home).out


def test_a_comparison_fits_into_100_columns_and_says_warnings_in_sentences(
    home: Path, skill: Path, run: dict[str, Any]
) -> None:
    quiet = pitboss_ok("backtest", skill, *RANGE, "--model", "policy/hold", "--json", "--home", home).json
    assert quiet["metrics"]["warnings"] != run["metrics"]["warnings"]
    shown = pitboss_ok("runs", "diff", run["run_id"], quiet["run_id"], "--home", home).out
    sentences = [line for line in shown.splitlines() if line.startswith(("first difference", "warnings only in"))]
    table = [line.rstrip() for line in shown.splitlines() if line not in sentences]
    assert max(map(len, table)) <= 100
    assert any(line.startswith("funnel.fills ") for line in table)
    assert f"warnings only in {quiet['run_id']}: No trades" in shown
    assert str(run["metrics"]["final_equity_usd"]) in shown
    assert not any(sign in "".join(table) for sign in "{}[]")


def test_runs_compare_writes_a_page_and_prints_tables_of_80_columns(
    home: Path, skill: Path, run: dict[str, Any]
) -> None:
    quiet = pitboss_ok("backtest", skill, *RANGE, "--model", "policy/hold", "--json", "--home", home).json
    words = ("runs", "compare", run["run_id"], quiet["run_id"], run["run_id"])
    assert "each of them once" in pitboss_refused(*words, "--home", home)
    shown = pitboss_ok(*words[:4], "--home", home).out
    sentences = ("Difference of final equity", "  at ", "page ")
    assert max(len(line) for line in shown.splitlines() if not line.startswith(sentences)) <= 80
    for text in ("inputs that differ", "policy/hold", "B − A", "B against A", "A: open ", "; B: held"):
        assert text in shown, text
    document = pitboss_ok(*words[:4], "--json", "--out", home / "two.html", "--home", home).json
    assert document["report"] == str(home / "two.html")
    assert f'href="reports/{run["run_id"]}.html"' in (home / "two.html").read_text("utf-8")
    (default,) = (home / "reports").glob("compare-*.html")
    assert str(default) in shown


def test_a_damaged_run_is_named_and_the_others_are_listed(home: Path, skill: Path, run: dict[str, Any]) -> None:
    second = pitboss_ok("backtest", skill, *RANGE, "--model", "policy/hold", "--json", "--home", home).json
    with sqlite3.connect(home / "pitboss.db") as connection:
        connection.execute("UPDATE runs SET params = x'7b' WHERE id = ?", (run["run_id"],))
    connection.close()
    listed = pitboss_ok("runs", "list", "--json", "--home", home)
    assert [one["run_id"] for one in listed.json] == [second["run_id"]]
    assert f"run {run['run_id']} is not listed" in listed.err
    assert f"pitboss runs verify {run['run_id']}" in listed.err
    shown = pitboss_ok("runs", "list", "--home", home)
    assert second["run_id"] in shown.out
    assert run["run_id"] not in shown.out


@pytest.fixture
def killed_run(home: Path, skill: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a run whose process ended before it could store how."""

    class Killed(BaseException):
        """Handled by no code."""

    async def killed(self: Analyst, request: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Analyst, "complete", killed)
        with pytest.raises(Killed):
            pitboss("backtest", skill, *RANGE, "--model", "standin/analyst", "--json", "--home", home)
    (listed,) = pitboss_ok("runs", "list", "--json", "--home", home).json
    return listed["run_id"]


@pytest.mark.parametrize("group", ["runs", "jobs"])
def test_a_run_that_was_killed_is_cancelled_at_once_and_can_be_resumed(home: Path, killed_run: str, group: str) -> None:
    cancelled = pitboss_ok(group, "cancel", killed_run, "--home", home)
    assert cancelled.out == f"run {killed_run} is cancelled\n"
    (listed,) = pitboss_ok("runs", "list", "--json", "--home", home).json
    assert listed["status"] == "cancelled"
    assert pitboss_ok("runs", "resume", killed_run, "--json", "--home", home).json["status"] == "complete"


def test_a_run_that_another_process_executes_is_cancelled_by_that_process(home: Path, killed_run: str) -> None:
    with executing(home, killed_run):
        answer = pitboss_ok("runs", "cancel", killed_run, "--home", home)
    assert answer.out == f"run {killed_run} is running and will stop at its next tick\n"


@pytest.mark.usefixtures("killed_run")
def test_a_run_that_was_killed_is_shown_as_silent(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (fresh,) = pitboss_ok("runs", "list", "--json", "--home", home).json
    assert (fresh["status"], fresh["silent_s"] < 600) == ("running", True)
    assert "silent" not in pitboss_ok("runs", "list", "--home", home).out
    later = SystemClock().now() + 5 * 3_600_000
    monkeypatch.setattr(SystemClock, "now", lambda self: later)
    assert "running 0 %, silent for 5 h" in pitboss_ok("runs", "list", "--home", home).out


def test_a_terminal_is_shown_nothing_of_an_error_that_it_would_obey(
    home: Path, skill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreachable(self: Analyst, request: object) -> None:
        raise TransientError("nobody \x1b[2J answers\nreally")

    monkeypatch.setattr(Analyst, "complete", unreachable)
    stopped = pitboss("backtest", skill, *RANGE, "--model", "standin/analyst", "--json", "--home", home).json
    shown = pitboss_ok("runs", "show", stopped["run_id"], "--home", home).out
    assert "\x1b" not in shown
    assert "nobody  [2J answers really" in shown


@pytest.mark.parametrize("limit", ["0", "-1", "99999999999999999999"])
def test_a_limit_that_cannot_be_is_a_mistake(home: Path, limit: str) -> None:
    assert "--limit" in pitboss_refused("runs", "list", "--limit", limit, "--home", home)


def test_a_deleted_run_is_gone_with_its_report(home: Path, run: dict[str, Any]) -> None:
    pitboss_ok("runs", "delete", run["run_id"], "--yes", "--home", home)
    assert pitboss_ok("runs", "list", "--json", "--home", home).json == []
    assert not Path(run["report"]).exists()


def test_a_run_that_has_ended_cannot_be_cancelled_and_resuming_it_changes_nothing(
    home: Path, run: dict[str, Any]
) -> None:
    assert "already ended" in pitboss_refused("runs", "cancel", run["run_id"], "--home", home)
    resumed = pitboss_ok("runs", "resume", run["run_id"], "--json", "--home", home).json
    assert resumed["digest"] == run["digest"]


def test_numbers_of_the_skill_are_stored_as_numbers(home: Path, run: dict[str, Any]) -> None:
    with sqlite3.connect(home / "pitboss.db") as connection:
        (stored,) = connection.execute("SELECT params FROM runs").fetchone()
    connection.close()
    assert json.loads(stored)["skill"]["risk"]["max_orders_per_hour"] == 100


def test_resume_refuses_to_go_on_with_data_that_has_changed(
    home: Path, skill: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreachable(self: Analyst, request: object) -> None:
        raise TransientError("nobody answers")

    with monkeypatch.context() as patch:
        patch.setattr(Analyst, "complete", unreachable)
        stopped = pitboss("backtest", skill, *RANGE, "--model", "standin/analyst", "--json", "--home", home).json
    bars = rows("BTC")
    bars[700] = bars[700].rsplit(",", 1)[0] + ",99"
    pitboss_ok("data", "import", write_bars(tmp_path, "BTC", bars), "--replace", "--home", home)
    assert "has changed" in pitboss_refused("runs", "resume", stopped["run_id"], "--home", home)


def test_the_report_is_written_where_it_is_asked_for_and_opens_offline(
    home: Path, run: dict[str, Any], tmp_path: Path
) -> None:
    out = tmp_path / "page.html"
    assert pitboss_ok("report", run["run_id"], "--out", out, "--home", home).out.strip() == str(out)
    page = out.read_text()
    assert run["digest"] in page
    assert "little" in page
    assert "src=" not in page
    assert "Fees are 4.5 basis points" in page
    assert "Buy and hold" in page or "buy and hold" in page.lower()
    assert pitboss_ok("report", run["run_id"], "--json", "--home", home).json["report"] == run["report"]
    assert "--out" in pitboss_refused(
        "report", run["run_id"], "--out", tmp_path / "absent" / "page.html", "--home", home
    )


def test_a_report_without_its_data_leaves_prices_out_and_says_so(
    home: Path, run: dict[str, Any], tmp_path: Path
) -> None:
    (home / "lake").rename(tmp_path / "lake-elsewhere")
    pitboss_ok("report", run["run_id"], "--home", home)
    assert "is missing or has changed" in Path(run["report"]).read_text()
