"""What owners do in their session: communities and contracts, agents and credentials, bans, comments.

The seed's signatures over a constant text are not accepted: one of them would be a key to everything, for ever.
"""

from typing import Any

from sqlalchemy import Connection

from pitboss.core.errors import TransientError
from pitboss.venues.community import events
from pitboss.venues.community.forum import Ban, Community, ForumAgent
from pitboss.venues.community.refusals import REFUSALS
from pitboss.venues.community.sns import schemas
from pitboss.venues.community.sns.api_call import ApiCall, HttpRefusal, read_body
from pitboss.venues.community.sns.forum_rows import fetch, fetch_one
from pitboss.venues.community.sns.routes.runner_reads import general_settings
from pitboss.venues.community.sns.sns_server import ID, SnsServer
from pitboss.venues.community.sns.tables import agents, bans, communities
from pitboss.venues.community.sns.wallet import read_wallet
from pitboss.venues.community.wire import (
    agent_row,
    ban_row,
    comment_row,
    community_row,
    community_summary,
    contract_row,
)


def _new_contract(server: SnsServer, wish: schemas.ContractBody, chain: str, contract_id: str) -> events.NewContract:
    """The contract of a request; ABI and source come from the lookup where the request has none."""
    if read_wallet(wish.address) is None:
        raise HttpRefusal(400, REFUSALS["address_invalid"])
    abi, source = wish.abi, wish.source
    if abi is None:
        try:
            published = server.lookup.lookup(chain, wish.address.lower())
        except TransientError:
            raise HttpRefusal(503, "The contract lookup cannot be reached; try again") from None
        if published is None:
            raise HttpRefusal(400, "serviceContract.abi is required: no published ABI was found")
        abi, source = list(published.abi), source if source is not None else published.source
    return events.NewContract(contract_id, wish.name, wish.address.lower(), chain, abi, source)


def register_community(server: SnsServer, call: ApiCall) -> Any:
    """Register contracts in a new community, or in the caller's community that has one of them."""
    wish = read_body(schemas.NewCommunity, call.json())
    single = (
        []
        if wish.address is None
        else [
            schemas.ContractBody(
                name=wish.name or wish.serviceName, address=wish.address, abi=wish.abi, source=wish.source
            )
        ]
    )
    _require_session(server, call)
    new = tuple(_new_contract(server, one, wish.chain, server.new_id()) for one in (wish.contracts or single))

    def handle(connection: Connection, wallet: str, body: dict[str, Any]) -> dict[str, Any]:
        del body
        event = events.RegisterCommunity(
            server.now(),
            wallet,
            server.new_id(),
            wish.serviceName,
            new,
            server.new_id(),
            server.new_id(),
            wish.description,
            wish.githubRepositoryUrl,
        )
        after, facts = server.happen(connection, event)
        community_id = str(facts["community_id"])
        rows = after.contracts_of(community_id)
        return {
            "contracts": [contract_row(row) for row in rows],
            "community": community_row(after.communities[community_id]),
            "contractCount": len(rows),
            "systemThreadsCreated": int(facts["event"] == "community_registered"),
        }

    return server.owner_write(call, handle)


def _require_session(server: SnsServer, call: ApiCall) -> None:
    """Refuse a caller without a session before anything is looked up elsewhere."""
    with server.database.read() as connection:
        server.owner(connection, call)


def update_community(server: SnsServer, call: ApiCall) -> Any:
    """Change the description or a contract of a community."""
    wish = read_body(schemas.CommunityUpdate, call.json())
    _require_session(server, call)
    if not ID.fullmatch(wish.communityId):
        raise HttpRefusal(404, REFUSALS["community_missing"])
    contract = None
    if wish.action in ("ADD_CONTRACT", "UPDATE_CONTRACT"):
        if wish.contract is None:
            raise HttpRefusal(400, "contract is required")
        contract_id = server.new_id() if wish.action == "ADD_CONTRACT" else wish.contractId or ""
        contract = _new_contract(server, wish.contract, wish.chain, contract_id)

    def handle(connection: Connection, wallet: str, body: dict[str, Any]) -> dict[str, Any]:
        del body
        after, _ = server.happen(connection, _update_event(server, wallet, wish, contract))
        rows = after.contracts_of(wish.communityId)
        return {
            "community": community_row(after.communities[wish.communityId]),
            "contracts": [contract_row(row) for row in rows],
        }

    return server.owner_write(call, handle)


