"""Decisions in a file in place of a model: one action or a list a line, and what `runs export` writes of a run."""

import json
from pathlib import Path
from typing import Any

import pytest

from pitboss.cli.main import main
from pitboss.core.errors import UserError
from pitboss.core.instant import MINUTE_MS
from pitboss.models.decisions import DecisionFile
from pitboss.skill.document import to_plain
from pitboss.venues.community.intents import DECISION
from venues.community.test_scenario_loop import SKILL, START, action, tx

TICKS = range(START, START + 5 * MINUTE_MS, MINUTE_MS)
COMMENT = action("comment", threadId="hello", body="one")
OTHER = action("comment", threadId="hello", body="two", commentKind="JOKE")


def read_decisions(*proposals: Any) -> DecisionFile:
    lines = [json.dumps({"tick_at": "2024-10-04T00:01:00Z", "proposal": proposal}) for proposal in proposals]
    return DecisionFile.read("\n".join(lines).encode(), "decisions.jsonl", TICKS, DECISION)


@pytest.mark.parametrize(
    "proposals",
    [
        (COMMENT, OTHER),
        ([COMMENT, OTHER],),
        ({"actions": [COMMENT, OTHER]},),
        ({"actions": [COMMENT], "reason": "two lines"}, OTHER),
    ],
)
def test_one_action_and_every_form_of_a_list_give_the_same_actions(proposals: tuple[Any, ...]) -> None:
    assert list(read_decisions(*proposals).proposals.values()) == [(COMMENT, OTHER)]


@pytest.mark.parametrize(
    ("proposal", "key"),
    [({**COMMENT, "bdy": "x"}, "bdy"), ({"acton": "comment"}, "acton"), ({"actions": [], "title": "x"}, "title")],
)
def test_an_unknown_key_is_refused_in_each_form(proposal: Any, key: str) -> None:
    with pytest.raises(UserError, match=f"line 1: unknown key proposal.'{key}'"):
        read_decisions(proposal)


def test_exported_decisions_can_be_run_again_and_end_in_the_same_proposals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Allowed and refused actions, several at one tick, integers of 256 bits, and values that are no action."""
    (tmp_path / "skill.json").write_text(json.dumps({**to_plain(SKILL), "model": "policy/silent"}))
    report = {"title": "withdraw", "body": "x", "threadType": "REPORT_TO_HUMAN", "action": "create_thread"}
    decided = [
        [{**report, "communitySlug": "vault-0x5fbd"}, {"action": "dance"}, 7, {"action": "comment"}],
        [{**tx("withdraw", 2**256 - 1), "communitySlug": "vault-0x5fbd"}],
        [],
    ]
    lines = [
        {"tick_at": f"2025-01-01T00:0{minute}:00Z", "proposal": {"actions": actions}}
        for minute, actions in enumerate(decided)
    ]
    first = "\n".join(map(json.dumps, lines))
    second = export_decisions(tmp_path, first, capsys)
    assert len(second.splitlines()) == 5
    assert export_decisions(tmp_path, second, capsys) == second


def export_decisions(folder: Path, decisions: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What is exported of a run of these decisions."""
    (folder / "decisions.jsonl").write_text(decisions)
    home = ["--home", str(folder / "home")]
    span = ["--from", "2025-01-01", "--to", "2025-01-01T00:05Z", "--decisions", str(folder / "decisions.jsonl")]
    assert main(["backtest", str(folder / "skill.json"), *span, "--json", *home]) == 0
    run_id = json.loads(capsys.readouterr().out)["run_id"]
    assert main(["runs", "export", run_id, "--what", "decisions", *home]) == 0
    return capsys.readouterr().out
