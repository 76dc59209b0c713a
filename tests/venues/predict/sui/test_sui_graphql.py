"""The chain through a node's GraphQL service: documented shapes read exactly, anything else is "nothing is known"."""

import asyncio
import base64
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.errors import TransientError, UserError
from pitboss.store.outbox import StoredOutbox
from pitboss.venues.predict.sui.broker import PredictSui
from pitboss.venues.predict.sui.chain import CLOCK
from pitboss.venues.predict.sui.graphql import (
    GraphqlChain,
    _basis,
    _consumer,
    _effects,
    _execution,
    _outcome,
    _simulation,
    parse_reply,
)
from pitboss.venues.predict.sui.order_sender import OrderSender, WriterSettings
from pitboss.venues.predict.sui.transaction import ContractCall, Fee, build, build_balance_read, digest_of, objects_of
from venues.predict.sui.fake_chain import ORACLE, PLACE, TESTNET, FakeChain
from venues.predict.sui.graphql_node import Node, serving_node
from venues.predict.sui.writer_machine import (
    ADDRESS,
    SIGNER,
    TICK,
    Machine,
    count_consistent_mints,
    fresh_desk,
    mint_request,
    no_pause,
    run,
    settle_all,
)

MachineFactory = Callable[..., Machine]
KEYS = objects_of(PLACE, ORACLE)


def run_query(url: str, ask: Callable[[GraphqlChain], Any], timeout_s: float = 5.0) -> Any:
    async def go() -> Any:
        chain = GraphqlChain(url, timeout_s)
        try:
            return await ask(chain)
        finally:
            await chain.close()

    return asyncio.run(go())


def test_what_a_node_reports_is_what_the_chain_holds():
    chain = FakeChain(ADDRESS)
    with serving_node(chain) as node:
        ground = run_query(node.url, lambda c: c.read_basis((*KEYS, "0x" + "77" * 32), ADDRESS))
        look = build_balance_read(PLACE, ground, Fee(ADDRESS, ground.coins[0], 5_000_000, 1000, 7))
        seen = run_query(node.url, lambda c: c.simulate(look))
        epoch = run_query(node.url, lambda c: c.epoch())

    assert ground == asyncio.run(chain.read_basis(KEYS, ADDRESS))
    assert (ground.chain_id, ground.epoch, set(ground.shared)) == (
        TESTNET,
        7,
        {PLACE.predict, PLACE.manager, CLOCK, ORACLE},
    )
    assert seen.outputs == ((chain.account.cash.to_bytes(8, "little"),),)
    assert epoch == 7


def test_an_abort_is_read_with_its_module_and_code():
    chain = FakeChain(ADDRESS, deposit=0)
    with serving_node(chain) as node:
        ground = run_query(node.url, lambda c: c.read_basis(KEYS, ADDRESS))
        call = ContractCall("mint", ORACLE, chain.world.oracles[ORACLE].expiry_at, 63_000 * 10**9, True, 1_000_000)
        tx = build(PLACE, ground, call, Fee(ADDRESS, ground.coins[0], 5_000_000, 1000, 7))
        seen = run_query(node.url, lambda c: c.simulate(tx))

    assert (seen.ok, seen.module, seen.code) == (False, "balance_manager", 3)


@pytest.mark.parametrize("fault", ["lost", "hang", "garbage", "busy", "error"])
@pytest.mark.parametrize("operation", ["Ground", "Simulate", "Execute", "Outcome", "Consumer", "Epoch"])
def test_a_fault_of_any_question_says_that_nothing_is_known(fault: str, operation: str):
    tx = b""
    asks: dict[str, Callable[[GraphqlChain], Any]] = {
        "Ground": lambda c: c.read_basis(KEYS, ADDRESS),
        "Simulate": lambda c: c.simulate(tx),
        "Execute": lambda c: c.execute(tx, SIGNER.signature(tx)),
        "Outcome": lambda c: c.outcome("x"),
        "Consumer": lambda c: c.consumer("0x" + "9" * 64, 10),
        "Epoch": lambda c: c.epoch(),
    }
    chain = FakeChain(ADDRESS)
    ground = asyncio.run(chain.read_basis(KEYS, ADDRESS))
    tx = build_balance_read(PLACE, ground, Fee(ADDRESS, ground.coins[0], 5_000_000, 1000, 7))
    with serving_node(chain) as node:
        node.faults[operation] = [fault]
        with pytest.raises(TransientError):
            run_query(node.url, asks[operation], timeout_s=0.3 if fault == "hang" else 20.0)

        assert len(node.requests) == 1  # a question is asked once: what is asked again is the writer's decision


@pytest.mark.parametrize("fault", ["lost", "hang", "garbage", "busy", "error"])
def test_an_order_whose_reply_is_lost_on_the_wire_is_minted_once(new_machine: MachineFactory, fault: str):
    machine, desk = new_machine(), fresh_desk()

    async def go(url: str) -> Any:
        chain = GraphqlChain(url, 2.0 if fault == "hang" else 20.0)
        outbox = StoredOutbox(machine.database, machine.now)
        try:
            sender = OrderSender(chain, outbox, SIGNER, PLACE, WriterSettings(), "wire", machine.now, no_pause)
            return await PredictSui(sender).submit(desk, mint_request(), TICK)
        finally:
            await chain.close()

    with serving_node(machine.chain) as node:
        node.faults["Execute"] = [fault]
        placed = run(go(node.url))
        names = [name for name, _ in node.requests]

    assert placed.refusal == ""
    # The chain is asked first; the same bytes go again only where it does not know of them.
    assert names[names.index("Execute") + 1 :][:2] == ["Epoch", "Outcome"]
    sent = {variables["tx"] for name, variables in node.requests if name == "Execute"}
    assert len(sent) == 1
    assert count_consistent_mints(machine, settle_all(machine, placed.world, TICK), desk) == 1


