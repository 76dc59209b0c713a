"""`GithubReports`: posts of an agent about reports become issues of the community's repository, each exactly once.

Every step is stored before the next is taken (`report_store.py`): the intent, that a request is being sent, the number of the issue, and
at last that the forum shows the post as issued. After a crash or a lost answer GitHub is searched for an issue with the report's marker
before another one is created; that none is there counts only after `SETTLE_MS`, when no request can be on its way any more. One process
at a time does this for a workspace, by a file lock that the system releases when the process ends.

Nothing here waits: what cannot be done now is done by a later `resume`. Without a token nothing is stored or sent.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from pitboss.bootstrap.keys import key_for, open_secrets
from pitboss.bootstrap.machine import environment, random_hex
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.settings import Settings
from pitboss.core.codec import printable
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from pitboss.core.noun import noun
from pitboss.core.ports import Clock
from pitboss.core.redaction import HIDDEN
from pitboss.models.secret import Secret
from pitboss.venues.community.github_client import (
    GithubClient,
    GithubRefused,
    GithubUnavailable,
    parse_repository,
    web_host,
)
from pitboss.venues.community.issue_text import SharedPost, issue_body, issue_title
from pitboss.venues.community.report_store import ReportStore, StoredReport
from pitboss.venues.community.settings import CommunitySettings

TOKEN = "GITHUB_TOKEN"
SETTLE_MS = 30 * SECOND_MS
"""GitHub ends a request after 10 s, this program after 20."""
CLOCK_ERROR_MS = DAY_MS
"""How far this machine's clock may be ahead of GitHub's when an issue is searched."""
_POST_ID = re.compile(r"[A-Za-z0-9_-]{1,160}")

MarkIssued = Callable[[SharedPost], Awaitable[object]]
"""Marks a post as issued on the forum; safe to repeat. Raises `TransientError`, or `UserError` if the forum refuses."""


@noun
class ShareOutcome:
    """How far the sharing of a post is, with one line why.

    disabled: it is not shared, because there is no token or no repository. waiting: `resume` goes on with it. shared: the issue exists
    and the post is marked. failed: it was refused for good.
    """

    post_id: str
    kind: Literal["disabled", "waiting", "shared", "failed"]
    note: str = ""
    issue_number: int | None = None
    issue_url: str = ""


class GithubReports:
    """Shares posts of one workspace. Close it after use."""

    def __init__(
        self,
        *,
        home: Path,
        clock: Clock,
        api_url: str,
        token: Secret | None,
        mark_issued: MarkIssued,
        http_hosts: str = "",
        redact: Callable[[str], str] = REDACTOR.redact,
    ) -> None:
        self._clock = clock
        self._mark_issued = mark_issued
        self._redact = redact
        self._host = web_host(api_url)
        self._client = None if token is None else GithubClient(api_url, token, clock, http_hosts)
        self._folder = home / "community"
        self._opened_store: ReportStore | None = None
        self._turn = asyncio.Lock()
        self._lock = FileLock(self._folder / "reports.lock", mode=0o600, blocking=False, fallback_to_soft=False)

    @property
    def disabled(self) -> bool:
        """Whether nothing is shared, because there is no token."""
        return self._client is None

    async def share(self, post: SharedPost) -> ShareOutcome:
        """Make a post an issue, as far as that is possible now. A post that was shared before is not shared again."""
        outcome = self.add(post)
        return outcome if outcome.kind != "waiting" else await self._advance(outcome.post_id)

    def add(self, post: SharedPost) -> ShareOutcome:
        """Store that a post is to be shared, for `resume`; of one that is stored already nothing changes."""
        if self._client is None:
            return ShareOutcome(post.post_id, "disabled", f"{TOKEN} is not set")
        if not post.repository_url:
            return ShareOutcome(post.post_id, "disabled", "the community has no repository")
        try:
            parse_repository(post.repository_url, self._host)
        except UserError as error:
            return ShareOutcome(post.post_id, "failed", error.message)
        clean = self._clean(post)
        if not all(_POST_ID.fullmatch(name) for name in (clean.thread_id, clean.comment_id) if name is not None):
            return ShareOutcome(clean.post_id, "failed", "the id of the post is malformed")
        marker = f"<!-- pitboss report {random_hex(16)} -->"
        return ShareOutcome(self._store.add(clean, marker).post_id, "waiting")

    async def resume(self) -> list[ShareOutcome]:
        """Go on with everything that is not finished, as far as that is possible now."""
        if self._client is None or (self._opened_store is None and not self._file.exists()):
            return []
        return [await self._advance(post_id) for post_id in self._store.unfinished()]

    async def close(self) -> None:
        """Close the connection and the file."""
        if self._client is not None:
            await self._client.close()
        if self._opened_store is not None:
            self._opened_store.close()
            self._opened_store = None

    @property
    def _file(self) -> Path:
        return self._folder / "reports.sqlite"

    @property
    def _store(self) -> ReportStore:
        if self._opened_store is None:
            self._opened_store = ReportStore(self._file, self._clock.now)
        return self._opened_store

    async def _advance(self, post_id: str) -> ShareOutcome:
        async with self._turn:
            try:
                with self._lock:
                    return self._outcome(await self._steps(self._store.get(post_id)))
            except Timeout:
                return ShareOutcome(post_id, "waiting", "another process shares reports now")

    async def _steps(self, report: StoredReport) -> StoredReport:
        """Take the next steps of a report until it is finished or something fails."""
        if report.state in ("issued", "failed") or self._clock.now() < report.retry_at:
            return report
        try:
            if report.state == "sending":
                report = await self._search(report)
            if report.state == "intent":
                report = await self._create(report)
        except GithubRefused as error:
            return self._store.change(report.post_id, state="failed", note=self._line(error))
        except GithubUnavailable as error:
            return self._postpone(report, error, error.retry_after_s)
        except UserError as error:  # the repository is on another server than the one in the settings now
            return self._postpone(report, error, HOUR_MS / SECOND_MS)
        if report.state == "created":
            report = await self._mark(report)
        return report

    async def _search(self, report: StoredReport) -> StoredReport:
        """Look for the issue of a request whose answer is unknown."""
        assert self._client is not None
        repository = parse_repository(report.post.repository_url, self._host)
        number = await self._client.find_issue(repository, report.marker, report.sent_at - CLOCK_ERROR_MS)
        if number is not None:
            return self._store.change(report.post_id, state="created", issue_number=number, attempts=0, note="")
        if self._clock.now() < report.sent_at + SETTLE_MS:
            return report
        return self._store.change(report.post_id, state="intent")

    async def _create(self, report: StoredReport) -> StoredReport:
        assert self._client is not None
        post = self._clean(report.post)
        repository = parse_repository(post.repository_url, self._host)
        title, body = self._redact(issue_title(post)), self._redact(issue_body(post, report.marker))
        if not body.startswith(report.marker):
            body = f"{report.marker}\n\n{HIDDEN}"
        report = self._store.change(report.post_id, state="sending", sent_at=self._clock.now())
        try:
            number = await self._client.create_issue(repository, title, body)
        except GithubUnavailable as error:
            if not error.is_uncertain:
                self._store.change(report.post_id, state="intent")
            raise
        return self._store.change(report.post_id, state="created", issue_number=number, attempts=0, note="")

    async def _mark(self, report: StoredReport) -> StoredReport:
        try:
            await self._mark_issued(report.post)
        except TransientError as error:
            return self._postpone(report, error, None)
        except UserError as error:  # the forum may accept it later: a new credential, a lifted ban
            return self._postpone(report, error, HOUR_MS / SECOND_MS)
        return self._store.change(report.post_id, state="issued", note="")

    def _postpone(self, report: StoredReport, error: Exception, wait_s: float | None) -> StoredReport:
        """Note what went wrong, and when the next attempt may be made: as the other side says, or ever later."""
        wait_ms = min(MINUTE_MS << min(report.attempts, 10), HOUR_MS) if report.attempts else 0
        if wait_s is not None:
            wait_ms = round(wait_s * SECOND_MS)
        return self._store.change(
            report.post_id,
            note=self._line(error),
            attempts=report.attempts + 1,
            retry_at=self._clock.now() + wait_ms,
        )

    def _outcome(self, report: StoredReport) -> ShareOutcome:
        kind = "shared" if report.state == "issued" else "failed" if report.state == "failed" else "waiting"
        number, url = report.issue_number, ""
        with suppress(UserError):
            if number is not None:
                repository = parse_repository(report.post.repository_url, self._host)
                url = f"https://{self._host}/{repository.owner}/{repository.name}/issues/{number}"
        note = report.note or ("" if kind == "shared" else "GitHub is searched again for an unanswered request")
        return ShareOutcome(report.post_id, kind, note, number, url)

    def _line(self, error: Exception) -> str:
        hint = error.hint if isinstance(error, UserError) else ""
        return self._redact(f"{error}; {hint}" if hint else str(error))

    def _clean(self, post: SharedPost) -> SharedPost:
        """The post without secrets: it is stored, and published."""
        texts = {field.name: getattr(post, field.name) for field in fields(post)}
        return replace(
            post,
            **{name: self._redact(printable(text)) for name, text in texts.items() if isinstance(text, str)},
        )


def open_reports(settings: Settings, clock: Clock, mark_issued: MarkIssued) -> GithubReports:
    """The reports of a workspace with its token, if it has one, and its setting `github_api_url`."""
    return GithubReports(
        home=settings.home,
        clock=clock,
        api_url=CommunitySettings.of(settings).github_api_url,
        token=key_for((TOKEN,), environment, open_secrets(settings.home)),
        mark_issued=mark_issued,
        http_hosts=settings.http_hosts,
    )
