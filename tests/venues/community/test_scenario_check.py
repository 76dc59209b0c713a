"""What `--scenario` refuses: posts that the forum would refuse, and entries of which one would silently not count."""

import json
from pathlib import Path
from typing import Any

import pytest

from pitboss.cli.main import main
from pitboss.core.errors import UserError
from pitboss.skill.document import to_plain
from pitboss.venues.community.scenario import read_scenario
from pitboss.venues.community.scenario_file import TRIAL, VAULT, read_scenario_file, shipped_scenario
from venues.community.test_scenario_loop import DOCUMENT, SKILL

THREAD = {"id": "one", "author": "beta", "title": "One", "body": "text"}
COMMENT = {"id": "two", "author": "beta", "thread": "one", "body": "text"}
CONTRACT = DOCUMENT["contracts"][0]
BUG, REPLY = DOCUMENT["bugs"][0], DOCUMENT["owner_replies"][0]
OWN = {**THREAD, "author": "alpha", "type": "REPORT_TO_HUMAN"}

PROBLEMS: list[tuple[dict[str, Any], str]] = [
    ({"posts": [{**THREAD, "id": "system"}]}, "post system is refused: This id is in use"),
    ({"posts": [COMMENT, THREAD]}, "post two comes before its thread"),
    ({"posts": [COMMENT, {**THREAD, "at": "1s"}]}, "post two comes before its thread"),
    ({"posts": [THREAD, {**COMMENT, "body": "x" * 8_001}]}, "post two is refused: comment.body must be 8000"),
    ({"posts": [{**THREAD, "title": "😀" * 91}]}, "post one is refused: thread.title must be 180"),
    ({"posts": [{**THREAD, "body": "a\0b"}]}, "post one is refused: thread.body contains a character"),
    ({"posts": [{**THREAD, "title": "  "}]}, "post one is refused: thread.title is required"),
    ({"owner_replies": [{**REPLY, "body": "x" * 8_001}]}, "owner's reply to REPORT_TO_HUMAN is refused: comment.body"),
    ({"posts": [OWN, {**COMMENT, "id": "one-owner"}]}, "owner's reply to one is refused: This id is in use"),
    ({"contracts": [CONTRACT, {**CONTRACT, "address": "0x" + "cd" * 20}]}, "two contracts have the id 'vault'"),
    (
        {"contracts": [CONTRACT, {**CONTRACT, "id": "b", "address": CONTRACT["address"].upper().replace("X", "x")}]},
        "contracts vault and b have one address on one chain",
    ),
    (
        {"contracts": [{**CONTRACT, "chain": "Mainnet"}, {**CONTRACT, "id": "b", "chain": "ethereum "}]},
        "contracts vault and b have one address on one chain",
    ),
    ({"bugs": [BUG, BUG]}, "two bugs have the id 'no-effect'"),
    ({"bugs": [{**BUG, "evidence": [["withdraw"], ["total", " "]]}]}, "bug no-effect has an empty word in evidence"),
    ({"owner_replies": [REPLY, {**REPLY, "after": "1m"}]}, "two owner_replies are to REPORT_TO_HUMAN"),
    ({"contracts": [{**CONTRACT, "answers": {"withdraw(uint)": [{}]}}]}, r"'withdraw(uint)' is not in the ABI"),
    ({"posts": [THREAD, {**COMMENT, "author": "Beta"}]}, "handles Beta and beta differ only in case"),
    ({"posts": [{**THREAD, "author": "Alpha"}]}, "handles Alpha and alpha differ only in case"),
]


@pytest.mark.parametrize(("change", "problem"), PROBLEMS, ids=[problem for _, problem in PROBLEMS])
def test_a_scenario_of_which_a_part_would_not_happen_is_refused_in_one_line(
    tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UserError) as refused:
        read_scenario_file(write_scenario(tmp_path, {**DOCUMENT, **change}))
    assert refused.value.message.startswith("scenario.json: ")
    assert problem in refused.value.message
    assert "\n" not in refused.value.message


@pytest.mark.parametrize("command", ["backtest", "seed"])
def test_both_commands_refuse_it_with_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    scenario = write_scenario(tmp_path, {**DOCUMENT, "posts": [{**THREAD, "id": "system"}]})
    (tmp_path / "skill.json").write_text(json.dumps({**to_plain(SKILL), "model": "policy/silent"}))
    span = ["--from", "2025-01-01", "--to", "2025-01-01T00:05Z"]
    words = ["community", "seed"] if command == "seed" else ["backtest", str(tmp_path / "skill.json"), *span]
    assert main([*words, "--scenario", str(scenario), "--home", str(tmp_path / "home")]) == 2
    assert "post system is refused" in capsys.readouterr().err


def test_good_scenarios_are_read_the_shipped_ones_among_them(tmp_path: Path) -> None:
    other = {**CONTRACT, "id": "other", "chain": "Base", "answers": {}}
    ends = {"posts": [{**COMMENT, "at": "9s"}, {**THREAD, "at": "8s", "title": "x" * 180}]}
    both = {"owner_replies": [{**REPLY, "to": "REQUEST_TO_HUMAN", "reject": True}, REPLY]}
    for document in (
        DOCUMENT,
        {**DOCUMENT, **ends, **both, "contracts": [CONTRACT, other]},
        *map(shipped_scenario, (VAULT, TRIAL)),
    ):
        assert read_scenario_file(write_scenario(tmp_path, document)) == document


def test_a_stored_run_whose_scenario_an_earlier_version_accepted_stays_readable() -> None:
    assert read_scenario({**DOCUMENT, "posts": [{**THREAD, "id": "system"}], "bugs": [BUG, BUG]}).bugs


def test_messages_of_a_scenario_are_plain() -> None:
    with pytest.raises(UserError) as refused:
        read_scenario({**DOCUMENT, "posts": [{**THREAD, "at": "soon"}]})
    assert "Value error" not in refused.value.message
    assert "posts.0.at: " in refused.value.message


def write_scenario(folder: Path, document: Any) -> Path:
    path = folder / "scenario.json"
    path.write_text(json.dumps(document))
    return path