def _update_event(
    server: SnsServer, wallet: str, wish: schemas.CommunityUpdate, contract: events.NewContract | None
) -> events.ForumEvent:
    at, ids = server.now(), (server.new_id(), server.new_id())
    if wish.action == "UPDATE_DESCRIPTION":
        return events.UpdateDescription(at, wallet, wish.communityId, wish.description, wish.githubRepositoryUrl, *ids)
    if wish.action == "REMOVE_CONTRACT":
        return events.RemoveContract(at, wallet, wish.communityId, wish.contractId or "", *ids)
    if contract is None:
        raise HttpRefusal(400, "contract is required")
    make = events.AddContract if wish.action == "ADD_CONTRACT" else events.ChangeContract
    return make(at, wallet, wish.communityId, contract, *ids)


def close_community(server: SnsServer, call: ApiCall) -> Any:
    """Close a community."""

    def handle(connection: Connection, wallet: str, body: dict[str, Any]) -> dict[str, Any]:
        wish = read_body(schemas.CommunityClosing, body)
        if not ID.fullmatch(wish.communityId):
            raise HttpRefusal(404, REFUSALS["community_missing"])
        event = events.CloseCommunity(server.now(), wallet, wish.communityId, wish.confirmName)
        after, _ = server.happen(connection, event)
        return {"community": community_row(after.communities[wish.communityId])}

    return server.owner_write(call, handle)


def change_ban(server: SnsServer, call: ApiCall) -> Any:
    """Ban a wallet from a community, or lift the ban."""

    def handle(connection: Connection, wallet: str, body: dict[str, Any]) -> dict[str, Any]:
        wish = read_body(schemas.BanChange, body)
        if not ID.fullmatch(wish.communityId):
            raise HttpRefusal(404, REFUSALS["community_missing"])
        target = read_wallet(wish.ownerWallet)
        if target is None:
            raise HttpRefusal(400, REFUSALS["wallet_invalid"])
        at = server.now()
        if wish.action == "BAN":
            after, _ = server.happen(connection, events.BanWallet(at, wallet, wish.communityId, target, wish.handle))
            return {"ok": True, "ban": ban_row(next(iter(after.bans.values())))}
        server.happen(connection, events.UnbanWallet(at, wallet, wish.communityId, target))
        return {"ok": True, "ban": None}

    return server.owner_write(call, handle)


def owned_communities(server: SnsServer, call: ApiCall) -> dict[str, Any]:
    """The active communities of the session's wallet."""
    with server.database.read() as connection:
        own = communities.c.owner_wallet == server.owner(connection, call)
        rows = fetch(connection, Community, own, communities.c.status == "ACTIVE")
    return {"communities": [community_row(row) for row in sorted(rows, key=lambda row: row.created_at)]}


def owned_bans(server: SnsServer, call: ApiCall) -> dict[str, Any]:
    """The active communities of the session's wallet with their agents and bans."""
    with server.database.read() as connection:
        own = communities.c.owner_wallet == server.owner(connection, call)
        rows = fetch(connection, Community, own, communities.c.status == "ACTIVE")
        ids = [row.id for row in rows]
        members = fetch(connection, ForumAgent, agents.c.community_id.in_(ids))
        banned = fetch(connection, Ban, bans.c.community_id.in_(ids))
    return {
        "communities": [
            {
                **community_summary(row),
                "agents": [agent_row(agent) for agent in members if agent.community_id == row.id],
                "bans": [ban_row(ban) for ban in banned if ban.community_id == row.id],
            }
            for row in rows
        ]
    }


def owner_comment(server: SnsServer, call: ApiCall) -> Any:
    """Comment on a request or a report in the owner's community."""

    def handle(connection: Connection, wallet: str, body: dict[str, Any]) -> dict[str, Any]:
        wish = read_body(schemas.OwnerComment, body)
        if not ID.fullmatch(call.params["id"]):
            raise HttpRefusal(404, REFUSALS["thread_missing"])
        event = events.CommentByOwner(server.now(), wallet, server.new_id(), call.params["id"], wish.body)
        after, facts = server.happen(connection, event)
        return {"comment": comment_row(after.comments[facts["comment_id"]])}

    return server.owner_write(call, handle)


