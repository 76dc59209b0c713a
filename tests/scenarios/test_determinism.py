"""The same skill, data and answers give the same digest, whatever else differs."""

from pathlib import Path

import pytest
from pitboss_process import run_in_process, start_pitboss, wait_for_exit

RANGE = ("--from", "2025-03-20", "--to", "2025-03-20T06:00:00Z")


@pytest.mark.parametrize("model", ["standin/analyst", pytest.param("policy/random", marks=pytest.mark.proof)])
def test_processes_with_different_hash_seeds_and_commit_sizes_give_the_same_digest(
    home: Path, skill: Path, model: str
) -> None:
    words = ("backtest", skill, *RANGE, "--model", model, "--json", "--home", home)
    both = [
        start_pitboss(*words, PYTHONHASHSEED="1", PITBOSS_COMMIT_RECORDS="1"),
        start_pitboss(*words, PITBOSS_COMMIT_RECORDS="500", TZ="Asia/Tokyo", LANG="de_DE.UTF-8"),
    ]
    first, second = [wait_for_exit(process) for process in both]
    assert (first.code, second.code) == (0, 0), first.err + second.err
    assert first.json["digest"] == second.json["digest"]
    assert first.json["metrics"] == second.json["metrics"]


@pytest.mark.parametrize("model", ["standin/analyst", pytest.param("policy/sma_cross", marks=pytest.mark.proof)])
def test_symbols_listed_in_another_order_give_the_same_digests(home: Path, skill: Path, model: str) -> None:
    words = ("backtest", skill, *RANGE, "--model", model, "--json", "--home", home)
    first = run_in_process(*words, "--set", "context.symbols=[BTC, ETH, SOL]").json
    second = run_in_process(*words, "--set", "context.symbols=[ETH, SOL, BTC]").json
    for key in ("digest", "skill_digest", "data_digest", "metrics", "baselines"):
        assert first[key] == second[key]
