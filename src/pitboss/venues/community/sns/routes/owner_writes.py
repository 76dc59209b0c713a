"""What owners do in their session: communities and contracts, agents and credentials, bans, comments.

The seed's signatures over a constant text are not accepted: one of them would be a key to everything, for ever.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from pitboss.core.errors import UserError
from pitboss.venues.community import events
from pitboss.venues.community.forum import Ban, Community, ForumAgent, ForumContract
from pitboss.venues.community.github_client import parse_repository
from pitboss.venues.community.refusals import REFUSALS
from pitboss.venues.community.sns import schemas
from pitboss.venues.community.sns.api_call import ApiCall, HttpRefusal, read_body
from pitboss.venues.community.sns.contract_lookup import REQUIRED
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


def _new_contracts(
    server: SnsServer, chain: str, requests: Sequence[schemas.ContractBody]
) -> tuple[events.NewContract, ...]:
    """The contracts of a request, with new ids; the explorer is asked for those without ABI. No transaction may be open."""
    for one in requests:
        read_wallet(one.address, REFUSALS["address_invalid"])
    missing = list(dict.fromkeys(one.address.lower() for one in requests if one.abi is None))
    if missing and server.lookup is None:
        raise HttpRefusal(400, REQUIRED)
    published = server.lookup.fetch(chain, missing) if missing and server.lookup is not None else {}
    contracts: list[events.NewContract] = []
    for one in requests:
        address, abi, source = one.address.lower(), one.abi, one.source
        if abi is None:
            abi = list(published[address].abi)
            source = published[address].source if source is None else source
        contracts.append(events.NewContract(server.new_id(), one.name, address, chain, abi, source))
    return tuple(contracts)


def register_community(server: SnsServer, call: ApiCall) -> Any:
    """Register contracts in a new community, or in the caller's community that has one of them."""
    server.require_owner(call)
    request = read_body(schemas.NewCommunity, call.json())
    single = (
        []
        if request.address is None
        else [
            schemas.ContractBody(
                name=request.name or request.serviceName,
                address=request.address,
                abi=request.abi,
                source=request.source,
            )
        ]
    )
    repository_url = _repository_url(server, request.githubRepositoryUrl)
    contracts = _new_contracts(server, request.chain, request.contracts or single)

    def handle(connection: Connection, wallet: str, body: dict[str, Any]) -> dict[str, Any]:
        del body
        event = events.RegisterCommunity(
            server.now(),
            wallet,
            server.new_id(),
            request.serviceName,
            contracts,
            server.new_id(),
            server.new_id(),
            request.description,
            repository_url,
        )
        after, facts = server.apply(connection, event)
        community_id = str(facts["community_id"])
        rows = after.contracts_of(community_id)
        return {
            "contracts": [contract_row(row) for row in rows],
            "community": community_row(after.communities[community_id]),
            "contractCount": len(rows),
            "systemThreadsCreated": int(facts["event"] == "community_registered"),
        }

    return server.owner_write(call, handle)


def update_community(server: SnsServer, call: ApiCall) -> Any:
    """Change the description or a contract of a community."""
    server.require_owner(call)
    request = read_body(schemas.CommunityUpdate, call.json())
    if not ID.fullmatch(request.communityId):
        raise HttpRefusal(404, REFUSALS["community_missing"])
    repository_url = _repository_url(server, request.githubRepositoryUrl)
    contract = None
    if request.action in ("ADD_CONTRACT", "UPDATE_CONTRACT"):
        if request.contract is None:
            raise HttpRefusal(400, "contract is required")
        (contract,) = _new_contracts(server, _chain_of(server, request), [request.contract])

    def handle(connection: Connection, wallet: str, body: dict[str, Any]) -> dict[str, Any]:
        del body
        after, _ = server.apply(connection, _update_event(server, wallet, request, repository_url, contract))
        rows = after.contracts_of(request.communityId)
        return {
            "community": community_row(after.communities[request.communityId]),
            "contracts": [contract_row(row) for row in rows],
        }

    return server.owner_write(call, handle)


def _chain_of(server: SnsServer, request: schemas.CommunityUpdate) -> str:
    """The chain of the contract of a request; one that is changed stays on its chain unless another is sent."""
    contract_id = request.contractId or ""
    if request.action != "UPDATE_CONTRACT" or "chain" in request.model_fields_set or not ID.fullmatch(contract_id):
        return request.chain
    with server.database.read() as connection:
        before = fetch_one(connection, ForumContract, contract_id)
    return request.chain if before is None else before.chain


def _repository_url(server: SnsServer, url: str | None) -> str:
    """The address of a repository in its plain form, or an empty text. Raises `HttpRefusal` for any other address."""
    if not url:
        return ""
    try:
        repository = parse_repository(url.strip(), server.github_host)
    except UserError:
        example = f"https://{server.github_host}/owner/name"
        raise HttpRefusal(400, f"community.githubRepositoryUrl must be a repository such as {example}") from None
    return f"https://{server.github_host}/{repository.owner}/{repository.name}"


