"""The input of a community run's page: the common `RunReport`, and what only this venue has. All texts are untrusted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from pitboss.core.instant import Instant
from pitboss.report.source import RunReport
from pitboss.venues.community.score import ReportedBugs


@dataclass(frozen=True, slots=True)
class PostText:
    """A thread's first text or a comment, with its author as the forum names it."""

    at: Instant | None
    author: str
    is_own: bool
    body: str


@dataclass(frozen=True, slots=True)
class ThreadText:
    """A thread with its posts, the first text first. `left_out` comments are not among them."""

    id: str
    kind: str
    title: str
    status: str
    posts: Sequence[PostText]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class SentTransaction:
    """A transaction that was mined. `call` is the call in words, empty if the record does not hold it."""

    at: Instant
    contract: str
    function: str
    call: str
    value_wei: Decimal
    cost_wei: Decimal
    tx_hash: str
    has_succeeded: bool = True


@dataclass(frozen=True, slots=True)
class ActionMark:
    """One action in the chart of heartbeats."""

    at: Instant
    lane: str
    style: str
    label: str


@dataclass(frozen=True, slots=True)
class CommunityReport:
    """A finished or partial run with everything that its page shows. The decisions of `run` are one row per action."""

    run: RunReport
    handle: str = ""
    community: str = ""
    bugs: Mapping[str, str] = field(default_factory=dict[str, str])
    """The planted bugs of the scenario by id, with their summaries; empty for a live run."""
    reports: Sequence[ReportedBugs] = ()
    transactions: Sequence[SentTransaction] = ()
    marks: Sequence[ActionMark] = ()
    threads: Sequence[ThreadText] = ()
    """In order of time."""

    def thread(self, thread_id: str) -> ThreadText | None:
        """The thread of an id."""
        return next((thread for thread in self.threads if thread.id == thread_id), None)

    def anchors(self) -> dict[str, str]:
        """The element id of each thread; ids of threads are not used, because a server may choose any text."""
        return {thread.id: f"thread-{number}" for number, thread in enumerate(self.threads, 1)}
