"""Several runs side by side: inputs, metrics, results, and the first decisions that differ, in words."""

import asyncio
import json
from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from bundle_files import FROM, TO
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import HOUR_MS, Instant, iso
from pitboss.report.measures import compared_value, format_difference, shown_difference
from pitboss.report.shell import html_document
from pitboss.runs.comparison import comparison
from pitboss.runs.comparison_page import comparison_page
from pitboss.runs.indexed_runs import IndexedRuns
from pitboss.runs.run import start
from pitboss.store.runs import Run
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.testing import plain_skill

SMALL = {"action": "open_long", "symbol": "BTC", "size_usd": 500, "leverage": 1, "stop_loss": 1, "reason": "breakout"}
LARGE = {**SMALL, "size_usd": 9_000_000, "leverage": 50}
HOSTILE = "<script>alert(1)</script>"


def run_decisions(
    workspace: Workspace, decisions: Mapping[Instant, Mapping[str, Any]], every: str = "1h", **fields: Any
) -> Run:
    """A run with these decisions; it holds at all other ticks."""
    lines = [json.dumps({"tick_at": iso(at), "proposal": proposal}) for at, proposal in decisions.items()]
    skill = plain_skill(["BTC"], every, **fields.pop("skill", {}))
    return asyncio.run(start(workspace, PerpRequest(skill, FROM, TO, decisions="\n".join(lines), **fields)))


@pytest.fixture(scope="module")
def runs(workspace: Workspace) -> list[Run]:
    """One that buys, one that is refused, one with quarter-hourly ticks and another fee that buys between two hours."""
    after = FROM + 2 * HOUR_MS
    return [
        run_decisions(workspace, {after: SMALL}),
        run_decisions(workspace, {after: LARGE}),
        run_decisions(workspace, {after + HOUR_MS // 2: SMALL, after + HOUR_MS: SMALL}, "15m", taker_bps=Decimal(9)),
    ]


def compare_runs(workspace: Workspace, *runs: Run) -> dict[str, Any]:
    return comparison(workspace, runs, partial(IndexedRuns().index, workspace))


def test_the_first_decisions_that_differ_are_told_in_words(workspace: Workspace, runs: list[Run]) -> None:
    (differing,) = compare_runs(workspace, *runs[:2])["decisions"]
    assert differing["differing"] == 1
    (decision,) = differing["decisions"]
    assert decision["sentence"].startswith("at 2025-03-27 02:00 A: open long BTC for $500.00 at 1×; B: held because R")
    assert decision["sentence"].endswith("refused to open long BTC for $9,000,000 at 50×")
    assert decision["sides"][0]["reason"] == "breakout"


def test_decisions_are_compared_only_at_ticks_that_both_runs_had(workspace: Workspace, runs: list[Run]) -> None:
    (differing,) = compare_runs(workspace, runs[0], runs[2])["decisions"]
    assert [decision["tick_at"][11:16] for decision in differing["decisions"]] == ["02:00", "03:00"]
    assert "B: held" in differing["decisions"][0]["sentence"]
    assert "A: held; B: open long" in differing["decisions"][1]["sentence"]


def test_the_inputs_that_differ_are_named_and_the_rest_is_not(workspace: Workspace, runs: list[Run]) -> None:
    inputs = {row["name"]: row["values"] for row in compare_runs(workspace, *runs)["inputs"]}
    assert inputs["taker_bps"] == ["4.5", "4.5", "9"]
    assert inputs["skill.schedule.every"] == ["1h", "1h", "15m"]
    assert set(inputs) == {"taker_bps", "skill.schedule.every", "decisions"}


def test_a_run_against_itself_differs_in_nothing(workspace: Workspace, runs: list[Run]) -> None:
    document = compare_runs(workspace, runs[0], run_decisions(workspace, {FROM + 2 * HOUR_MS: SMALL}))
    assert document["inputs"] == []
    assert document["difference"]["same"] is True
    assert document["decisions"][0]["differing"] == 0
    assert {row["differences"][1] for row in document["metrics"]} <= {0.0, None}
    assert document["pairs"][0]["percent"] == 0.0


def test_results_are_differences_of_the_later_run_from_the_earlier(workspace: Workspace, runs: list[Run]) -> None:
    document = compare_runs(workspace, *runs)
    labels = {run["run_id"]: run["label"] for run in document["runs"]}
    pairs = [labels[pair["first"]] + labels[pair["second"]] for pair in document["pairs"]]
    assert pairs == ["BA", "CA", "CB"]
    final = [float((run.metrics or {})["final_equity_usd"]) for run in runs]
    assert document["pairs"][0]["percent"] == pytest.approx(100 * (final[1] / final[0] - 1))
    assert document["pairs"][0]["interval"] is None
    assert "it needs 20 days" in document["interval_meaning"]


def test_what_cannot_be_compared_is_said(workspace: Workspace, runs: list[Run]) -> None:
    skill = plain_skill(["BTC"], "1h", model="policy/hold")
    later = asyncio.run(start(workspace, PerpRequest(skill, TO, TO + 6 * HOUR_MS)))
    document = compare_runs(workspace, runs[0], later)
    assert document["unpaired"] == "the runs cover different days"
    assert document["decisions"][0]["why_not"] == "the runs have no tick in common"
    with pytest.raises(UserError, match="2 to 8"):
        compare_runs(workspace, runs[0], runs[0])


def test_the_page_is_one_file_and_texts_of_others_stay_texts(workspace: Workspace, runs: list[Run]) -> None:
    other = run_decisions(workspace, {FROM: {**SMALL, "reason": HOSTILE}}, skill={"name": HOSTILE})
    document = compare_runs(workspace, runs[0], other)
    html = html_document(comparison_page(workspace, [runs[0], other], document, IndexedRuns()))
    assert "Equity of the runs from 100" in html
    assert "&lt;script&gt;" in html
    assert HOSTILE not in html
    assert "src=" not in html


@pytest.mark.parametrize(
    ("value", "base", "form", "text"),
    [
        (3.414, 1.226, "signed_percent", "+2.18 pp"),  # 3.41 less 1.23; the exact difference rounds to 2.19
        (0.1234, 0.5, "share", "−37.7 pp"),
        (10_000.004, 9_999.996, "usd", "$0.00"),
        (0.002, 0.001, "usd", "+$0.0010"),
        (12.0, 15.0, "count", "−3"),
        (None, 1.0, "ratio", "–"),
    ],
)
def test_differences_are_those_of_the_shown_values(value: Any, base: float, form: Any, text: str) -> None:
    assert format_difference(shown_difference(value, base, form), form) == text


def test_a_sharpe_of_few_days_is_flagged() -> None:
    row = {"metric": "sharpe", "form": "ratio", "values": [1.5, 1.5], "intervals": [None, [0.5, 2.5]]}
    assert [compared_value(row, index) for index in (0, 1)] == ["1.50 (<20 days)", "1.50"]
