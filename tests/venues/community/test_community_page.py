"""The page and the terminal output of a community run: findings, actions, transactions and threads, and no account."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.cli.main import main
from pitboss.report.page import compose
from pitboss.report.shell import html_document
from pitboss.report.source import RunReport
from pitboss.venues.community.action_text import describe_action
from pitboss.venues.community.agent_world import AgentWorld
from pitboss.venues.community.panels import CommunityReport
from pitboss.venues.community.panels import compose as compose_community
from pitboss.venues.community.report_source import build_community_report
from pitboss.venues.community.scenario_file import shipped_scenario
from pitboss.venues.community.transcript import transcript
from pitboss.venues.community.venue import VENUE

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"
ACCOUNT_WORDS = ("account", "equity", "drawdown", "sharpe", "traded", "fills", "profit", "market was generated")


class PageText(HTMLParser):
    """The text of each section and all start tags of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: dict[str, str] = {}
        self.section, self.depth = "top", 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "section":
            self.section = dict(attrs).get("id") or "summary"
        elif tag in ("style", "script"):
            self.section = tag
        elif tag == "body":
            self.section = "top"

    def handle_data(self, data: str) -> None:
        self.texts[self.section] = self.texts.get(self.section, "") + data + " "

    def text(self, section: str) -> str:
        """The text of a section on one line."""
        return " ".join(self.texts[section].split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in a scenario with three bugs, one of them reported by another participant, and hostile posts."""
    folder = tmp_path_factory.mktemp("page")
    scenario: dict[str, Any] = json.loads(json.dumps(shipped_scenario()))
    scenario["posts"] += [
        {"id": "evil", "at": "1m", "author": "gamma", "title": f"Look {EVIL}", "body": f"{EVIL} \u202egnp"},
        {"id": "stale", "at": "2m", "author": "gamma", "title": "total is stale", "type": "REPORT_TO_HUMAN", "body": "It is."},
        {"id": "wrong", "at": "5m", "author": "beta", "title": "All is lost", "type": "REPORT_TO_HUMAN", "body": "Help."},
    ]  # fmt: skip
    scenario["bugs"] += [
        {"id": "stale-total", "summary": "total is not updated", "evidence": [["total"], ["stale"]]},
        {"id": "no-event", "summary": "withdraw emits nothing", "evidence": [["event"], ["emit"]]},
    ]
    (folder / "scenario.json").write_text(json.dumps(scenario))
    (folder / "auditor.yaml").write_text(VENUE.examples()["contract-auditor.yaml"])
    words = ["backtest", "auditor.yaml", "--from", "2025-01-01", "--to", "2025-01-01T00:12Z"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main([*words, "--scenario", "scenario.json", "--home", "home"]) == 0
    return folder


@pytest.fixture(scope="module")
def page(folder: Path) -> PageText:
    (report,) = (folder / "home" / "reports").glob("*.html")
    return PageText(report.read_text())


def test_each_planted_bug_is_shown_with_who_reported_it_first_and_when(page: PageText) -> None:
    text = page.text("bugs")
    found, other, missed = (text.index(name) for name in ("withdraw-keeps-balance", "stale-total", "no-event"))
    assert "Found 2025-01-01 00:03 auditor (this agent) withdraw does not reduce the balance" in text[found:other]
    assert "Reported by another 2025-01-01 00:02 gamma total is stale" in text[other:missed]
    assert "Not reported" in text[missed:]


def test_reports_are_true_repeated_or_false(page: PageText) -> None:
    text = page.text("reports")
    assert "gamma total is stale True" in text
    assert "beta All is lost False" in text
    assert "auditor (this agent) withdraw does not reduce the balance True" in text


def test_actions_transactions_and_refusals_are_told_in_words(page: PageText) -> None:
    actions = page.text("decisions")
    assert "Comment on “Contract registry”" in actions
    assert "Read the source of Vault" in actions
    assert "Transaction Vault.withdraw(5)" in actions
    assert "Report to the owner: “withdraw does not reduce the balance”" in actions
    assert "withdraw(uint256) Vault.withdraw(5) 0 ETH 0.000041 ETH mined" in page.text("transactions")
    refused = page.text("refused")
    assert "C10_FUNCTION" in refused
    assert "Call Vault.approve(0x1111…1111, 1)" in refused
    assert "the contract has no function of that name or signature" in refused


def test_the_threads_are_there_and_what_strangers_wrote_is_only_text(page: PageText) -> None:
    text = page.text("threads")
    assert f"Look {EVIL}" in text
    assert "\u202e" not in text
    assert "auditor (this agent) 2025-01-01 00:03 balances() is the same" in text
    assert "the owner 2025-01-01 00:06 Confirmed." in text
    assert page.tags.count("script") == 1
    assert "img" not in page.tags


def test_a_venue_without_accounts_has_nothing_about_one(
    page: PageText, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {name: text for name, text in page.texts.items() if name not in ("threads", "style", "script")}
    assert "equity" not in texts
    assert "Share of bugs found 33.33%" in page.text("metrics")
    for words in texts.values():
        assert [word for word in ACCOUNT_WORDS if word in words.lower()] == []
    run_id = _run_id(folder)
    assert main(["runs", "show", run_id, "--home", str(folder / "home")]) == 0
    shown = capsys.readouterr().out
    assert "1 of 3" in shown
    assert "One refused action" in shown
    assert [word for word in ACCOUNT_WORDS if word in shown.lower()] == []
    assert main(["runs", "list", "--home", str(folder / "home")]) == 0
    listed = capsys.readouterr().out
    assert "share of bugs found 33.33%" in listed
    assert "return" not in listed
    assert main(["runs", "show", run_id, "--json", "--home", str(folder / "home")]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    assert "total_return_pct" not in metrics
    assert "final_equity_usd" not in metrics
    assert main(["runs", "verify", run_id, "--home", str(folder / "home")]) == 0


def test_a_run_in_which_nothing_was_done_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "auditor.yaml").write_text(VENUE.examples()["contract-auditor.yaml"])
    words = ["backtest", str(tmp_path / "auditor.yaml"), "--from", "2025-01-01", "--to", "2025-01-01T00:03Z"]
    assert main([*words, "--model", "policy/silent", "--home", str(tmp_path / "home")]) == 0
    shown = capsys.readouterr().out
    assert "Nothing was done. A decision was asked for at 3 of 3 ticks." in shown
    assert "fills" not in shown
    (report,) = (tmp_path / "home" / "reports").glob("*.html")
    silent = PageText(report.read_text())
    assert "The agent sent no transaction." in silent.text("transactions")
    assert "No report was made" in silent.text("reports")


def test_the_common_page_leaves_the_account_out_where_there_is_none() -> None:
    metrics = {"total_ticks": 3, "total_accepted_actions": 1, "bugs_found_pct": 50.0}
    document = {"status": "complete", "run_id": "r1", "metrics": metrics}
    common = RunReport(document, "s", "pitboss: 1", 0.0, [], metric_meanings=VENUE.metrics(), has_account=False)
    text = PageText(html_document(compose(common, "USD")))
    assert "equity" not in text.texts
    for name in text.texts.keys() - {"style", "script"}:
        assert [word for word in (*ACCOUNT_WORDS, "usd") if word in text.text(name).lower()] == []
    assert "50.00%" in text.text("metrics")


def test_a_run_without_a_state_and_a_live_run_have_a_page_too(folder: Path) -> None:
    bare = CommunityReport(RunReport({"status": "failed"}, "s", "pitboss: 1", 0.0, [], has_account=False))
    assert "The agent did nothing" in PageText(html_document(compose_community(bare))).text("heartbeats")
    with open_workspace(load_settings(folder / "home")) as workspace:
        run = workspace.runs.get(_run_id(folder))
        report = build_community_report(workspace, run)
    assert next(thread.kind for thread in report.threads) == "SYSTEM"
    assert sum(mark.lane == "Refused" for mark in report.marks) == 1


def test_the_threads_of_a_live_run_are_those_that_the_agent_last_read() -> None:
    community = {
        "threads": [
            {"id": "t2", "title": "B", "type": "REQUEST_TO_HUMAN", "requestStatus": "pending", "body": "b", "author": "alpha", "createdAt": "2025-01-02T00:00:00.000Z", "commentCount": 3},
            {"id": "t1", "title": "A", "type": "DISCUSSION", "body": None, "author": 5, "createdAt": "soon"},
            "not a thread",
        ],
        "recentComments": [{"threadId": "t2", "body": "c", "author": "beta", "createdAt": "2025-01-03T00:00:00.000Z"}],
    }  # fmt: skip
    first, second = transcript(AgentWorld("a1", "alpha", community))
    assert (first.title, first.posts[0].at, first.posts[0].author) == ("A", None, "5")
    assert (second.status, second.posts[0].is_own, second.posts[1].author, second.left_out) == (
        "pending",
        True,
        "beta",
        2,
    )


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({}, "Something malformed"),
        ({"action": "tx", "functionName": "f", "args": "x", "value": "-"}, "Call a contract.f() with an unreadable amount"),
        ({"action": "comment", "threadId": "a\x1b[2Jb"}, "Comment on a�[2Jb"),
        ({"action": "create_thread", "title": "x" * 100}, f"New thread: “{'x' * 80}… (and 20 more characters)”"),
        ({"action": "set_request_status", "threadId": "t1", "status": "resolved"}, "Set “Help” to resolved"),
        ({"action": "request_thread_comments", "threadId": "t1"}, "Read the comments of “Help”"),
    ],
)  # fmt: skip
def test_actions_in_words(row: dict[str, Any], words: str) -> None:
    assert describe_action(row, {"t1": "Help"}) == words


def _run_id(folder: Path) -> str:
    (report,) = (folder / "home" / "reports").glob("*.html")
    return report.stem
