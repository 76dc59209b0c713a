"""Reports as GitHub issues: one for each post under any fault, harmless text, clear errors, no token in any of it."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from github_server import FakeGithub, github

from example_counts import cases
from forked_process import ForkedProcess
from pitboss.bootstrap.settings import load_settings
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import parse_instant
from pitboss.models.secret import Secret
from pitboss.venues.community.github_client import GithubClient, parse_repository, web_host
from pitboss.venues.community.github_reports import SETTLE_MS, GithubReports, open_reports
from pitboss.venues.community.issue_text import SharedPost, issue_body, issue_title, without_references
from pitboss.venues.community.report_store import ReportStore
from pitboss.venues.community.text_limits import utf16_length
from simulated_kill import Killed

NOON = parse_instant("2026-03-10T12:00:00Z")
POST = SharedPost(
    thread_id="thread1",
    comment_id=None,
    title="withdraw() pays twice",
    body="It does.",
    community_slug="bank",
    community_name="The Bank",
    repository_url="https://github.com/owner/bank",
    author="auditor",
    created_at=NOON,
    thread_url="https://forum.example/communities/bank/threads/thread1",
)
COMMENT = replace(POST, comment_id="comment1", body="It still does.")


class ReportingProcess:
    """One process; a new one on the same folder has only what is stored."""

    def __init__(self, home: Path, fake: FakeGithub, token: str = "") -> None:
        self.home = home
        self.fake = fake
        self.token = token or fake.token
        self.at = NOON
        self.marks: list[str] = []
        self.mark_errors: list[Exception] = []

    def now(self) -> int:
        return self.at

    async def mark(self, post: SharedPost) -> None:
        if self.mark_errors:
            raise self.mark_errors.pop(0)
        self.marks.append(post.post_id)

    @asynccontextmanager
    async def process(self):
        reports = GithubReports(
            home=self.home, clock=self, api_url=self.fake.url, token=Secret(self.token), mark_issued=self.mark
        )
        try:
            yield reports
        finally:
            await reports.close()

    async def share(self, post: SharedPost = POST) -> Any:
        async with self.process() as reports:
            return await reports.share(post)

    async def resume(self) -> Any:
        async with self.process() as reports:
            return await reports.resume()


def run_trial(home: Path, story: Callable[[ReportingProcess], Any], **options: Any) -> None:
    async def run() -> None:
        async with github() as fake:
            await story(ReportingProcess(home, fake, **options))

    asyncio.run(run())


# The way of a report --------------------------------------------------------------------------------------------------


def test_a_thread_and_a_comment_become_one_issue_each_however_often_they_are_shared(tmp_path: Path) -> None:
    async def story(runner: ReportingProcess) -> None:
        first = await runner.share()
        assert (first.kind, first.issue_number) == ("shared", 1)
        assert first.issue_url == "https://github.com/owner/bank/issues/1"
        assert (await runner.share()) == first
        second = await runner.share(COMMENT)
        assert (second.kind, second.issue_number) == ("shared", 2)
        assert await runner.resume() == []
        assert runner.marks == ["thread:thread1", "comment:comment1"]
        thread, comment = runner.fake.issues["owner/bank"]
        assert (thread["title"], comment["title"]) == (
            "[Report] withdraw() pays twice",
            "[Report Comment] withdraw() pays twice",
        )
        for part in (
            "The Bank (bank)",
            "thread1 https://forum.example/",
            "auditor",
            "2026-03-10T12:00:00Z",
            "It does.",
        ):
            assert part in thread["body"]
        assert "- Comment: comment1" in comment["body"]
        assert [method for method, *_ in runner.fake.requests] == ["POST", "POST"]

    run_trial(tmp_path, story)


def test_without_a_token_or_a_repository_nothing_is_stored_or_sent(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)

    async def never(post: SharedPost) -> None:
        raise AssertionError(post)

    async def story(runner: ReportingProcess) -> None:
        reports = open_reports(load_settings(tmp_path), runner, never)
        assert reports.disabled
        assert (await reports.share(POST)).kind == "disabled"
        assert await reports.resume() == []
        outcome = await runner.share(replace(POST, repository_url=""))
        assert (outcome.kind, outcome.note) == ("disabled", "the community has no repository")
        assert runner.fake.requests == []

    run_trial(tmp_path, story)
    assert list(tmp_path.iterdir()) == []


def test_token_and_address_come_from_secrets_and_settings(tmp_path: Path, monkeypatch: Any) -> None:
    async def story(runner: ReportingProcess) -> None:
        monkeypatch.setenv("GITHUB_TOKEN", runner.fake.token)
        monkeypatch.setenv("PITBOSS_GITHUB_API_URL", runner.fake.url)
        reports = open_reports(load_settings(tmp_path), runner, runner.mark)
        assert (await reports.share(POST)).kind == "shared"
        await reports.close()
        monkeypatch.setenv("PITBOSS_GITHUB_API_URL", "http://github.example/api")
        with pytest.raises(UserError, match=r"http:// to github\.example is refused"):
            open_reports(load_settings(tmp_path), runner, runner.mark)

    run_trial(tmp_path, story)


# Crashes --------------------------------------------------------------------------------------------------------------

STEPS: dict[str, list[tuple[type, str]]] = {
    "store": [(ReportStore, "add"), (ReportStore, "change")],
    "client": [(GithubClient, "create_issue"), (GithubClient, "find_issue")],
    "forum": [(ReportingProcess, "mark")],
}


def crash_at(monkeypatch: pytest.MonkeyPatch, number: int) -> list[int]:
    """Make the steps crash at one point: before or after the effect of a call, counted over all calls."""
    passed = [0]

    def point() -> None:
        passed[0] += 1
        if passed[0] == number:
            raise Killed

    for owner, name in (step for group in STEPS.values() for step in group):
        inner = getattr(owner, name)
        if asyncio.iscoroutinefunction(inner):

            async def step(*values: Any, inner: Any = inner, **named: Any) -> Any:
                point()
                result = await inner(*values, **named)
                point()
                return result
        else:

            def step(*values: Any, inner: Any = inner, **named: Any) -> Any:
                point()
                result = inner(*values, **named)
                point()
                return result

        monkeypatch.setattr(owner, name, step)
    return passed


@pytest.mark.parametrize("fault", cases(("", "drop after", "garbage after"), ("", "drop after")))
def test_a_crash_at_any_point_leaves_one_issue_and_in_the_end_a_mark(tmp_path: Path, fault: str) -> None:
    async def story(runner: ReportingProcess, number: int) -> bool:
        """Whether the point was reached."""
        runner.fake.faults.extend([(fault, None)] if fault else [])
        crashes = 0
        with pytest.MonkeyPatch.context() as patch:
            passed = crash_at(patch, number)
            try:
                await runner.share()
                runner.at += SETTLE_MS
                await runner.resume()
            except Killed:
                crashes += 1
            reached = passed[0] >= number
        await runner.share()  # the program starts again and comes upon the same post
        for _ in range(2):
            runner.at += SETTLE_MS
            await runner.resume()
        assert len(runner.fake.issues["owner/bank"]) == 1, number
        assert set(runner.marks) == {"thread:thread1"}, number
        assert (await runner.share()).kind == "shared"
        assert crashes == reached
        return reached

    async def every_point() -> int:
        number, reached = 0, True
        while reached:
            number += 1
            async with github() as fake:
                reached = await story(ReportingProcess(tmp_path / str(number), fake), number)
        return number

    assert asyncio.run(every_point()) > 10


PROGRAM = """
import asyncio, sys
from pathlib import Path
from pitboss.bootstrap.machine import SystemClock
from pitboss.models.secret import Secret
from pitboss.venues.community.github_reports import GithubReports, SharedPost