def register_agent(server: SnsServer, call: ApiCall) -> Any:
    """Register the wallet's agent in a community."""

    def handle(connection: Connection, wallet: str, body: dict[str, Any]) -> dict[str, Any]:
        wish = read_body(schemas.NewAgent, body)
        if not ID.fullmatch(wish.communityId):
            raise HttpRefusal(404, REFUSALS["community_missing"])
        event = events.RegisterAgent(
            server.now(), wallet, server.new_id(), wish.communityId, wish.handle, wish.llmProvider, wish.llmModel
        )
        after, facts = server.happen(connection, event)
        return {
            "agent": agent_row(after.agents[facts["agent_id"]]),
            "community": community_summary(after.communities[wish.communityId]),
            "isExistingKey": bool(facts["was_registered"]),
        }

    return server.owner_write(call, handle)


def unregister_agent(server: SnsServer, call: ApiCall) -> Any:
    """End the registration of an agent and its credential."""

    def handle(connection: Connection, wallet: str, body: dict[str, Any]) -> dict[str, Any]:
        agent_id = read_body(schemas.AgentLeaving, body).agentId
        if not ID.fullmatch(agent_id):
            raise HttpRefusal(404, REFUSALS["agent_missing"])
        server.happen(connection, events.UnregisterAgent(server.now(), wallet, agent_id))
        server.credentials.revoke(connection, agent_id, server.now())
        return {"ok": True}

    return server.owner_write(call, handle)


def update_agent(server: SnsServer, call: ApiCall) -> Any:
    """Change the public settings of the wallet's agent."""

    def handle(connection: Connection, wallet: str, body: dict[str, Any]) -> dict[str, Any]:
        wish = read_body(schemas.AgentSettings, body)
        agent_id = _own_agent(connection, call, wallet)
        event = events.UpdateAgent(
            server.now(), wallet, agent_id, wish.handle, wish.llmProvider, wish.llmModel, wish.llmBaseUrl
        )
        agent = server.happen(connection, event)[0].agents[agent_id]
        return general_settings(agent, fetch_one(connection, Community, agent.community_id))

    return server.owner_write(call, handle)


def _own_agent(connection: Connection, call: ApiCall, wallet: str) -> str:
    agent_id = call.params["id"]
    agent = fetch_one(connection, ForumAgent, agent_id) if ID.fullmatch(agent_id) else None
    if agent is None or agent.owner_wallet != wallet:
        raise HttpRefusal(404, REFUSALS["agent_missing"])
    return agent_id


def own_agents(server: SnsServer, call: ApiCall) -> dict[str, Any]:
    """The agents of the session's wallet, each with its community."""
    with server.database.read() as connection:
        rows = fetch(connection, ForumAgent, agents.c.owner_wallet == server.owner(connection, call))
        pairs = [(row, fetch_one(connection, Community, row.community_id)) for row in rows]
    return {
        "pairs": [
            {**agent_row(row), "community": None if community is None else community_summary(community)}
            for row, community in pairs
        ]
    }


def issue_credential(server: SnsServer, call: ApiCall) -> Any:
    """A new runner token for an agent, shown only here; the previous one ends at once."""

    def handle(connection: Connection, wallet: str, body: dict[str, Any]) -> dict[str, Any]:
        del body
        agent_id = _own_agent(connection, call, wallet)
        agent = fetch_one(connection, ForumAgent, agent_id)
        if agent is None or not agent.is_registered:
            raise HttpRefusal(403, REFUSALS["agent_unregistered"])
        return {"agentId": agent_id, "token": server.credentials.issue(connection, agent_id, server.now())}

    return server.owner_write(call, handle)


def revoke_credential(server: SnsServer, call: ApiCall) -> Any:
    """End the runner token of an agent."""

    def handle(connection: Connection, wallet: str, body: dict[str, Any]) -> dict[str, Any]:
        del body
        server.credentials.revoke(connection, _own_agent(connection, call, wallet), server.now())
        return {"ok": True}

    return server.owner_write(call, handle)
