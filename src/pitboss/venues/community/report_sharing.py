"""Hands reports that a live agent has posted to GitHub, beside its heartbeats. Jokes are left out.

The intent is stored when the post is known to exist, and everything else happens in a task of its own, so that a slow GitHub
delays no heartbeat. What is left when the process ends is done by the next one.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import MINUTE_MS, Instant
from pitboss.venues.community.action_outbox import ExecutedAction
from pitboss.venues.community.agent_world import AgentWorld
from pitboss.venues.community.github_reports import GithubReports, ShareOutcome
from pitboss.venues.community.issue_text import SharedPost

REPORT = "REPORT_TO_HUMAN"
RETRY_MS = MINUTE_MS


class ReportSharing:
    """Shares the reports of one agent. `notify` shows the user what became of them."""

    def __init__(
        self, reports: GithubReports, server_url: str, now: Callable[[], Instant], notify: Callable[[str], None]
    ) -> None:
        self._reports = reports
        self._server_url = server_url
        self._now = now
        self._notify = notify
        self._task: asyncio.Task[list[ShareOutcome]] | None = None
        self._next_at = 0

    def add(self, world: AgentWorld, executed: ExecutedAction) -> None:
        """Store that a post is to be shared, if it is a report or a comment on one."""
        post = None if self._reports.disabled else shared_post(world, executed, self._server_url)
        if post is not None:
            outcome = self._reports.add(post)
            if outcome.kind == "failed":
                self._notify(f"the report {outcome.post_id} does not become an issue: {outcome.note}")
            self._next_at = 0

    def advance(self) -> None:
        """Take the result of the task, and start it again when it is time."""
        task = self._task
        if task is not None and task.done():
            self._task = None
            with suppress(TransientError, UserError):
                for outcome in task.result():
                    self._tell(outcome)
        if self._task is None and not self._reports.disabled and self._now() >= self._next_at:
            self._next_at = self._now() + RETRY_MS
            self._task = asyncio.create_task(self._reports.resume())

    @property
    def is_busy(self) -> bool:
        """Whether a task is at work."""
        return self._task is not None and not self._task.done()

    async def close(self) -> None:
        """Stop the task; the store keeps how far it was."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._task
        await self._reports.close()

    def _tell(self, outcome: ShareOutcome) -> None:
        if outcome.kind == "shared":
            self._notify(f"the report {outcome.post_id} is issue {outcome.issue_number}: {outcome.issue_url}")
        elif outcome.kind == "failed":
            self._notify(f"the report {outcome.post_id} does not become an issue: {outcome.note}")


def shared_post(world: AgentWorld, executed: ExecutedAction, server_url: str) -> SharedPost | None:
    """The post as it is shared; None if it is neither a report nor a comment on one."""
    action, facts = executed.stored.action, executed.result.facts
    community: Any = world.community or {}
    thread_id = str(facts.get("thread_id", ""))
    if action.action == "create_thread" and action.thread_kind == REPORT:
        title, comment_id = action.title or "", None
    elif action.action == "comment" and action.comment_kind != "JOKE":
        thread = world.thread(thread_id) or {}
        if thread.get("type") != REPORT:
            return None
        title, comment_id = str(thread.get("title", "")), str(facts.get("comment_id", ""))
    else:
        return None
    slug = str(community.get("slug", ""))
    return SharedPost(
        thread_id=thread_id,
        comment_id=comment_id,
        title=title,
        body=action.body or "",
        community_slug=slug,
        community_name=str(community.get("name", "")),
        repository_url=str(community.get("githubRepositoryUrl") or ""),
        author=world.handle,
        created_at=executed.at,
        thread_url=f"{server_url}/api/threads/{thread_id}",
    )
