"""Faults of nodes and of this process: an intent is executed once at most, and no nonce is left out."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from example_counts import seeds
from pitboss.venues.community.chain.stored_transaction import StoredTransaction
from saved_figures import save_figures
from simulated_kill import Killed
from venues.community.chain.counter_chain import Account, account

INTENTS = 5
FAULTS = 10_000


async def run_episode(folder: Path, seed: int) -> Counter[str]:
    """Some intents under faults and kills, then a healthy node. Return the number of faults of each kind."""
    with account(folder, f"episode {seed}", percent=22) as sender:
        sender.kills_per_mille = 15
        first = seed * 1_000_000
        for number in range(INTENTS):
            await sender.through(f"i{number}", first + number, tries=4)
        faults = Counter({**sender.rpc.faults, "kill": sender.kills})
        sender.kills_per_mille = 0
        sender.rpc.heal()
        sender.start()
        await finish_intents(sender, first)
        check_account(sender, first)
        return faults


async def finish_intents(sender: Account, first: int) -> None:
    """With a healthy node every intent gets its result."""
    for number in range(INTENTS):
        outcome = await sender.through(f"i{number}", first + number, tries=8)
        assert outcome is not None
        assert outcome.status == "mined", outcome
    sender.node.mine(3)
    if sender.count() < len(sender.entries()):  # mined ones that a reorganisation undid after they were confirmed
        await (await sender.opened())._sender._next_nonce()


def check_account(sender: Account, first: int) -> None:
    entries = sender.entries()
    nonces = [StoredTransaction.loads(entry.request).nonce for entry in entries]
    assert nonces == list(range(INTENTS)), "a nonce is missing or was given twice"
    assert sender.count() == INTENTS, "the chain has more or fewer transactions than there are intents"
    assert [sender.marks(first + number) for number in range(INTENTS)] == [1] * INTENTS, "executed twice or not at all"
    assert not [pooled for pooled in sender.node.pool.values() if pooled.sender == sender.address]


@pytest.mark.parametrize("seed", seeds(1, 2, 3, 4, quick=1))
def test_an_intent_is_executed_once_whatever_the_node_and_the_process_do(tmp_path: Path, seed: int) -> None:
    asyncio.run(run_episode(tmp_path, seed))


@pytest.mark.chaos
def test_of_ten_thousand_faults_none_leads_to_a_second_transaction_or_a_gap(tmp_path: Path) -> None:
    faults, episodes = Counter[str](), 0
    while faults.total() < FAULTS:
        episodes += 1
        faults += asyncio.run(run_episode(tmp_path / str(episodes), 1_000 + episodes))
    figures = {"faults": faults.total(), "episodes": episodes, "intents": episodes * INTENTS, "by kind": faults}
    save_figures("chain faults", {**figures, "double sends": 0, "nonce gaps": 0})  # `run_episode` checks each one


async def kill_at(folder: Path, name: str, place: int) -> bool:
    """Kill the process at one step of one intent, start again, finish. Return whether there was such a step."""
    with account(folder, name) as sender:
        steps = iter(range(place + 1))

        def kill(step: str) -> None:
            if next(steps, None) == place:
                raise Killed(step)

        sender._break = kill
        was_killed = False
        try:
            await sender.send("one", hash_of(name))
        except Killed:
            was_killed = True
        del sender._break
        sender.start()
        await (await sender.opened()).resume()
        outcome = await sender.send("one", hash_of(name))
        assert outcome.status == "mined"
        assert sender.marks(hash_of(name)) == 1
        assert sender.count() == 1
        return was_killed


def hash_of(name: str) -> int:
    return int.from_bytes(name.encode(), "big") + 10**40


def kill_at_every(folder: Path, stride: int) -> int:
    """Kill at each of these steps in turn. Return the number of the first step that there is not."""

    async def all_steps() -> int:
        place = 0
        while await kill_at(folder / str(place), f"kill {stride} {place}", place):
            place += stride
        return place

    return asyncio.run(all_steps())


def test_a_kill_at_many_steps_leaves_one_transaction(tmp_path: Path) -> None:
    assert kill_at_every(tmp_path, 9) > 30


@pytest.mark.chaos
def test_a_kill_at_any_step_leaves_one_transaction(tmp_path: Path) -> None:
    assert kill_at_every(tmp_path, 1) > 30