def _update_event(
    server: SnsServer,
    wallet: str,
    request: schemas.CommunityUpdate,
    repository_url: str,
    contract: events.NewContract | None,
) -> events.ForumEvent:
    at, community_id, ids = server.now(), request.communityId, (server.new_id(), server.new_id())
    if request.action == "UPDATE_DESCRIPTION":
        sent = request.model_fields_set
        description = request.description or "" if "description" in sent else None
        new_url = repository_url if "githubRepositoryUrl" in sent else None
        return events.UpdateDescription(at, wallet, community_id, description, new_url, *ids)
    if contract is None:
        return events.RemoveContract(at, wallet, community_id, request.contractId or "", *ids)
    if request.action == "ADD_CONTRACT":
        return events.AddContract(at, wallet, community_id, contract, *ids)
    changed = replace(contract, id=request.contractId or "")
    return events.ChangeContract(at, wallet, community_id, changed, *ids)


def close_community(server: SnsServer, call: ApiCall) -> Any:
    """Close a community."""

    def handle(connection: Connection, wallet: str, body: dict[str, Any]) -> dict[str, Any]:
        request = read_body(schemas.CommunityClosing, body)
        if not ID.fullmatch(request.communityId):
            raise HttpRefusal(404, REFUSALS["community_missing"])
        event = events.CloseCommunity(server.now(), wallet, request.communityId, request.confirmName)
        after, _ = server.apply(connection, event)
        return {"community": community_row(after.communities[request.communityId])}

    return server.owner_write(call, handle)


def change_ban(server: SnsServer, call: ApiCall) -> Any:
    """Ban a wallet from a community, or lift the ban."""

    def handle(connection: Connection, wallet: str, body: dict[str, Any]) -> dict[str, Any]:
        request = read_body(schemas.BanChange, body)
        if not ID.fullmatch(request.communityId):
            raise HttpRefusal(404, REFUSALS["community_missing"])
        target = read_wallet(request.ownerWallet, REFUSALS["wallet_invalid"])
        at = server.now()
        if request.action == "BAN":
            after, _ = server.apply(
                connection, events.BanWallet(at, wallet, request.communityId, target, request.handle)
            )
            return {"ok": True, "ban": ban_row(next(iter(after.bans.values())))}
        server.apply(connection, events.UnbanWallet(at, wallet, request.communityId, target))
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
        request = read_body(schemas.OwnerComment, body)
        if not ID.fullmatch(call.params["id"]):
            raise HttpRefusal(404, REFUSALS["thread_missing"])
        event = events.CommentByOwner(server.now(), wallet, server.new_id(), call.params["id"], request.body)
        after, facts = server.apply(connection, event)
        return {"comment": comment_row(after.comments[facts["comment_id"]])}

    return server.owner_write(call, handle)


def _require_other_name(handle: str) -> None:
    """Refuse the name that readers are shown as the author of what the server wrote (`wire.author_of`)."""
    if unicodedata.normalize("NFKC", handle).strip().casefold() == "system":
        raise HttpRefusal(400, "agent.handle is the name of the server")


def register_agent(server: SnsServer, call: ApiCall) -> Any:
    """Register the wallet's agent in a community."""

    def handle(connection: Connection, wallet: str, body: dict[str, Any]) -> dict[str, Any]:
        request = read_body(schemas.NewAgent, body)
        _require_other_name(request.handle)
        if not ID.fullmatch(request.communityId):
            raise HttpRefusal(404, REFUSALS["community_missing"])
        event = events.RegisterAgent(
            server.now(),
            wallet,
            server.new_id(),
            request.communityId,
            request.handle,
            request.llmProvider,
            request.llmModel,
        )
        after, facts = server.apply(connection, event)
        return {
            "agent": agent_row(after.agents[facts["agent_id"]]),
            "community": community_summary(after.communities[request.communityId]),
            "isExistingKey": bool(facts["was_registered"]),
        }

    return server.owner_write(call, handle)


def unregister_agent(server: SnsServer, call: ApiCall) -> Any:
    """End the registration of an agent and its credential."""

    def handle(connection: Connection, wallet: str, body: dict[str, Any]) -> dict[str, Any]:
        agent_id = read_body(schemas.AgentLeaving, body).agentId
        if not ID.fullmatch(agent_id):
            raise HttpRefusal(404, REFUSALS["agent_missing"])
        server.apply(connection, events.UnregisterAgent(server.now(), wallet, agent_id))
        server.credentials.revoke(connection, agent_id, server.now())
        return {"ok": True}

    return server.owner_write(call, handle)


def update_agent(server: SnsServer, call: ApiCall) -> Any:
    """Change the public settings of the wallet's agent."""

    def handle(connection: Connection, wallet: str, body: dict[str, Any]) -> dict[str, Any]:
        request = read_body(schemas.AgentSettings, body)
        _require_other_name(request.handle)
        agent_id = _own_agent(connection, call, wallet)
        event = events.UpdateAgent(
            server.now(), wallet, agent_id, request.handle, request.llmProvider, request.llmModel, request.llmBaseUrl
        )
        agent = server.apply(connection, event)[0].agents[agent_id]
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
        agent = fetch_one(connection, ForumAgent, agent_id, "update")  # one request for it after the other
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
