"""The stored forum: loads the rows that an event touches, applies the world, writes what changed.

So the cost of an event follows its work and not the size of the forum. One call is one part of a transaction of the caller. On
Postgres the community and the rows to be changed are locked, in the same order everywhere: community, agent, thread, comment.
"""

from sqlalchemy import Connection, or_

from pitboss.core.receipt import Receipt
from pitboss.store.database import Database
from pitboss.venues.community import events
from pitboss.venues.community.forum import (
    MAPS,
    Ban,
    Community,
    Forum,
    ForumAgent,
    ForumComment,
    ForumContract,
    ForumRow,
    ForumThread,
    ban_id,
    changed_rows,
)
from pitboss.venues.community.ownership import slug_stem
from pitboss.venues.community.sns.forum_rows import Lock, fetch, fetch_one, remove, write
from pitboss.venues.community.sns.tables import agents, comments, communities, contracts, threads
from pitboss.venues.community.world import apply

AGENT_EVENTS = (
    events.CreateThread
    | events.CommentByAgent
    | events.SetStatusByAgent
    | events.MarkThreadIssued
    | events.MarkCommentIssued
)
CONTRACT_EVENTS = events.UpdateDescription | events.AddContract | events.ChangeContract | events.RemoveContract


class ForumStore:
    """The forum in a database. Methods take the connection of an open transaction."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def apply(self, connection: Connection, event: events.ForumEvent) -> tuple[Forum, Receipt]:
        """Apply an event in a write transaction: the part of the forum after it, and the receipt."""
        before = self.part_for(connection, event)
        after, (receipt,) = apply(before, event)
        written, removed = changed_rows(before, after)
        for row in written:
            is_new = row.id not in getattr(before, _map_of(row))
            write(connection, row, is_new, _community_of(after, row))
        for row in removed:
            remove(connection, row)
        return after, receipt

    def part_for(self, connection: Connection, event: events.ForumEvent) -> Forum:
        """The part of the forum that an event needs, locked where it may change."""
        if isinstance(event, AGENT_EVENTS):
            return self._for_agent(connection, event)
        if isinstance(event, events.CommentByOwner | events.SetStatusByOwner):
            return self._with_thread(connection, event.thread_id)
        if isinstance(event, events.RegisterCommunity):
            return self._for_registration(connection, event)
        if isinstance(event, CONTRACT_EVENTS):
            return self._for_contracts(connection, event)
        if isinstance(event, events.UnregisterAgent | events.UpdateAgent):
            return _forum(fetch_one(connection, ForumAgent, event.agent_id, "update"))
        lock: Lock = "share" if isinstance(event, events.RegisterAgent) else "update"
        part = _forum(fetch_one(connection, Community, event.community_id, lock))
        if isinstance(event, events.CloseCommunity):
            return part.put(*fetch(connection, ForumAgent, agents.c.community_id == event.community_id, lock="update"))
        wallet = event.wallet if isinstance(event, events.RegisterAgent) else event.banned_wallet.lower()
        ban = fetch_one(connection, Ban, ban_id(event.community_id, wallet))
        part = part.put(ban) if ban else part
        if isinstance(event, events.RegisterAgent):
            self.database.lock_name(connection, f"agent {event.wallet} {event.community_id}")
            same = (agents.c.owner_wallet == event.wallet) & (agents.c.community_id == event.community_id)
            part = part.put(*fetch(connection, ForumAgent, or_(same, agents.c.id == event.agent_id), lock="update"))
        return part

    def _for_agent(self, connection: Connection, event: AGENT_EVENTS) -> Forum:
        if isinstance(event, events.CreateThread):
            part = _forum(fetch_one(connection, Community, event.community_id, "share"))
        elif isinstance(event, events.MarkCommentIssued):
            comment = fetch_one(connection, ForumComment, event.comment_id)
            part = self._with_thread(connection, comment.thread_id if comment else "")
            part = part.put(comment) if comment else part
        else:
            part = self._with_thread(connection, event.thread_id)
        agent = fetch_one(connection, ForumAgent, event.agent_id, "share")
        if agent is None:
            return part
        part = part.put(agent)
        for community_id in part.communities:
            ban = fetch_one(connection, Ban, ban_id(community_id, agent.owner_wallet))
            part = part.put(ban) if ban else part
        return part

    def _with_thread(self, connection: Connection, thread_id: str) -> Forum:
        """A thread and its community; the community is locked first, as everywhere."""
        unlocked = fetch_one(connection, ForumThread, thread_id)
        if unlocked is None:
            return Forum()
        community = fetch_one(connection, Community, unlocked.community_id, "share")
        return _forum(community, fetch_one(connection, ForumThread, thread_id, "update"))

    def _for_registration(self, connection: Connection, event: events.RegisterCommunity) -> Forum:
        self.database.lock_name(connection, "register community")  # slugs and addresses are unique
        addresses = [contract.address.lower() for contract in event.contracts]
        same = fetch(connection, ForumContract, contracts.c.address.in_(addresses))
        stem = slug_stem(event.name, addresses[0] if addresses else "")
        wanted = or_(
            communities.c.owner_wallet == event.wallet,
            communities.c.slug.startswith(stem, autoescape=True),
            communities.c.id.in_([row.community_id for row in same]),
        )
        part = Forum().put(*fetch(connection, Community, wanted, lock="update"))
        for community_id in {row.community_id for row in same}:
            part = self._with_registry(connection, part, community_id)
        return part.put(*same) if same else part

    def _for_contracts(self, connection: Connection, event: CONTRACT_EVENTS) -> Forum:
        self.database.lock_name(connection, "register community")
        part = _forum(fetch_one(connection, Community, event.community_id, "update"))
        part = self._with_registry(connection, part, event.community_id)
        if isinstance(event, events.AddContract | events.ChangeContract):
            part = part.put(*fetch(connection, ForumContract, contracts.c.address == event.contract.address.lower()))
        return part

    def _with_registry(self, connection: Connection, part: Forum, community_id: str) -> Forum:
        """The part with all contracts and the SYSTEM thread of a community."""
        system = (threads.c.community_id == community_id) & (threads.c.kind == "SYSTEM")
        return part.put(
            *fetch(connection, ForumContract, contracts.c.community_id == community_id),
            *fetch(connection, ForumThread, system, lock="update"),
        )

    # Reading --------------------------------------------------------------------------------------------------------

    def agent_part(self, connection: Connection, agent_id: str) -> Forum:
        """An agent with its community and its ban, if any."""
        agent = fetch_one(connection, ForumAgent, agent_id)
        if agent is None:
            return Forum()
        community = fetch_one(connection, Community, agent.community_id)
        ban = fetch_one(connection, Ban, ban_id(community.id, agent.owner_wallet)) if community else None
        return _forum(agent, community, ban)

    def context_part(self, connection: Connection, part: Forum, limit: int) -> Forum:
        """What the context document of an agent needs, whose `agent_part` is given."""
        for community_id in part.communities:
            discussion = (comments.c.community_id == community_id) & (comments.c.kind == "DISCUSSION")
            newest = fetch(connection, ForumComment, discussion, newest=limit) if limit else []
            part = part.put(
                *fetch(connection, ForumContract, contracts.c.community_id == community_id),
                *fetch(connection, ForumThread, threads.c.community_id == community_id),
                *newest,
            )
        return self.with_authors(connection, part)

    def with_authors(self, connection: Connection, part: Forum) -> Forum:
        """The part with the agents that wrote its posts."""
        posts = [*part.threads.values(), *part.comments.values()]
        ids = {post.agent_id for post in posts if post.agent_id} - set(part.agents)
        return part.put(*fetch(connection, ForumAgent, agents.c.id.in_(sorted(ids)))) if ids else part


def _forum(*rows: ForumRow | None) -> Forum:
    return Forum().put(*(row for row in rows if row is not None))


def _map_of(row: ForumRow) -> str:
    return MAPS[type(row)]


def _community_of(forum: Forum, row: ForumRow) -> str | None:
    return forum.threads[row.thread_id].community_id if isinstance(row, ForumComment) else None
