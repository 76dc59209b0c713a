"""An approval is used up by a transaction that is signed, and by nothing before that."""

import asyncio
from typing import Any

from live_agent import EVERY_MS, client_of
from vault_chain import VaultAccount, skill

from pitboss.core.instant import DAY_MS
from pitboss.store.approval_requests import ApprovalRequests
from pitboss.store.database import Database
from pitboss.venues.community.skill import CommunitySkill

AT = 1_800_000_000_000 // DAY_MS * DAY_MS


async def propose_twice(
    account: VaultAccount, database: Database, limits: CommunitySkill, silent: str, value: int
) -> Any:
    """Have a large deposit approved and propose it twice; while the node is silent from a method on, and then not."""
    scene = account.stage
    approvals = ApprovalRequests(database, lambda: AT)
    async with client_of(scene.forum_server) as client:
        agent = await account.agent(client, database, approvals=approvals, skill=limits)
        large = scene.action("deposit", value=value)
        await agent.heartbeat(AT, large)
        (request,) = approvals.listing()
        approvals.decide(request.id, True)
        account.transport.silent_from = silent
        first = await agent.heartbeat(AT + EVERY_MS, large)
        states = [row.state for row in approvals.listing(every=True)]
        account.transport.silent_from = ""
        second = await agent.heartbeat(AT + 2 * EVERY_MS, large)
    verdicts = [record.body()["verdicts"][0] for record in (first, second)]
    return verdicts, states


def test_a_node_that_falls_silent_before_anything_is_signed_leaves_it_for_the_next_heartbeat(
    account: VaultAccount, database: Database
) -> None:
    limits = skill(approval_above_wei="5")
    (first, second), states = asyncio.run(propose_twice(account, database, limits, "eth_getBalance", 6))
    assert (first["code"], first["detail"].split(":")[0], states) == ("C18_VENUE", "unreachable", ["approved"])
    assert (second["outcome"], [int(row["value"], 16) for row in account.mined()]) == ("allowed", [6])


def test_a_transaction_that_needs_too_much_gas_leaves_it(account: VaultAccount, database: Database) -> None:
    limits = skill(approval_above_wei="5", gas=25_000)
    (first, second), states = asyncio.run(propose_twice(account, database, limits, "", 6))
    assert (first["code"], second["code"], states) == ("C18_VENUE", "C18_VENUE", ["approved"])
    assert first["detail"].startswith("too_expensive: ")
    assert account.mined() == []
