"""What an agent of the community venue knows and has done: its community as the server showed it, its inbox and its counters.

The forum itself (`forum.py`) is the server's. Here is the agent's side: the newest context document, narrowed to the
community that it is assigned to, results that the model has not seen yet, and what its limits are counted from.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from decimal import Decimal
from typing import Any, Self, cast

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.venues.community.caps import AgentDayUse
from pitboss.venues.community.context_bounds import bounded_results

MOST_OWN_POSTS = 500
MOST_INBOX = 50
MOST_EXECUTED = 50


@noun
class InboxItem:
    """A result for the model. `number` orders items; it is unique within a run."""

    number: int
    content: Mapping[str, Any]


@noun
class AgentWorld:
    """The world of one agent, as far as it knows it.

    `community` is the community of the context document, or None while the agent is assigned to none.
    """

    agent_id: str
    handle: str = ""
    community: Mapping[str, Any] | None = None
    text_limits: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    inbox: tuple[InboxItem, ...] = ()
    next_number: int = 1
    use: AgentDayUse = AgentDayUse()
    thread_ticks: tuple[Instant, ...] = ()
    """The instants of the newest threads that it created, one per thread."""
    own_posts: tuple[str, ...] = ()
    """`post_digest` of its newest posts, oldest first."""
    approved: tuple[str, ...] = ()
    """Keys of transactions that a person has approved and that are not sent yet."""
    executed: tuple[str, ...] = ()
    """Keys of the newest actions whose effects are included, oldest first."""

    def rows(self, name: str) -> Sequence[Mapping[str, Any]]:
        """The rows of a list of the community; other values of the document are left out, as a server may send anything."""
        value = self.community.get(name) if self.community is not None else None
        rows = cast("list[Any]", value) if isinstance(value, list) else []
        return [cast("Mapping[str, Any]", row) for row in rows if isinstance(row, Mapping)]

    def thread(self, thread_id: str) -> Mapping[str, Any] | None:
        """The thread of an id."""
        return next((row for row in self.rows("threads") if row.get("id") == thread_id), None)

    def contract(self, address: str | None, contract_id: str | None, chain: str) -> Mapping[str, Any] | None:
        """The contract of an address, in any case, or of an id; of an address on several chains the one on `chain`, or the first."""
        rows = [
            row
            for row in self.rows("contracts")
            if (contract_id is not None and row.get("id") == contract_id)
            or (address is not None and str(row.get("address")).lower() == address.lower())
        ]
        on_chain = [row for row in rows if row.get("chain") == chain]
        return next(iter(on_chain or rows), None)

    def with_result(self, content: Mapping[str, Any]) -> Self:
        """The world with one more result for the model, cut if it is too long; of too many the oldest are dropped."""
        item = InboxItem(self.next_number, bounded_results([content])[0])
        return replace(self, inbox=(*self.inbox, item)[-MOST_INBOX:], next_number=self.next_number + 1)

    def without_seen(self, last_number: int) -> Self:
        """The world without the results up to a number, which the model has seen."""
        return replace(self, inbox=tuple(item for item in self.inbox if item.number > last_number))

    def with_transaction(self, at: Instant, spend_wei: Decimal, approval_key: str) -> Self:
        """The world with one more transaction counted. An approval is good for one transaction."""
        approved = tuple(key for key in self.approved if key != approval_key)
        return replace(self, approved=approved, use=self.use.on(at).plus(transactions=1, spend_wei=spend_wei))

    def with_post(self, digest: str, thread_at: Instant | None) -> Self:
        """The world after a post; `thread_at` is the tick of a new thread."""
        ticks = self.thread_ticks if thread_at is None else (*self.thread_ticks, thread_at)[-MOST_OWN_POSTS:]
        return replace(self, own_posts=(*self.own_posts, digest)[-MOST_OWN_POSTS:], thread_ticks=ticks)

    def with_executed(self, key: str) -> Self:
        """The world with one more key of an executed action."""
        return replace(self, executed=(*self.executed, key)[-MOST_EXECUTED:])


def post_digest(thread_id: str, title: str, body: str) -> str:
    """A digest of a post that ignores case, spacing and punctuation at the ends of words."""
    words = " ".join(f"{title} {body}".casefold().split())
    plain = " ".join(word.strip(".,;:!?*_`'\"()[]") for word in words.split(" "))
    return hashlib.sha256(f"{thread_id}\n{plain}".encode("utf-8", "replace")).hexdigest()
