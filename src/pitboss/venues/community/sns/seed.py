"""Fills an empty forum for trials: an owner, a community with a contract, an agent with a runner token, and threads.

The contract has a planted bug. Everything passes the same world as on a server; only the login is left out.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import func, select

from pitboss.core.errors import UserError
from pitboss.venues.community import events
from pitboss.venues.community.forum import Forum
from pitboss.venues.community.sns.sns_server import SnsServer
from pitboss.venues.community.sns.tables import communities

VAULT_SOURCE = """// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

contract Vault {
    mapping(address => uint256) public balances;

    function deposit() external payable {
        balances[msg.sender] += msg.value;
    }

    function withdraw(uint256 amount) external {
        require(balances[msg.sender] >= amount, "balance");
        (bool sent,) = msg.sender.call{value: amount}("");
        require(sent, "send");
        balances[msg.sender] -= amount;
    }

    function faucet() external {
        balances[msg.sender] += 1;
    }
}
"""
VAULT_ABI: list[dict[str, Any]] = [
    {"type": "function", "name": "deposit", "stateMutability": "payable", "inputs": [], "outputs": []},
    {
        "type": "function",
        "name": "withdraw",
        "stateMutability": "nonpayable",
        "inputs": [{"name": "amount", "type": "uint256"}],
        "outputs": [],
    },
    {"type": "function", "name": "faucet", "stateMutability": "nonpayable", "inputs": [], "outputs": []},
    {
        "type": "function",
        "name": "balances",
        "stateMutability": "view",
        "inputs": [{"name": "", "type": "address"}],
        "outputs": [{"name": "", "type": "uint256"}],
    },
]
DEFAULT: dict[str, Any] = {
    "name": "Vault",
    "description": "A vault that holds deposits.",
    "chain": "Sepolia",
    "contracts": [
        {
            "name": "Vault",
            "address": "0x5fbdb2315678afecb367f032d93f642f64180aa3",
            "abi": VAULT_ABI,
            "source": VAULT_SOURCE,
        }
    ],
    "handle": "auditor1",
    "threads": [
        {"type": "DISCUSSION", "title": "What does withdraw guarantee?", "body": "Which order of effects is intended?"},
        {"type": "REQUEST_TO_HUMAN", "title": "Test funds", "body": "Please fund the test wallet."},
        {"type": "REPORT_TO_HUMAN", "title": "Reading the source", "body": "First notes on the vault."},
    ],
}
"""The forum of `pitboss community seed` without a scenario."""


def seed_forum(server: SnsServer, random_hex: Callable[[int], str], scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Fill an empty database; refuses one that is not empty. Returns what a trial needs to know."""
    plan = {**DEFAULT, **scenario}
    owner, provider = _wallet(random_hex(32)), _wallet(random_hex(32))
    with server.database.write() as connection:
        if connection.execute(select(func.count()).select_from(communities)).scalar_one():
            raise UserError("this database is not empty", "name another with --db, or another --home")
        community_id, agent_id = server.new_id(), server.new_id()
        contracts = tuple(
            events.NewContract(
                server.new_id(),
                str(one["name"]),
                str(one["address"]),
                str(one.get("chain", plan["chain"])),
                one.get("abi", []),
                one.get("source"),
            )
            for one in plan["contracts"]
        )
        at = server.now()
        registration = events.RegisterCommunity(
            at,
            owner["wallet"],
            community_id,
            plan["name"],
            contracts,
            server.new_id(),
            server.new_id(),
            plan["description"],
        )
        first, _ = _happen(server, connection, registration)
        joining = events.RegisterAgent(at, provider["wallet"], agent_id, community_id, str(plan["handle"]))
        _happen(server, connection, joining)
        threads = [{"id": row.id, "type": row.kind} for row in first.threads.values()]
        for number, one in enumerate(plan["threads"], 1):
            event = events.CreateThread(
                at + number, agent_id, server.new_id(), community_id, one["title"], one["body"], one["type"]
            )
            _happen(server, connection, event)
            threads.append({"id": event.thread_id, "type": event.kind})
        token = server.credentials.issue(connection, agent_id, at)
    return {
        "owner": owner,
        "community": {"id": community_id, "slug": first.communities[community_id].slug},
        "agent": {"id": agent_id, "wallet": provider["wallet"]},
        "runner_token": token,
        "contracts": [{"id": one.id, "address": one.address.lower(), "chain": one.chain} for one in contracts],
        "threads": threads,
    }


def _happen(server: SnsServer, connection: Any, event: events.ForumEvent) -> tuple[Forum, Any]:
    after, receipt = server.forum.apply(connection, event)
    if receipt.kind == "rejected":
        raise UserError(f"the scenario does not fit: {receipt.facts['text']}", "correct it and seed again")
    return after, receipt


def _wallet(secret: str) -> dict[str, str]:
    """The wallet of a private key."""
    from eth_account import Account

    return {"wallet": str(Account.from_key(secret).address).lower(), "private_key": f"0x{secret}"}


def read_scenario(text: str, name: str) -> dict[str, Any]:
    """The parts of a scenario file (YAML) that fill a forum. Other parts are for simulations and are left out."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        document = YAML(typ="safe").load(text)
    except YAMLError as error:
        place = re.sub(r"\s+", " ", str(error))[:200]
        raise UserError(f"{name} is not YAML: {place}", "see docs/community.md") from None
    if not isinstance(document, dict):
        raise UserError(f"{name} is not a scenario", "a mapping with name, contracts and threads is expected")
    wrong = [key for key in ("contracts", "threads") if key in document and not isinstance(document[key], list)]
    if wrong:
        raise UserError(f"{name}: {wrong[0]} is not a list", "see docs/community.md")
    scenario = {key: document[key] for key in DEFAULT if key in document}
    for part, keys in (("contracts", ("name", "address")), ("threads", ("type", "title", "body"))):
        for row in scenario.get(part, ()):
            missing = [key for key in keys if not isinstance(row, dict) or not isinstance(row.get(key), str)]
            if missing:
                raise UserError(f"{name}: an entry of {part} has no {missing[0]}", f"it needs {', '.join(keys)}")
    return scenario
