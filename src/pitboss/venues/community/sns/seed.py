"""Fills an empty forum for trials, from a scenario: an owner, a community with contracts, agents, threads, and a runner token.

Everything passes the same world as on a server; only the login is left out. Ids are new; posts are made now, in order of time.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, func, select

from pitboss.core.errors import UserError
from pitboss.core.instant import parse_duration
from pitboss.venues.community import events
from pitboss.venues.community.forum import Forum
from pitboss.venues.community.scenario import Scenario
from pitboss.venues.community.sns.sns_server import SnsServer
from pitboss.venues.community.sns.tables import communities


def seed_forum(server: SnsServer, random_hex: Callable[[int], str], scenario: Scenario) -> dict[str, Any]:
    """Fill an empty database; refuses one that is not empty. Returns what a trial needs to know."""
    owner = _wallet(random_hex(32))
    handles = [scenario.agent, *sorted({post.author for post in scenario.posts} - {scenario.agent})]
    wallets = {handle: _wallet(random_hex(32))["wallet"] for handle in handles}
    with server.database.write() as connection:
        if connection.execute(select(func.count()).select_from(communities)).scalar_one():
            raise UserError("this database is not empty", "name another with --db, or another --home")
        community_id, agent_ids = server.new_id(), {handle: server.new_id() for handle in handles}
        contracts = tuple(
            events.NewContract(server.new_id(), one.name, one.address, one.chain, list(one.abi), one.source)
            for one in scenario.contracts
        )
        at = server.now()
        first = _apply(
            server,
            connection,
            events.RegisterCommunity(
                at,
                owner["wallet"],
                community_id,
                scenario.community,
                contracts,
                server.new_id(),
                server.new_id(),
                scenario.description,
            ),
        )
        for handle in handles:
            joining = events.RegisterAgent(at, wallets[handle], agent_ids[handle], community_id, handle)
            _apply(server, connection, joining)
        threads = [{"id": row.id, "type": row.kind} for row in first.threads.values()]
        threads += _post(server, connection, scenario, community_id, agent_ids, at)
        token = server.credentials.issue(connection, agent_ids[scenario.agent], at)
    return {
        "owner": owner,
        "community": {"id": community_id, "slug": first.communities[community_id].slug},
        "agent": {"id": agent_ids[scenario.agent], "wallet": wallets[scenario.agent]},
        "runner_token": token,
        "contracts": [{"id": one.id, "address": one.address.lower(), "chain": one.chain} for one in contracts],
        "threads": threads,
    }


def _post(
    server: SnsServer,
    connection: Connection,
    scenario: Scenario,
    community_id: str,
    agent_ids: dict[str, str],
    at: int,
) -> list[dict[str, str]]:
    """Make the posts of a scenario, a millisecond apart; returns its threads."""
    threads: dict[str, dict[str, str]] = {}
    for number, post in enumerate(sorted(scenario.posts, key=lambda post: parse_duration(post.at)), 1):
        author = agent_ids[post.author]
        if post.thread is None:
            event = events.CreateThread(
                at + number, author, server.new_id(), community_id, post.title or "", post.body, post.type
            )
            threads[post.id] = {"id": event.thread_id, "type": event.kind}
        elif post.thread not in threads:
            raise UserError(f"post {post.id} comes before its thread", "correct its time and seed again")
        else:
            thread_id = threads[post.thread]["id"]
            event = events.CommentByAgent(at + number, author, server.new_id(), thread_id, post.body)
        _apply(server, connection, event)
    return list(threads.values())


def _apply(server: SnsServer, connection: Connection, event: events.ForumEvent) -> Forum:
    after, receipt = server.forum.apply(connection, event)
    if receipt.kind == "rejected":
        raise UserError(f"the scenario does not fit: {receipt.facts['text']}", "correct it and seed again")
    return after


def _wallet(secret: str) -> dict[str, str]:
    """The wallet of a private key."""
    from eth_account import Account

    return {"wallet": str(Account.from_key(secret).address).lower(), "private_key": f"0x{secret}"}
