"""Communities and their contracts: what an owner's event changes, or why it is refused.

Called by `world.apply`. Pure. The forum must hold the owner's communities, the communities with a similar slug, the contracts
with the same addresses, and the contracts and the SYSTEM thread of the community in question.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from pitboss.core.instant import DAY_MS, Instant
from pitboss.venues.community import events
from pitboss.venues.community.chain_names import chain_key
from pitboss.venues.community.forum import Community, Forum, ForumContract
from pitboss.venues.community.posts import Change, owner_refusal
from pitboss.venues.community.refusals import ForumRefusal, refusal, refused_text, refused_value
from pitboss.venues.community.system_thread import with_system_thread

MOST_COMMUNITIES = 3
"""How many communities a wallet may own. Closed ones count until they are deleted."""
DELETE_AFTER_MS = 14 * DAY_MS
"""How long a closed community can still be read."""
ADDRESS = re.compile(r"0x[0-9a-f]{40}")

ContractKey: TypeAlias = tuple[str, int | str]
"""An address and the key of its chain: two contracts with one key are the same contract."""


def register_community(forum: Forum, event: events.RegisterCommunity) -> Change | ForumRefusal:
    """Register contracts in a new community, or in the owner's community that has one of their addresses already."""
    contracts = distinct(event.contracts)
    problem = _community_problem(event, contracts)
    if problem is not None:
        return problem
    keys = {contract_key(contract) for contract in contracts}
    registered = [row for row in forum.contracts.values() if contract_key(row) in keys]
    owners = {row.community_id: forum.communities.get(row.community_id) for row in registered}
    if any(community is None or community.owner_wallet != event.wallet for community in owners.values()):
        return refusal("contract_of_another_owner")
    if len(owners) > 1:
        return refusal("contracts_of_two_communities")
    if owners:
        (community_id,) = owners
        return _extend(forum, event, contracts, community_id, {contract_key(row) for row in registered})
    if sum(row.owner_wallet == event.wallet for row in forum.communities.values()) >= MOST_COMMUNITIES:
        return refusal("too_many_communities")
    if event.community_id in forum.communities or any(contract.id in forum.contracts for contract in contracts):
        return refusal("id_taken")
    community = Community(
        event.community_id,
        new_slug(event.name, contracts[0].address, {row.slug for row in forum.communities.values()}),
        event.name.strip(),
        event.wallet,
        event.at,
        description=event.description or None,
        github_repository_url=event.github_repository_url or None,
    )
    rows = [_contract(community.id, contract, event.at) for contract in contracts]
    after = with_system_thread(
        forum.put(community, *rows), community.id, event.at, event.system_thread_id, event.comment_id, "Registered"
    )
    return after, {"event": "community_registered", "community_id": community.id, "contracts": len(rows)}


def _community_problem(
    event: events.RegisterCommunity, contracts: tuple[events.NewContract, ...]
) -> ForumRefusal | None:
    problem = (
        refused_text("community.name", event.name)
        or refused_text("community.description", event.description, required=False)
        or refused_text("community.githubRepositoryUrl", event.github_repository_url, required=False)
    )
    if problem is None and not contracts:
        return refusal("contracts_missing")
    for contract in contracts:
        problem = problem or contract_refusal(contract)
    return problem


def _extend(
    forum: Forum,
    event: events.RegisterCommunity,
    contracts: tuple[events.NewContract, ...],
    community_id: str,
    registered: set[ContractKey],
) -> Change | ForumRefusal:
    fresh = [contract for contract in contracts if contract_key(contract) not in registered]
    if not fresh:
        return refusal("contracts_registered")
    if forum.communities[community_id].is_closed:
        return refusal("community_closed")
    if any(contract.id in forum.contracts for contract in fresh):
        return refusal("id_taken")
    rows = [_contract(community_id, contract, event.at) for contract in fresh]
    note = "Contracts added: " + ", ".join(row.name for row in rows)
    after = with_system_thread(forum.put(*rows), community_id, event.at, event.system_thread_id, event.comment_id, note)
    return after, {"event": "community_extended", "community_id": community_id, "contracts": len(rows)}


def contract_key(contract: events.NewContract | ForumContract) -> ContractKey:
    """What tells a contract from others, however its chain is spelt."""
    return contract.address.lower(), chain_key(contract.chain)


def distinct(contracts: Sequence[events.NewContract]) -> tuple[events.NewContract, ...]:
    """The contracts, each address of a chain once."""
    by_key: dict[ContractKey, events.NewContract] = {}
    for contract in contracts:
        by_key.setdefault(contract_key(contract), contract)
    return tuple(by_key.values())


def contract_refusal(contract: events.NewContract) -> ForumRefusal | None:
    """Why a contract cannot be registered; None if it can."""
    problem = (
        refused_text("serviceContract.name", contract.name)
        or refused_text("serviceContract.address", contract.address)
        or refused_text("serviceContract.chain", contract.chain)
    )
    if problem is not None:
        return problem
    if not ADDRESS.fullmatch(contract.address.lower()):
        return refusal("address_invalid")
    if not isinstance(contract.abi, list | tuple):
        return refusal("abi_invalid")
    return refused_value("serviceContract.abi", contract.abi) or refused_value(
        "serviceContract.source", contract.source
    )