async def mark(post): raise AssertionError("killed before")
home, url, token = sys.argv[1:]
post = SharedPost("thread1", None, "title", "body", "bank", "Bank", "https://github.com/owner/bank", "me", 0, "")
reports = GithubReports(home=Path(home), clock=SystemClock(), api_url=url, token=Secret(token), mark_issued=mark)
asyncio.run(reports.share(post))
"""


def test_a_process_that_is_killed_while_github_answers_has_made_one_issue(tmp_path: Path) -> None:
    async def story(runner: ReportingProcess) -> None:
        child = ForkedProcess("-c", PROGRAM, tmp_path, runner.fake.url, runner.fake.token)
        runner.fake.on_created = lambda: os.kill(child.pid, signal.SIGKILL)
        await asyncio.to_thread(child.communicate, None, 60)
        assert child.returncode == -signal.SIGKILL
        runner.fake.on_created = lambda: None
        runner.fake.at = "2999-01-01T00:00:00Z"
        for issue in runner.fake.issues["owner/bank"]:
            issue["created_at"] = runner.fake.at
        (outcome,) = await runner.resume()
        assert (outcome.kind, outcome.issue_number, runner.marks) == ("shared", 1, ["thread:thread1"])
        assert len(runner.fake.issues["owner/bank"]) == 1

    run_trial(tmp_path, story)


def test_two_processes_do_not_share_at_the_same_time(tmp_path: Path) -> None:
    async def story(runner: ReportingProcess) -> None:
        async with runner.process() as one, runner.process() as other:
            outcomes = await asyncio.gather(one.share(POST), other.share(POST), one.share(POST))
            assert sorted(outcome.kind for outcome in outcomes) == ["shared", "shared", "waiting"]
            assert "another process" in next(outcome.note for outcome in outcomes if outcome.kind == "waiting")
            assert await other.resume() == []
        assert len(runner.fake.issues["owner/bank"]) == 1

    run_trial(tmp_path, story)


# Unanswered requests --------------------------------------------------------------------------------------------------


def test_an_absent_issue_counts_only_when_no_request_can_be_on_its_way(tmp_path: Path) -> None:
    async def story(runner: ReportingProcess) -> None:
        runner.fake.faults.append(("drop before", None))
        outcome = await runner.share()
        assert (outcome.kind, outcome.issue_number) == ("waiting", None)
        assert "no answer" in outcome.note
        runner.at += SETTLE_MS - 1
        await runner.resume()
        assert runner.fake.issues == {}
        runner.at += 1
        assert [outcome.kind for outcome in await runner.resume()] == ["shared"]

    run_trial(tmp_path, story)


def test_the_search_reads_all_pages_and_is_not_taken_in_by_strangers(tmp_path: Path) -> None:
    async def story(runner: ReportingProcess) -> None:
        runner.fake.faults.append(("status after", 502))
        await runner.share()
        marker = runner.fake.bodies[0].splitlines()[0]
        for number in range(230):
            runner.fake.add(
                "owner/bank", "x", f"quoted: {marker}" if number % 2 else "<!-- pitboss report thread:thread1 -->"
            )
        (outcome,) = await runner.resume()
        assert (outcome.kind, outcome.issue_number) == ("shared", 1)
        assert [method for method, *_ in runner.fake.requests] == ["POST", "GET", "GET", "GET"]

    run_trial(tmp_path, story)


def test_a_limit_of_the_rate_is_respected_and_needs_no_search(tmp_path: Path) -> None:
    reset = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(NOON // 1000 + 90)}

    async def story(runner: ReportingProcess) -> None:
        for status, headers in ((403, reset), (429, {"Retry-After": "90"})):
            runner.at = NOON
            post = replace(POST, thread_id=f"thread{status}")
            runner.fake.faults.append(("status", (status, headers, {"message": "slow down"})))
            assert (await runner.share(post)).kind == "waiting"
            requests = len(runner.fake.requests)
            runner.at = NOON + 90 * 1000 - 1
            (outcome,) = await runner.resume()
            assert (outcome.kind, outcome.note) == ("waiting", f"GitHub answered {status}: slow down")
            assert len(runner.fake.requests) == requests
            runner.at += 1
            assert [outcome.kind for outcome in await runner.resume()] == ["shared"]
        assert {method for method, *_ in runner.fake.requests} == {"POST"}

    run_trial(tmp_path, story)


def test_a_server_that_stays_broken_is_asked_ever_less_often(tmp_path: Path) -> None:
    async def story(runner: ReportingProcess) -> None:
        runner.fake.faults.extend([("status", (503, {}, {}))] * 1_000)
        await runner.share()
        async with runner.process() as reports:
            for _ in range(24 * 12):
                runner.at += 5 * 60_000
                await reports.resume()
        assert 20 < len(runner.fake.requests) < 60
        runner.fake.faults.clear()
        runner.at += 3_600_000
        assert [outcome.kind for outcome in await runner.resume()] == ["shared"]

    run_trial(tmp_path, story)


def test_the_forum_may_refuse_the_mark_for_a_while(tmp_path: Path) -> None:
    async def story(runner: ReportingProcess) -> None:
        runner.mark_errors = [TransientError("the forum is away"), UserError("banned")]
        outcome = await runner.share()
        assert (outcome.kind, outcome.issue_number, outcome.note) == ("waiting", 1, "the forum is away")
        (outcome,) = await runner.resume()
        assert (outcome.kind, outcome.note) == ("waiting", "banned")
        runner.at += 3_600_000
        assert [outcome.kind for outcome in await runner.resume()] == ["shared"]
        assert len(runner.fake.requests) == 1

    run_trial(tmp_path, story)


# Refusals -------------------------------------------------------------------------------------------------------------


def test_a_report_for_another_server_than_that_of_the_settings_holds_up_no_other(tmp_path: Path) -> None:
    async def story(runner: ReportingProcess) -> None:
        elsewhere = replace(POST, thread_id="thread0", repository_url="https://git.corp.example/owner/bank")
        async with runner.process() as reports:
            reports._store.add(elsewhere, "<!-- marker -->")
            reports.add(POST)
        first, second = await runner.resume()
        assert (first.kind, "not a repository on github.com" in first.note) == ("waiting", True)
        assert second.kind == "shared"

    run_trial(tmp_path, story)


@pytest.mark.parametrize("status", [301, 307, 401, 403, 404, 410, 422])
def test_a_refusal_is_final_and_one_line_without_the_token(tmp_path: Path, status: int) -> None:
    async def story(runner: ReportingProcess) -> None:
        headers = {"Location": f"{runner.fake.url}/repos/owner/other/issues"} if status < 400 else {}
        message = f"no {runner.fake.token} \x1b[31m\nline"
        runner.fake.faults.append(("status", (status, headers, {"message": message})))
        outcome = await runner.share()
        assert outcome.kind == "failed"
        assert outcome.note.startswith(f"GitHub refused the issue ({status}): no *** [31m line")
        assert await runner.resume() == []
        assert (await runner.share()).kind == "failed"
        assert len(runner.fake.requests) == 1
        assert runner.fake.token.encode() not in (tmp_path / "community" / "reports.sqlite").read_bytes()

    run_trial(tmp_path, story)


def test_a_wrong_token_is_refused_and_not_repeated(tmp_path: Path) -> None:
    async def story(runner: ReportingProcess) -> None:
        runner.token = "ghp-Wrong-and-Secret"
        outcome = await runner.share()
        assert (outcome.kind, outcome.note) == (
            "failed",
            "GitHub refused the issue (401): Bad credentials Bearer ***; check GITHUB_TOKEN",
        )
        with pytest.raises(UserError) as caught:
            GithubClient(runner.fake.url, Secret("two\nlines-of-secret"), runner)
        assert "secret" not in caught.value.message

    run_trial(tmp_path, story)


@pytest.mark.parametrize(
    "url",
    [
        "http://github.com/owner/bank",
        "https://github.com.evil.example/owner/bank",
        "https://github.com:444/owner/bank",
        "https://user:pw@github.com/owner/bank",
        "https://github.com/owner",
        "https://github.com/owner/bank/issues",
        "https://github.com/owner/..",
        "https://github.com/../bank",
        "https://github.com/owner/bank?x=1",
        "https://github.com/owner/bank#x",
        "https://github.com/owner/ba%2Fnk",
        "https://github.com/own er/bank",
        "https://[github.com/owner/bank",
        "git@github.com:owner/bank.git",
        "https://gitlab.com/owner/bank",
        "javascript:alert(1)",
    ],
)
def test_only_a_plain_address_of_a_repository_is_accepted(tmp_path: Path, url: str) -> None:
    with pytest.raises(UserError, match="repository"):
        parse_repository(url, "github.com")

    async def story(runner: ReportingProcess) -> None:
        outcome = await runner.share(replace(POST, repository_url=url))
        assert (outcome.kind, runner.fake.requests) == ("failed", [])

    run_trial(tmp_path, story)


def test_the_web_host_belongs_to_the_api() -> None:
    assert web_host("https://api.github.com") == web_host("http://127.0.0.1:8000") == "github.com"
    assert web_host("https://git.corp.example/api/v3") == "git.corp.example"
    for url in ("https://github.com/o/r", "https://GitHub.com/o/r/", "https://github.com/o/r.git"):
        repository = parse_repository(url, "github.com")
        assert (repository.owner, repository.name) == ("o", "r")
    assert parse_repository("https://git.corp.example/o/r", "git.corp.example").name == "r"


def test_malformed_ids_are_not_put_into_an_issue(tmp_path: Path) -> None:
    async def story(runner: ReportingProcess) -> None:
        for post in (replace(POST, thread_id="--> <b>"), replace(POST, comment_id=""), replace(POST, comment_id="a b")):
            assert (await runner.share(post)).note == "the id of the post is malformed"
        assert runner.fake.requests == []

    run_trial(tmp_path, story)


# Text -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "@octocat",
        "\\@octocat",
        "&#64;octocat",
        "&#x40;octocat",
        "&commat;octocat",
        "@org/team",
        "fixes #12",
        "&num;12",
        "owner/other#12",
        "GH-12",
        "gh\\-12",
        "https://github.com/owner/other/issues/12",
        "[x](https://github.com/owner/other/pull\\/12)",
        "https://github.com/owner/other/discussions/12",
        "owner/other@0123456789abcdef0123456789abcdef01234567",
    ],
)
def test_a_post_mentions_no_github_user(text: str) -> None:
    import html
    import re

    for shown in (
        issue_title(replace(POST, title=text)),
        issue_body(replace(POST, body=text, author=text), "<!-- m -->"),
    ):
        rendered = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", html.unescape(shown))
        pings = r"@[A-Za-z0-9]|#[0-9]|(?i:gh)-[0-9]|/(?:issues|pull|discussions)/[0-9]"
        assert re.findall(pings, rendered.replace("https://forum.example", "")) == []


def test_ordinary_text_stays_as_it_is() -> None:
    text = "# Heading\n\n`a && b` costs 5 % & more: see [docs](https://example.org/a#b)\n- [ ] item"
    assert without_references(text) == text


def test_title_and_body_fit_and_the_marker_cannot_be_hidden() -> None:
    for letter in ("x", "😀", "@"):
        post = replace(POST, title=letter * 1_000, body="<!--" + letter * 70_000, author="a\n- Author: boss\n<!--")
        title, body = issue_title(post), issue_body(post, "<!-- marker -->")
        assert title.startswith("[Report] ")
        assert len(title) == 250
        assert utf16_length(body) <= 65_536
        assert body.endswith("[cut: the report is longer than an issue may be]")
        assert body.startswith("<!-- marker -->\n")
        assert "\n- Author: boss" not in body
    assert issue_title(replace(POST, title="")) == "[Report] Agent update"
    assert utf16_length(issue_body(replace(POST, body="y" * 60_000), "<!-- m -->")) > 60_000


def test_a_lone_surrogate_is_no_obstacle(tmp_path: Path) -> None:
    async def story(runner: ReportingProcess) -> None:
        assert (await runner.share(replace(POST, title="\ud800", body="\udc00"))).kind == "shared"
        assert runner.fake.bodies[0].endswith("\n?")

    run_trial(tmp_path, story)
