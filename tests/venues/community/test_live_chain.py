"""A live agent on a real chain: transactions and their results, each sent once under any fault, approvals, and a hijacked model."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from live_agent import EVERY_MS, LiveAgent, client_of, killer
from vault_chain import VaultAccount, VaultChain, skill

from pitboss.core import codec
from pitboss.core.state import parse_state
from pitboss.store.database import Database
from pitboss.venues.community.agent_world import AgentWorld
from simulated_kill import Killed

AT = 1_800_000_000_000 // EVERY_MS * EVERY_MS
LARGE = 2**64 + 5
"""More than 64 bits, and less than an account holds in wei."""


def results_of(agent: LiveAgent) -> list[dict[str, Any]]:
    return [dict(item.content) for item in agent.state.world.inbox]


def test_transactions_and_calls_leave_their_results_for_the_next_heartbeat(
    scene: VaultChain, account: VaultAccount, database: Database
) -> None:
    async def story() -> None:
        async with client_of(scene.forum_server) as client:
            agent = await account.agent(client, database)
            actions = [
                scene.action("deposit", value=LARGE),
                scene.action("withdraw", LARGE),
                scene.action("balances", account.address),
            ]
            record = await agent.heartbeat(AT, *actions)
            deposit, withdrawal, balance = results_of(agent)
            assert {row["type"] for row in results_of(agent)} == {"tx_feedback"}
            assert (deposit["result"]["type"], deposit["result"]["status"], deposit["value"]) == ("tx", 1, str(LARGE))
            assert (withdrawal["result"]["type"], withdrawal["args"]) == ("tx", [str(LARGE)])
            assert balance["result"] | {"contractAddress": ""} == {
                "type": "call",
                "contractAddress": "",
                "functionName": "balances",
                "args": [account.address],
                "result": [str(LARGE)],
            }
            assert [receipt["kind"] for receipt in record.body()["receipts"]] == ["filled", "filled", "accepted"]
            use = agent.state.world.use
            assert (use.transactions, use.spend_wei) == (2, LARGE + 2 * skill().risk.caps().most_fee_wei)
            assert [row["hash"] for row in account.mined()] == [row["result"]["hash"] for row in (deposit, withdrawal)]
            assert [int(row["value"], 16) for row in account.mined()] == [LARGE, 0]
            await agent.heartbeat(AT + EVERY_MS)
            assert results_of(agent) == []

    asyncio.run(story())


def outcomes(record: Any) -> list[tuple[str, str | None]]:
    return [(verdict["outcome"], verdict["code"]) for verdict in record.body()["verdicts"]]


def test_what_would_revert_or_needs_too_much_gas_is_neither_sent_nor_counted(
    scene: VaultChain, account: VaultAccount, database: Database
) -> None:
    async def story() -> None:
        async with client_of(scene.forum_server) as client:
            agent = await account.agent(client, database, skill=skill(gas=25_000))
            record = await agent.heartbeat(AT, scene.action("withdraw", 5), scene.action("deposit", value=5))
            assert outcomes(record) == [("refused", "C18_VENUE")] * 2
            reverted, expensive = (verdict["detail"] for verdict in record.body()["verdicts"])
            assert reverted.startswith("reverted: ")
            assert "more than was deposited" in reverted
            assert expensive.startswith("too_expensive: ")
            assert [row["result"]["ok"] for row in results_of(agent)] == [False, False]
            assert not agent.source.pending(agent.state.world)
            assert (agent.state.world.use.transactions, agent.state.world.use.spend_wei) == (0, 0)
        assert account.mined() == []

    asyncio.run(story())


def test_overloads_and_integers_of_256_bits_are_executed_stored_and_read_back(
    scene: VaultChain, account: VaultAccount, database: Database
) -> None:
    largest, echo = 2**256 - 1, scene.echo

    async def story() -> None:
        async with client_of(scene.forum_server) as client:
            agent = await account.agent(client, database)
            record = await agent.heartbeat(
                AT,
                scene.action("echo(uint256)", largest, contract=echo),
                scene.action("echo", str(largest), 2**70, contract=echo),
                scene.action("echo(bytes32)", "0x" + "ab" * 32, contract=echo),
                scene.action("echo", 5, contract=echo),  # a uint256 or a bytes32? the type of 5 decides
                scene.action("keep", largest, contract=echo),
                scene.action("keep(uint256,uint256)", str(largest), 2**70, contract=echo),
                scene.action("keep", largest, 2**256, contract=echo),
            )
            assert outcomes(record) == [("allowed", None)] * 6 + [("refused", "C11_ARGUMENTS")]
            values = [row["result"].get("result") for row in results_of(agent)]
            assert values == [[str(largest)], [str(largest)], ["0x" + "ab" * 32], [5], None, None, None]
            assert [row.get("args") for row in results_of(agent)[4:6]] == [[str(largest)], [str(largest), str(2**70)]]
            sent = [row["input"] for row in account.mined()]
            assert [data[10:74] for data in sent] == [f"{largest:064x}"] * 2
            assert len({data[:10] for data in sent}) == 2
            stored = codec.dumps(codec.number_fragments(codec.plain(agent.state)))
            assert parse_state(codec.loads(stored), AgentWorld) == agent.state
            again = await account.agent(client, database)  # a process that finds only the outbox
            await again.settle(AT)
            assert [row for row in results_of(again) if row["type"] == "tx_feedback"] == results_of(agent)[4:6]
            assert again.state.world.use == agent.state.world.use

    asyncio.run(story())


@pytest.mark.parametrize(
    ("count", "stride"), [(1, 2), *(pytest.param(count, 1, marks=pytest.mark.proof) for count in (1, 2))]
)
def test_killed_at_any_step_each_transaction_is_mined_at_most_once_counted_once_and_told(
    scene: VaultChain, database: Database, tmp_path: Path, count: int, stride: int
) -> None:
    """The interrupted heartbeat is made again, as a runner does that is started within its slot."""
    actions = [scene.action("deposit", value=7), scene.action("withdraw", 3)][:count]

    async def story(step: int) -> int:
        account, scope, (breaks, steps) = scene.account(tmp_path), f"community:{step}", killer(step)
        async with client_of(scene.forum_server) as client:
            agent = await account.agent(client, database, breaks=breaks, scope=scope)
            if step == 0:
                await agent.heartbeat(AT, *actions)
                assert len(account.mined()) == count
                return len(steps)
            with pytest.raises(Killed):
                await agent.heartbeat(AT, *actions)
            begun = steps.count("after open")
            restarted = await account.agent(client, database, agent.state, scope=scope)
            await restarted.settle(AT)
            told = results_of(restarted)
            mined = account.mined()
            assert len(told) == begun, steps[-1]
            assert [row["type"] for row in told].count("tx_feedback") == len(mined)
            assert all(row["result"]["ok"] is False for row in told if row["type"] == "action_result")
            world = restarted.state.world
            assert world.use.transactions == len(mined), steps[-1]
            await restarted.heartbeat(AT, *actions)
            mined = account.mined()
            assert [int(row["value"], 16) for row in mined] in ([7, 0], [7], [0], []), steps[-1]
            assert restarted.state.world.use.transactions == len(mined)
            third = await account.agent(client, database, restarted.state, scope=scope)
            await third.settle(AT + EVERY_MS)
            assert third.state.world.use == restarted.state.world.use
            assert third.state.world.next_number == restarted.state.world.next_number
        return len(mined)

    steps = asyncio.run(story(0))
    assert steps == 10 * count + 1
    assert sum(asyncio.run(story(step)) for step in range(1, steps + 1, stride)) > 7 * count // stride


def test_without_an_answer_after_the_send_the_action_stays_open_and_is_found_later(
    scene: VaultChain, account: VaultAccount, database: Database
) -> None:
    async def story() -> None:
        async with client_of(scene.forum_server) as client:
            agent = await account.agent(client, database)
            account.transport.silent_from = "eth_sendRawTransaction"
            comment = {"action": "comment", "body": "meanwhile", **_place(scene)}
            deposit = scene.action("deposit", value=9)
            record = await agent.heartbeat(AT, deposit, comment, deposit | {"value": "8"})
            assert outcomes(record) == [("refused", "C18_VENUE")] * 3
            details = [verdict["detail"] for verdict in record.body()["verdicts"]]
            assert ["not known yet" in details[0], *("has no result yet" in text for text in details[1:])] == [True] * 3
            assert agent.source.pending(agent.state.world)
            assert agent.state.world.use.transactions == 0
            account.transport.silent_from = ""
            await agent.settle(AT)
            assert [int(row["value"], 16) for row in account.mined()] == [9]
            assert agent.state.world.use.transactions == 1
            assert [row["result"].get("status") for row in results_of(agent)][-1] == 1

    asyncio.run(story())


def _place(scene: VaultChain) -> dict[str, Any]:
    return {
        "communitySlug": scene.forum_server.seeded["community"]["slug"],
        "threadId": scene.forum_server.thread("DISCUSSION"),
    }


def test_a_result_that_arrives_during_a_heartbeat_is_counted_before_anything_else_is_done(
    scene: VaultChain, account: VaultAccount, database: Database
) -> None:
    """The limits of the heartbeat were judged without it."""

    async def story() -> None:
        async with client_of(scene.forum_server) as client:
            agent = await account.agent(client, database, skill=skill(transactions_per_day=1))
            account.transport.silent_from = "eth_sendRawTransaction"
            await agent.heartbeat(AT, scene.action("deposit", value=1))
            decide = agent.decider.decide

            async def slowly(observation: Any, judge: Any) -> Any:
                account.transport.silent_from = ""
                while agent.broker.has_open_action:
                    agent.source._collect()
                    await asyncio.sleep(0.001)
                return await decide(observation, judge)

            agent.decider.decide = slowly
            record = await agent.heartbeat(AT + EVERY_MS, scene.action("deposit", value=2))
            assert outcomes(record) == [("refused", "C18_VENUE")]
            record = await agent.heartbeat(AT + 2 * EVERY_MS, scene.action("deposit", value=2))
            assert outcomes(record) == [("refused", "C15_TX_DAY")]
        assert [int(row["value"], 16) for row in account.mined()] == [1]

    asyncio.run(story())


@pytest.mark.parametrize("was_sent", [True, False])
def test_a_result_found_just_before_the_process_ends_is_told_by_the_next_one(
    scene: VaultChain, account: VaultAccount, database: Database, was_sent: bool
) -> None:
    def breaks(step: str) -> None:
        if step == "after send" and not was_sent:
            raise Killed(step)

    async def story() -> None:
        async with client_of(scene.forum_server) as client:
            agent = await account.agent(client, database, breaks=breaks)
            account.transport.silent_from = "eth_sendRawTransaction"
            if was_sent:
                await agent.heartbeat(AT, scene.action("deposit", value=1))
                for number in range(1, 4):  # heartbeats go on while there is no answer
                    await agent.heartbeat(AT + number * EVERY_MS)
            else:
                with pytest.raises(Killed):
                    await agent.heartbeat(AT, scene.action("deposit", value=1))
            account.transport.silent_from = ""
            await agent.source.close()
            assert await agent.broker.resolve() is not None
            restarted = await account.agent(client, database, agent.state)
            await restarted.settle(AT + 9 * EVERY_MS)
            (told,) = results_of(restarted)
            assert told["type"] == ("tx_feedback" if was_sent else "action_result")
            assert restarted.state.world.use.transactions == was_sent == len(account.mined())

    asyncio.run(story())


def test_two_agents_that_decide_the_same_at_the_same_heartbeat_both_do_it(
    scene: VaultChain, account: VaultAccount, database: Database
) -> None:
    async def story() -> None:
        async with client_of(scene.forum_server) as client:
            for scope in ("community:one", "community:two"):
                agent = await account.agent(client, database, scope=scope)
                await agent.heartbeat(AT, scene.action("deposit", value=1))
                assert agent.state.world.use.transactions == 1
        assert [int(row["value"], 16) for row in account.mined()] == [1, 1]

    asyncio.run(story())


def test_an_account_that_cannot_pay_sends_nothing_and_the_agent_goes_on(
    scene: VaultChain, account: VaultAccount, database: Database
) -> None:
    async def story() -> None:
        async with client_of(scene.forum_server) as client:
            agent = await account.agent(client, database)
            account.transport.ignores_fees = True
            value = scene.balance(account.address) // 2
            record = await agent.heartbeat(AT, *[scene.action("deposit", value=value - number) for number in range(2)])
            assert outcomes(record) == [("allowed", None), ("refused", "C18_VENUE")]
            assert record.body()["verdicts"][1]["detail"].startswith("too_expensive: ")
            assert not agent.source.pending(agent.state.world)
            await agent.heartbeat(AT + EVERY_MS, scene.action("deposit", value=5))
            assert agent.state.world.use.transactions == 2 == len(account.mined())

    asyncio.run(story())