def faucet_function(abi: Sequence[Any]) -> str | None:
    """The name of the function that is called faucet, in any case."""
    for entry in abi:
        if isinstance(entry, dict):
            name = cast("dict[str, object]", entry).get("name")
            if isinstance(name, str) and name.lower() == "faucet":
                return name
    return None


def _contract(community_id: str, contract: events.NewContract, at: Instant) -> ForumContract:
    return ForumContract(
        contract.id,
        community_id,
        contract.name.strip(),
        contract.address.lower(),
        contract.chain.strip(),
        contract.abi,
        created_at=at,
        changed_at=at,
        source=contract.source,
        faucet_function=faucet_function(contract.abi),
    )


def slug_stem(name: str, address: str) -> str:
    """The slug of a name and its first contract, before it is made unique."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60].strip("-")
    return f"{words or 'community'}-{address[:6].lower()}"


def new_slug(name: str, address: str, taken: set[str]) -> str:
    """A slug that is not taken: the stem, or the stem with -2, -3, …"""
    stem = slug_stem(name, address)
    slug, number = stem, 1
    while slug in taken:
        number += 1
        slug = f"{stem}-{number}"
    return slug


def update_description(forum: Forum, event: events.UpdateDescription) -> Change | ForumRefusal:
    """Change the description and the repository of a community."""
    problem = (
        refused_text("community.description", event.description, required=False)
        or refused_text("community.githubRepositoryUrl", event.github_repository_url, required=False)
        or owner_refusal(forum, event.wallet, event.community_id)
    )
    if problem is not None:
        return problem
    before = forum.communities[event.community_id]
    community = before
    if event.description is not None:
        community = replace(community, description=event.description or None)
    if event.github_repository_url is not None:
        community = replace(community, github_repository_url=event.github_repository_url or None)
    if community == before:
        return refusal("community_unchanged")
    return _noted(forum.put(community), event, "Description updated", "description_updated")


def add_contract(forum: Forum, event: events.AddContract) -> Change | ForumRefusal:
    """Add a contract to a community."""
    problem = contract_refusal(event.contract) or owner_refusal(forum, event.wallet, event.community_id)
    if problem is not None:
        return problem
    if _registered_elsewhere(forum, event.contract):
        return refusal("contract_registered")
    if event.contract.id in forum.contracts:
        return refusal("id_taken")
    row = _contract(event.community_id, event.contract, event.at)
    return _noted(forum.put(row), event, f"Contract added: {row.name} {row.address}", "contract_added")


def change_contract(forum: Forum, event: events.ChangeContract) -> Change | ForumRefusal:
    """Replace what is registered of a contract."""
    problem = contract_refusal(event.contract) or owner_refusal(forum, event.wallet, event.community_id)
    if problem is not None:
        return problem
    before = forum.contracts.get(event.contract.id)
    if before is None or before.community_id != event.community_id:
        return refusal("contract_missing")
    after = replace(_contract(event.community_id, event.contract, event.at), created_at=before.created_at)
    is_moved = (after.address, after.chain) != (before.address, before.chain)
    if is_moved and _registered_elsewhere(forum, event.contract):
        return refusal("contract_registered")
    if replace(after, changed_at=before.changed_at) == before:
        return refusal("contract_unchanged")
    return _noted(forum.put(after), event, f"Contract changed: {after.name} {after.address}", "contract_changed")


def _registered_elsewhere(forum: Forum, contract: events.NewContract) -> bool:
    return any(
        contract_key(row) == contract_key(contract) and row.id != contract.id for row in forum.contracts.values()
    )


def remove_contract(forum: Forum, event: events.RemoveContract) -> Change | ForumRefusal:
    """Remove a contract that is not the only one."""
    problem = owner_refusal(forum, event.wallet, event.community_id)
    if problem is not None:
        return problem
    contract = forum.contracts.get(event.contract_id)
    if contract is None or contract.community_id != event.community_id:
        return refusal("contract_missing")
    if len(forum.contracts_of(event.community_id)) == 1:
        return refusal("last_contract")
    note = f"Contract removed: {contract.name} {contract.address}"
    return _noted(forum.drop(contract), event, note, "contract_removed")


def _noted(
    forum: Forum,
    event: events.UpdateDescription | events.AddContract | events.ChangeContract | events.RemoveContract,
    note: str,
    name: str,
) -> Change:
    after = with_system_thread(forum, event.community_id, event.at, event.system_thread_id, event.comment_id, note)
    return after, {"event": name, "community_id": event.community_id}


def close_community(forum: Forum, event: events.CloseCommunity) -> Change | ForumRefusal:
    """Close a community; the registration of its agents ends where the forum holds them."""
    problem = refused_text("community.confirmName", event.confirm_name) or owner_refusal(
        forum, event.wallet, event.community_id
    )
    if problem is not None:
        return problem
    community = forum.communities[event.community_id]
    if _folded(event.confirm_name) != _folded(community.name):
        return refusal("name_mismatch")
    closed = replace(community, status="CLOSED", closed_at=event.at, delete_at=event.at + DELETE_AFTER_MS)
    agents = [
        replace(agent, is_registered=False)
        for agent in forum.agents.values()
        if agent.community_id == community.id and agent.is_registered
    ]
    return forum.put(closed, *agents), {"event": "community_closed", "community_id": community.id}


def _folded(name: str) -> str:
    return "".join(name.split()).casefold()