def test_what_leaves_are_signed_bytes_and_no_key():
    chain = FakeChain(ADDRESS)
    with serving_node(chain) as node:
        ground = run_query(node.url, lambda c: c.read_basis(KEYS, ADDRESS))
        tx = build_balance_read(PLACE, ground, Fee(ADDRESS, ground.coins[0], 5_000_000, 1000, 7))
        run_query(node.url, lambda c: c.execute(tx, SIGNER.signature(tx)))

    _, variables = node.requests[-1]
    assert base64.b64decode(variables["tx"]) == tx
    assert variables["signatures"] == [SIGNER.signature(tx)]


D = "4btiuiMPvEENsttpZC7CZ53DruC3MAgfznDbASZ7DR6S"
GOOD: dict[str, Any] = {"digest": D, "status": "SUCCESS"}
COIN = "0x" + "9" * 64


def object_change_reply(digest: str, coin: str, version: Any) -> dict[str, Any]:
    changes = [{"address": coin, "inputState": {"version": version}}]
    effects = {"digest": digest, "objectChanges": {"nodes": changes}}
    return {"objectVersions": {"nodes": [{"previousTransaction": {"effects": effects}}]}}


def test_only_a_transaction_that_took_this_very_version_is_its_consumer():
    assert _consumer(object_change_reply(D, COIN, 10), COIN, 10) == D
    assert _consumer(object_change_reply(D, COIN, 11), COIN, 10) is None
    assert _consumer(object_change_reply(D, "0x" + "8" * 64, 10), COIN, 10) is None
    assert _consumer({"objectVersions": {"nodes": []}}, COIN, 10) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def mutated_document(value: Any, data: st.DataObject) -> Any:
    """The document with a random value at one place of any depth."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 3)):
        key = data.draw(st.sampled_from(sorted(value)))
        return {**value, key: mutated_document(value[key], data)}
    if isinstance(value, list) and value and data.draw(st.integers(0, 3)):
        place = data.draw(st.integers(0, len(value) - 1))
        return [*value[:place], mutated_document(value[place], data), *value[place + 1 :]]
    return data.draw(JSON)


def replies() -> dict[str, tuple[Any, Callable[[Any], Any]]]:
    """A complete reply to each query, and the method that reads it."""
    chain = FakeChain(ADDRESS)
    node = Node(chain)
    ground = run(chain.read_basis(KEYS, ADDRESS))
    fee = Fee(ADDRESS, ground.coins[0], 50_000_000, 1000, 7)
    call = ContractCall("mint", ORACLE, chain.world.oracles[ORACLE].expiry_at, 63_000 * 10**9, True, 1_000_000)
    tx = build(PLACE, ground, call, fee, with_balance=True)
    encoded = base64.b64encode(tx).decode()
    keys = [{"address": key} for key in KEYS]
    return {
        "ground": (run(node.ground(keys, ADDRESS, "0x2::coin::Coin<0x2::sui::SUI>", 50)), _basis),
        "simulate": (run(node.simulate({"bcs": {"value": encoded}})), _simulation),
        "execute": (run(node.execute(encoded, [SIGNER.signature(tx)])), _execution),
        "outcome": (run(node.outcome(digest_of(tx))), _outcome),
        "consumer": (run(node.consumer(fee.coin.id, fee.coin.version)), lambda d: _consumer(d, fee.coin.id, 10)),
    }


REPLIES = replies()


@pytest.mark.parametrize("name", REPLIES)
@given(data=st.data())
@settings(max_examples=20)
def test_an_answer_with_anything_in_it_is_read_or_is_nothing_known(name: str, data: st.DataObject):
    reply, read = REPLIES[name]
    whole = parse_reply(orjson.dumps({"data": reply}), "node", read)
    assert whole is not None

    content = orjson.dumps(mutated_document({"data": reply}, data))
    with suppress(TransientError):
        found = parse_reply(content[: data.draw(st.sampled_from([None, -1]))], "node", read)
        assert found is None or type(found) is type(whole)


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"digest": D},
        {**GOOD, "status": "MAYBE"},
        {**GOOD, "digest": "0x12"},
        {**GOOD, "status": "FAILURE", "executionError": {"abortCode": "-1"}},
        {"status": "SUCCESS"},
        {**GOOD, "digest": 5},
        {**GOOD, "events": {"nodes": [{}]}},
        {**GOOD, "events": {"nodes": [{"contents": {"json": {}}}]}},
    ],
)
def test_effects_that_are_not_whole_are_no_effects(broken: dict[str, Any]):
    with pytest.raises(TransientError):
        _effects(broken)


@pytest.mark.parametrize("address", ["", "node", "ftp://node", "https://", "https://[::1"])
def test_an_address_that_is_none_is_reported(address: str):
    with pytest.raises(UserError, match="node is not valid"):
        GraphqlChain(address)


def test_a_simulation_that_the_node_refuses_tells_its_reason():
    data = {"simulateTransaction": {"effects": None, "outputs": None, "error": "object 0x6 is not available"}}
    with pytest.raises(TransientError, match="cannot simulate it: object 0x6 is not available"):
        _simulation(data)
