"""`pitboss backtest`: its JSON document, its text output, and its errors."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from market_files import DAYS, FROM, SKILL, TO, rows, write_bars
from run_command import pitboss, pitboss_ok, pitboss_refused

from pitboss.core.errors import TransientError
from pitboss.venues.perp.standin.analyst import Analyst

KEYS = {
    "run_id", "status", "digest", "skill_digest", "data_digest", "model", "from", "to", "ticks", "metrics", "baselines",
    "cost_usd", "saved_usd", "wasted_usd", "waste_pct", "speculation", "wall_s", "report", "errors", "cutoff",
    "realism", "estimate", "spend", "quality", "endpoint", "forked_from", "decided_by",
}  # fmt: skip
METRICS = {
    "total_return_pct", "cagr", "sharpe", "sortino", "max_drawdown_pct", "max_drawdown_duration_days", "total_trades",
    "win_rate", "profit_factor", "avg_win_usd", "avg_loss_usd", "total_fees_usd", "total_funding_usd",
    "total_slippage_usd", "total_penalties_usd", "liquidations", "deficit_usd", "total_ai_cost_usd",
    "cost_per_decision_usd", "total_ticks", "total_proposed_actions", "total_accepted_actions", "rejections_by_rule",
    "noops_by_flag", "exposure_time_pct", "turnover", "total_return_ci", "sharpe_ci",
}  # fmt: skip
RANGE = ("--from", FROM, "--to", TO)


def backtest(home: Path, skill: Path, *words: object) -> dict[str, Any]:
    """Run it and give the document."""
    return pitboss_ok("backtest", skill, *RANGE, *words, "--json", "--home", home).json


def decided(tmp_path: Path, *lines: object) -> Path:
    """A file of decisions."""
    file = tmp_path / "decisions.jsonl"
    file.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return file


def at(tick: str, **proposal: object) -> dict[str, object]:
    """One line of a decisions file."""
    return {"tick_at": tick, "proposal": proposal}


def buys(tick: str, size: float = 500) -> dict[str, object]:
    return at(tick, action="open_long", symbol="BTC", size_usd=size, reason="up")


def test_the_document_has_exactly_the_promised_keys(home: Path, skill: Path) -> None:
    answer = pitboss_ok("backtest", skill, *RANGE, "--json", "--home", home)
    found = answer.json
    assert answer.err == ""
    assert set(found) == KEYS
    assert set(found["metrics"]) >= METRICS
    assert set(found["baselines"]) == {"buy_and_hold", "buy_and_hold_capped", "cash"}
    assert set(found["baselines"]["cash"]) >= METRICS
    assert (found["status"], found["model"], found["errors"]) == ("complete", "policy/sma_cross", [])
    assert (found["from"], found["to"], found["ticks"]) == ("2025-06-02T00:00:00Z", "2025-06-05T00:00:00Z", 288)
    assert found["cost_usd"] == 0
    assert len(found["digest"]) == len(found["skill_digest"]) == len(found["data_digest"]) == 64
    assert found["metrics"]["total_trades"] > 0
    assert Path(found["report"]).parent == home / "reports"
    assert "<html" in Path(found["report"]).read_text()


def test_the_same_thing_twice_gives_the_same_digest_and_a_setting_changes_it(
    home: Path, skill: Path, model_run: Callable[[str], tuple[Path, dict[str, Any]]]
) -> None:
    first, (_, second) = backtest(home, skill), model_run("policy/sma_cross")
    assert first["digest"] == second["digest"]
    assert first["run_id"] != second["run_id"]
    changed = backtest(home, skill, "--set", "risk.max_position_pct=10", "--set", "name=other")
    assert changed["digest"] != first["digest"]
    assert changed["skill_digest"] != first["skill_digest"]


@pytest.mark.parametrize(
    "words",
    [
        ("--equity", "2500.50"),
        ("--fees-taker-bps", "0"),
        ("--slippage-bps-per-million", "5000"),
        ("--decision-latency", "10m"),
        ("--max-volume-pct", "1"),
        ("--close-at-end",),
        ("--model", "policy/momentum"),
    ],
    ids=" ".join,
)
def test_every_term_of_the_simulation_can_be_set(
    home: Path, skill: Path, model_run: Callable[[str], tuple[Path, dict[str, Any]]], words: tuple[str, ...]
) -> None:
    _, plain = model_run("policy/sma_cross")
    assert backtest(home, skill, *words)["digest"] != plain["digest"]


def test_options_about_money_are_taken_although_programs_cost_nothing(home: Path, skill: Path) -> None:
    words = ("--max-cost-usd", "1", "--price-in", "0.25", "--price-out", "1.25", "--yes", "--news-latency", "30s")
    assert backtest(home, skill, *words)["cost_usd"] == 0


def test_people_get_a_table_labels_a_digest_and_what_to_type_next(home: Path, skill: Path) -> None:
    answer = pitboss_ok("backtest", skill, *RANGE, "--home", home)
    run = pitboss_ok("runs", "list", "--json", "--home", home).json[0]
    for words in (
        "Return",
        "buy and hold",
        "same, capped",
        "(<20 days)",
        "NOT A LANGUAGE MODEL",
        run["digest"],
        run["report"],
        "runs verify",
        "runs export",
    ):
        assert words in answer.out
    assert "SYNTHETIC" not in answer.out
    assert "Traceback" not in answer.err


def test_one_refused_order_is_explained_with_its_rule_and_how_far_beyond_it_was(
    home: Path, skill: Path, tmp_path: Path
) -> None:
    file = decided(tmp_path, buys("2025-06-02T01:00:00Z", 9_000))
    said = pitboss_ok("backtest", skill, *RANGE, "--decisions", file, "--home", home).out
    assert "R3_POSITION_CAP" in said
    assert "open long BTC for $9,000.00" in said
    assert "limit $2,500.00" in said
    assert "beyond" in said


def test_a_run_that_traded_nothing_says_so_and_shows_its_funnel(home: Path, skill: Path, tmp_path: Path) -> None:
    file = decided(tmp_path, buys("2025-06-02T01:00:00Z", 9_000))
    words = ("backtest", skill, *RANGE, "--decisions", file, "--home", home)
    said = pitboss_ok(*words).out
    assert "Nothing was traded" in said
    assert "R3_POSITION_CAP × 1" in said
    metrics = pitboss_ok(*words, "--json").json["metrics"]
    assert metrics["total_trades"] == 0
    assert metrics["funnel"]["proposals"] == 1
    assert metrics["funnel"]["fills"] == 0
    assert any("No trades" in warning for warning in metrics["warnings"])


def test_a_bad_value_in_a_proposal_is_refused_by_the_first_rule_at_its_tick(
    home: Path, skill: Path, tmp_path: Path
) -> None:
    line = at("2025-06-02T01:00:00Z", action="open_long", symbol="BTC", size_usd="500", reason="up")
    metrics = backtest(home, skill, "--decisions", decided(tmp_path, line))["metrics"]
    assert metrics["rejections_by_rule"] == {"R1_SHAPE": 1}


def test_decisions_that_can_be_read_only_once_are_all_taken(home: Path, skill: Path) -> None:
    reading, writing = os.pipe()  # as the shell hands over `--decisions <(a command)`
    with os.fdopen(writing, "w") as pipe:
        pipe.write(json.dumps(buys("2025-06-02T01:00:00Z")) + "\n")
    found = backtest(home, skill, "--decisions", f"/dev/fd/{reading}")
    os.close(reading)
    assert found["metrics"]["total_accepted_actions"] == 1


def test_a_decisions_run_works_for_a_model_that_cannot_be_asked_here(home: Path, skill: Path, tmp_path: Path) -> None:
    file = decided(
        tmp_path,
        buys("2025-06-02T01:00:00Z"),
        at("2025-06-03T01:00:00Z", action="close", symbol="BTC", reason="enough"),
    )
    found = backtest(home, skill, "--decisions", file, "--set", "model=anthropic/some-model")
    assert found["metrics"]["total_trades"] == 1
    assert found["model"] == "decisions"


def test_repeats_give_every_run_and_a_summary(home: Path, skill: Path) -> None:
    found = backtest(home, skill, "--model", "policy/random", "--repeats", "3", "--seed", "5")
    assert set(found) == {*KEYS, "repeats", "summary"}
    assert [set(one) for one in found["repeats"]] == [{"run_id", "digest", "metrics"}] * 3
    assert len({one["digest"] for one in found["repeats"]}) == 3
    assert found["repeats"][0]["digest"] == found["digest"]
    spread = found["summary"]["total_return_pct"]
    values = [one["metrics"]["total_return_pct"] for one in found["repeats"]]
    assert spread["mean"] == pytest.approx(sum(values) / 3)
    assert spread["lo"] < spread["mean"] < spread["hi"]
    assert "rejections_by_rule" not in found["summary"]
    alone = backtest(home, skill, "--model", "policy/random", "--seed", "6")
    assert alone["digest"] == found["repeats"][1]["digest"]


def test_repeats_of_something_without_chance_say_that_they_are_identical(home: Path, skill: Path) -> None:
    said = pitboss_ok("backtest", skill, *RANGE, "--repeats", "2", "--home", home).out
    assert "all runs are identical" in said


def test_without_prompts_only_their_digests_are_kept(home: Path, skill: Path) -> None:
    words = ("--model", "standin/analyst", "--to", "2025-06-02T03:00:00Z")
    runs = [
        pitboss_ok("backtest", skill, "--from", FROM, *words, *more, "--json", "--home", home).json
        for more in ((), ("--no-prompts",))
    ]
    assert runs[0]["digest"] == runs[1]["digest"]
    kept, dropped = (
        pitboss_ok("runs", "export", run["run_id"], "--what", "snapshots", "--home", home).lines for run in runs
    )
    assert kept[0]["prompt_sha256"] == dropped[0]["prompt_sha256"]
    assert kept[0]["extra"]["prompt"][1].startswith("## Time")
    assert dropped[0]["extra"]["prompt"] is None


def test_prompts_can_be_had_in_runs_that_need_none(home: Path, skill: Path) -> None:
    words = ("--from", FROM, "--to", "2025-06-02T03:00:00Z", "--json", "--home", home)
    run = pitboss_ok("backtest", skill, *words, "--prompts").json
    snapshots = pitboss_ok("runs", "export", run["run_id"], "--what", "snapshots", "--home", home).lines
    assert snapshots[0]["extra"]["prompt"][1].startswith("## Time")


class TestMistakes:
    """Exit 2, one clear line, and nothing left behind."""

    def refuse(self, home: Path, *words: object) -> str:
        said = pitboss_refused("backtest", *words, "--home", home)
        assert pitboss_ok("runs", "list", "--json", "--home", home).json == []
        assert not (home / "reports").exists()
        return said

    @pytest.mark.parametrize(
        ("old", "new", "named"),
        [
            ("max_steps: 3", "max_stpes: 3", "max_stpes"),
            ("  avoid: Ranges.\n", "", "strategy.avoid"),
            ("[BTC, ETH]", "[BTC, ETHH]", "ETHH"),
            ("[BTC, ETH]", "[BTC, SOL]", "SOL"),
            ("get_portfolio", "get_portfolios", "get_portfolios"),
        ],
        ids=["unknown field", "missing for the mode", "unknown symbol", "symbol without bars", "unknown tool"],
    )
    def test_a_skill_that_is_wrong(self, home: Path, skill: Path, old: str, new: str, named: str) -> None:
        skill.write_text(SKILL.replace(old, new))
        assert named in self.refuse(home, skill, *RANGE)

    @pytest.mark.parametrize(
        ("words", "named"),
        [
            (("--from", "2025-06-05", "--to", "2025-06-02"), "--to"),
            (("--from", FROM, "--to", FROM), "--to"),
            (("--from", "2024-01-01", "--to", "2024-02-01"), "2025-06-01T00:00:00Z"),
            (("--from", FROM, "--to", "2025-07-01"), "imported"),
            (("--from", "2025-06-02T00:01:00Z", "--to", "2025-06-02T00:02:00Z"), "tick"),
            (("--from", "yesterday", "--to", TO), "--from"),
            ((*RANGE, "--seed", "1.5"), "--seed: '1.5' is not a whole number"),
            ((*RANGE, "--repeats", "2.0"), "--repeats"),
            ((*RANGE, "--model", ""), "--model"),
            ((*RANGE, "--equity", "lots"), "--equity"),
            ((*RANGE, "--equity", "0"), "equity"),
            ((*RANGE, "--equity", "-5"), "--equity"),
            ((*RANGE, "--equity", "NaN"), "--equity"),
            ((*RANGE, "--equity", "1e400"), "--equity"),
            ((*RANGE, "--fees-taker-bps", "1,5"), "--fees-taker-bps"),
            ((*RANGE, "--news-latency", "soon"), "--news-latency"),
            ((*RANGE, "--decision-latency", "5"), "--decision-latency"),
            ((*RANGE, "--seed", "x"), "--seed"),
            ((*RANGE, "--seed", "-1"), "--seed"),
            ((*RANGE, "--seed", "9" * 23), "--seed"),
            ((*RANGE, "--repeats", "0"), "--repeats"),
            ((*RANGE, "--max-gap", "-1"), "--max-gap"),
            ((*RANGE, "--max-gap", "9" * 23), "--max-gap"),
            ((*RANGE, "--news-latency", "99999999999999d"), "--news-latency"),
            ((*RANGE, "--decision-latency", "9" * 400 + "d"), "--decision-latency"),
            ((*RANGE, "--price-in", "free"), "--price-in"),
            ((*RANGE, "--model", "policy/sma_crss"), "policy/sma_cross"),
            ((*RANGE, "--model", "anthropic/some-model"), "needs a key"),
            ((*RANGE, "--set", "risk.max_leverge=5"), "risk.max_leverage"),
            ((*RANGE, "--set", "risk.max_leverage=many"), "little.yaml: risk.max_leverage: must be a number"),
            ((*RANGE, "--set", "risk.max_leverage"), "--set"),
            ((*RANGE, "--data-venue", "nowhere"), "nowhere"),
            ((*RANGE, "--decisions", "absent.jsonl"), "absent.jsonl"),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
    )
    def test_an_option_that_is_wrong(self, home: Path, skill: Path, words: tuple[str, ...], named: str) -> None:
        assert named in self.refuse(home, skill, *words)

    def test_a_skill_file_that_is_not_there(self, home: Path, tmp_path: Path) -> None:
        assert "absent.yaml" in self.refuse(home, tmp_path / "absent.yaml", *RANGE)

    @pytest.mark.parametrize(
        "line",
        [
            '{"tick_at": "2025-06-02T01:00:00Z", "proposal": {',
            {"tick_at": "2025-06-02T01:00:00Z", "proposl": None},
            {"tick_at": "2025-06-02T01:00:00Z"},
            {"tick_at": "2025-06-02T01:07:00Z", "proposal": None},
            {"tick_at": "2025-06-09T01:00:00Z", "proposal": None},
            {"tick_at": "2025-06-02T01:00:00Z", "proposal": {"action": "close", "symbl": "BTC", "reason": "x"}},
            '{"tick_at": "2025-06-02T01:00:00Z", "proposal": {"size_usd": NaN}}',
        ],
        ids=[
            "bad JSON",
            "unknown key",
            "missing key",
            "not a tick",
            "after the end",
            "typo in a proposal",
            "not a number",
        ],
    )
    def test_a_decisions_file_with_a_mistake_names_the_file_and_the_line(
        self, home: Path, skill: Path, tmp_path: Path, line: object
    ) -> None:
        file = decided(tmp_path, buys("2025-06-02T00:15:00Z"), "", line)
        said = self.refuse(home, skill, *RANGE, "--decisions", file)
        assert "decisions.jsonl" in said
        assert "line 3" in said

    def test_a_hole_in_the_bars_names_symbol_and_span_unless_it_is_tolerated(self, tmp_path: Path, skill: Path) -> None:
        home, lines = tmp_path / "holed", rows("BTC", DAYS)
        holed = [*lines[:400], *lines[420:]]
        skill.write_text(SKILL.replace("[BTC, ETH]", "[BTC]"))
        pitboss_ok("data", "import", write_bars(tmp_path, "BTC", holed), "--home", home)
        said = self.refuse(home, skill, *RANGE)
        assert "BTC: 20 bars of 5m are missing from 2025-06-02T09:20:00Z to 2025-06-02T11:00:00Z" in said
        assert backtest(home, skill, "--max-gap", "20")["status"] == "complete"


def test_a_run_whose_work_fails_exits_1_with_the_document_and_can_be_resumed(
    home: Path, skill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreachable(self: Analyst, request: object) -> None:
        raise TransientError("nobody answers")

    with monkeypatch.context() as patch:
        patch.setattr(Analyst, "complete", unreachable)
        answer = pitboss("backtest", skill, *RANGE, "--model", "standin/analyst", "--json", "--home", home)
    assert answer.code == 1
    assert answer.json["status"] == "error"
    assert "nobody answers" in answer.json["errors"][0]
    assert f"runs resume {answer.json['run_id']}" in answer.err
    resumed = pitboss_ok("runs", "resume", answer.json["run_id"], "--json", "--home", home).json
    assert resumed["status"] == "complete"
    assert "model_error" not in resumed["metrics"]["noops_by_flag"], "the resumed run asks again where the model failed"


# Gaps in the finest bars -----------------------------------------------------------------------------------------------


@pytest.fixture
def holed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace whose bars of 5m have a hole of three hours and whose bars of 1h are whole."""
    monkeypatch.chdir(tmp_path)
    files, home = tmp_path / "files", tmp_path / "home"
    hours = files / "candles" / "1h"
    hours.mkdir(parents=True)
    for symbol in ("BTC", "ETH"):
        lines = rows(symbol)
        write_bars(files, symbol, lines[:600] + lines[636:])
        whole = [_hour(lines[first : first + 12]) for first in range(0, len(lines), 12)]
        (hours / f"{symbol}.csv").write_text("\n".join(["time,open,high,low,close,volume", *whole, ""]))
    pitboss_ok("data", "import", files, "--home", home)
    return home


def _hour(lines: list[str]) -> str:
    cells = [line.split(",") for line in lines]
    high, low = max(float(row[2]) for row in cells), min(float(row[3]) for row in cells)
    return f"{cells[0][0]},{cells[0][1]},{high},{low},{cells[-1][4]},1"


HOURLY = ("--set", "schedule.every=1h", "--set", "context.bars_interval=1h")


def test_a_hole_in_fine_bars_does_not_block_a_skill_whose_coarser_bars_are_whole(holed: Path, skill: Path) -> None:
    words = ("backtest", skill, *RANGE, *HOURLY, "--home", holed)
    run = pitboss_ok(*words, "--json").json
    assert (run["status"], run["ticks"]) == ("complete", 72)
    said = " ".join(pitboss_ok("runs", "show", run["run_id"], "--home", holed).out.split())
    page = Path(run["report"]).read_text("utf-8")
    for place in (said, page):
        assert "36 bars of 5m are missing from 2025-06-03T02:00:00Z to 2025-06-03T05:00:00Z" in place
        assert "so the market moves in bars of 1h" in place
    assert len(pitboss_ok("runs", "export", run["run_id"], "--what", "equity", "--home", holed).lines) == 72
    assert pitboss_ok("runs", "verify", run["run_id"], "--home", holed).out.startswith("OK ")
    assert "36 bars of 5m are missing" in pitboss_refused("backtest", skill, *RANGE, "--home", holed), (
        "its ticks are 15m"
    )


def test_the_base_interval_can_be_chosen(holed: Path, skill: Path) -> None:
    words = ("backtest", skill, "--from", "2025-06-04", "--to", "2025-06-05", *HOURLY, "--home", holed)
    counts = {}
    for interval in ("5m", "1h"):
        run = pitboss_ok(*words, "--base-interval", interval, "--json").json
        counts[interval] = len(pitboss_ok("runs", "export", run["run_id"], "--what", "equity", "--home", holed).lines)
        assert f"bars of {interval}" in Path(run["report"]).read_text("utf-8")
    assert counts == {"5m": 288, "1h": 24}
    assert "'1x' is not the length of a bar" in pitboss_refused(*words, "--base-interval", "1x")
    assert "no bars of 4h that fit the schedule" in pitboss_refused(*words, "--base-interval", "4h")
    assert "36 bars of 5m are missing" in pitboss_refused(
        "backtest", skill, *RANGE, *HOURLY, "--base-interval", "5m", "--home", holed
    )
