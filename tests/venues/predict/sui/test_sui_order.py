"""What is sent, and what is not: no more than was promised, no worse than was seen, only where everything is in place."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pitboss.core.errors import InvariantError, UserError
from pitboss.core.instant import HOUR_MS, MINUTE_MS
from pitboss.store import schema
from pitboss.store import sealed_rows as rows
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.desk import spend_with_reserves
from pitboss.venues.predict.state import QUOTE, Contract
from pitboss.venues.predict.sui.chain import MAINNET, base58
from pitboss.venues.predict.sui.desk_changes import apply_price
from pitboss.venues.predict.sui.order import order_id, sui_order_of, trade_in
from pitboss.venues.predict.sui.transaction import digest_of
from pitboss.venues.predict.svi import FLOAT
from venues.predict.scene import SPOT
from venues.predict.single_markets import push_price
from venues.predict.sui.fake_chain import ORACLE, PLACE, decode
from venues.predict.sui.fault_injector import FaultInjector
from venues.predict.sui.writer_machine import (
    STRIKE,
    TICK,
    Machine,
    count_consistent_mints,
    fresh_desk,
    mint_request,
    redeem_request,
    run,
    settle_all,
)

MachineFactory = Callable[..., Machine]
NEVER = 0


def submit_order(machine: Machine, request: Any, desk: Any = None, injector: FaultInjector | None = None) -> Any:
    with machine.process(injector) as broker:
        return run(broker.submit(desk or fresh_desk(), request, machine.now()))


def price_mover(machine: Machine, when: str, spot: int) -> FaultInjector:
    """An injector that moves the market right before a call."""

    def move(name: str) -> None:
        if name == when:
            machine.chain.spot = spot

    return FaultInjector(before=move)


class FaultsByName(dict[int, str]):
    """Faults by the name of a call, whatever its number."""

    def __init__(self, faults: dict[str, str]) -> None:
        super().__init__()
        self.by_name, self.called = faults, ""

    def get(self, number: int, default: str = "") -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.by_name.get(self.called, default)


def faults_by_name(faults: dict[str, str], before: Callable[[str], None] = lambda name: None) -> FaultInjector:
    """An injector that breaks every call of these names."""
    found = FaultsByName(faults)

    def note(name: str) -> None:
        found.called = name
        before(name)

    return FaultInjector(found, before=note)


def lost_calls(name: str) -> FaultInjector:
    """An injector that loses every request of one kind before it arrives."""
    return faults_by_name({name: "lost_before"})


def test_a_mint_is_a_key_and_a_mint_between_taking_out_what_was_not_promised_and_putting_it_back(
    new_machine: MachineFactory,
):
    machine = new_machine()
    submit_order(machine, mint_request(2 * QUOTE))

    (tx,) = machine.chain.sends
    (entry,) = machine.entries()
    found = decode(tx)
    pure = [value for kind, value in found.inputs if kind == "pure"]
    assert [f"{module}::{function}" for module, function, _ in found.commands] == [
        "predict_manager::withdraw",
        "market_key::new",
        "predict::mint",
        "predict_manager::deposit",
    ]
    expiry_at = machine.chain.world.oracles[ORACLE].expiry_at
    quantity = mint_request().order.quantity
    assert pure == [
        (98 * QUOTE).to_bytes(8, "little"),
        bytes.fromhex(ORACLE[2:]),
        expiry_at.to_bytes(8, "little"),
        STRIKE.to_bytes(8, "little"),
        b"\1",
        quantity.to_bytes(8, "little"),
    ]
    assert (found.packages, found.kinds) == ({PLACE.package}, {PLACE.quote_type})
    assert (entry.digest, entry.tx, entry.last_epoch) == (digest_of(tx), tx, machine.chain.epoch_now)


def test_no_is_the_other_side(new_machine: MachineFactory):
    machine, desk = new_machine(), fresh_desk()
    placed = submit_order(machine, mint_request(side="NO"))

    (position,) = placed.world.world.accounts["agent"].positions.values()
    assert position.contract == Contract(ORACLE, None, STRIKE)
    assert count_consistent_mints(machine, placed.world, desk) == 1


def test_a_price_that_jumps_between_simulation_and_execution_costs_nothing_but_gas(new_machine: MachineFactory):
    machine, desk = new_machine(), fresh_desk()

    placed = submit_order(machine, mint_request(), injector=price_mover(machine, "chain.execute", SPOT * 102 // 100))

    assert "balance is too low" in placed.refusal
    assert machine.chain.account.cash == 100 * QUOTE
    assert [entry.state for entry in machine.entries()] == ["failed"]
    assert count_consistent_mints(machine, placed.world, desk) == 0


def test_a_price_that_jumps_between_signing_and_sending_is_not_sent(new_machine: MachineFactory):
    machine = new_machine()

    placed = submit_order(machine, mint_request(), injector=price_mover(machine, "outbox.sign", SPOT * 102 // 100))

    assert placed.refusal
    assert machine.chain.sends == []
    (entry,) = machine.entries()
    assert (entry.state, entry.tx, entry.signature) == ("void", None, None)


@given(
    spend=st.integers(1, 60 * QUOTE),
    drift=st.integers(-300, 300),
    later=st.integers(-300, 300),
    when=st.sampled_from(["chain.simulate", "outbox.sign", "chain.execute"]),
    deposit=st.integers(0, 80 * QUOTE),
)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_mint_costs_more_than_its_promise_or_than_was_deposited_wherever_the_price_goes(
    new_machine: MachineFactory, spend: int, drift: int, later: int, when: str, deposit: int
):
    machine = new_machine(deposit=deposit)
    machine.chain.spot = SPOT + SPOT * drift // 100_000
    request = mint_request(spend)
    assume(request.order.quantity > 0)

    placed = submit_order(machine, request, injector=price_mover(machine, when, SPOT + SPOT * later // 100_000))

    paid = deposit - machine.chain.account.cash
    assert 0 <= paid <= min(spend, deposit)
    assert (paid > 0 or machine.chain.mints != []) == (placed.refusal == "")


def test_a_dearer_market_buys_fewer_contracts_for_the_same_promise(new_machine: MachineFactory):
    machine = new_machine()
    machine.chain.spot = SPOT * 10_002 // 10_000

    placed = submit_order(machine, mint_request())

    (fill,) = placed.world.done
    assert fill.quantity * QUOTE < mint_request().order.quantity
    assert 0 < fill.amount <= 2


def test_an_ask_far_above_the_one_that_was_shown_is_refused(new_machine: MachineFactory):
    machine = new_machine()
    shown = mint_request().order.price * 96 // 100

    placed = submit_order(machine, mint_request(shown=shown))

    assert "more than 200 basis points" in placed.refusal
    assert machine.chain.sends == []


def test_a_price_that_runs_away_while_it_is_weighed_is_refused_before_anything_is_signed(new_machine: MachineFactory):
    machine, looks = new_machine(), []
    machine.chain.spot = SPOT * 10_002 // 10_000

    def run_away(name: str) -> None:
        if name == "chain.simulate":
            looks.append(name)
            machine.chain.spot = SPOT * (10_002 + 3 * (len(looks) - 1)) // 10_000

    injector = FaultInjector(before=run_away)
    placed = submit_order(machine, mint_request(), injector=injector)

    assert "it would cost 2.0" in placed.refusal
    assert "and 2 was promised" in placed.refusal
    assert len(looks) == 2
    assert "signer.sign" not in injector.calls


def test_a_node_that_answers_about_another_transaction_is_not_believed(new_machine: MachineFactory):
    machine = new_machine()
    true, false = machine.chain.land, base58(bytes(range(32)))
    machine.chain.land = lambda tx: replace(true(tx), digest=false, ok=False, events=())

    placed = submit_order(machine, mint_request())

    assert [entry.state for entry in machine.entries()] == ["landed"]  # by the chain's own word, asked by digest
    assert count_consistent_mints(machine, placed.world, fresh_desk()) == 1


def test_another_tick_side_or_spend_is_another_order_and_another_price_is_not():
    request = mint_request()
    dearer = replace(request, order=replace(request.order, price=1, quantity=1))
    others = [mint_request(QUOTE), mint_request(side="NO"), mint_request(tick_at=TICK + 1)]

    assert order_id("s", request) == order_id("s", dearer)
    assert len({order_id("s", one) for one in (request, *others)} | {order_id("t", request)}) == 5


def test_only_the_trade_that_was_asked_for_is_taken_for_it(new_machine: MachineFactory):
    machine = new_machine()
    submit_order(machine, mint_request())
    (effects,) = machine.chain.mints
    order = sui_order_of(mint_request(), NEVER)

    assert trade_in(effects, order, PLACE.manager) is not None
    assert trade_in(effects, order, PLACE.predict) is None
    for other in (
        replace(order, side="NO"),
        replace(order, strike=order.strike + FLOAT),
        replace(order, market_id=PLACE.predict),
        replace(order, action="redeem"),
    ):
        assert trade_in(effects, other, PLACE.manager) is None


def test_a_position_is_sold_back_once(new_machine: MachineFactory):
    machine, start_desk = new_machine(), fresh_desk()
    held = submit_order(machine, mint_request()).world
    quantity = held.world.accounts["agent"].positions[Contract(ORACLE, STRIKE, None).key].quantity

    sold = submit_order(machine, redeem_request(quantity), held)
    again = submit_order(machine, redeem_request(quantity), held)

    assert (sold.refusal, again.refusal) == ("", "")
    assert sold.world == again.world
    assert [fill.kind for fill in sold.world.done] == ["mint", "redeem"]
    assert sold.world.world.accounts["agent"].positions == {}
    assert count_consistent_mints(machine, sold.world, start_desk) == 1


def test_what_is_not_held_is_not_sold(new_machine: MachineFactory):
    machine, desk = new_machine(), fresh_desk()
    placed = submit_order(machine, redeem_request(5), desk)

    assert "does not hold" in placed.refusal
    assert machine.chain.sends == []


def test_an_order_in_doubt_waits_on_the_desk_with_its_spend_reserved_and_no_price_settles_it(
    new_machine: MachineFactory,
):
    machine = new_machine()

    placed = submit_order(machine, mint_request(), injector=lost_calls("chain.execute"))

    assert placed.refusal == ""
    assert [receipt.kind for receipt in placed.receipts] == ["accepted"]
    (ticket,) = placed.world.waiting
    assert (ticket.id, spend_with_reserves(placed.world, TICK).total) == (placed.order_id, 2 * QUOTE)
    update = push_price(placed.world.world, ORACLE, SPOT, SPOT, TICK + 1_000)
    desk, _ = apply_price(placed.world, update, PredictCaps(), TICK + 1_000, "agent")
    assert desk.waiting == placed.world.waiting
    assert desk.world.accounts["agent"].positions == {}


def test_while_one_order_is_in_doubt_no_other_is_sent(new_machine: MachineFactory):
    machine = new_machine()
    injector = lost_calls("chain.execute")
    with machine.process(injector) as broker:
        doubt = run(broker.submit(fresh_desk(), mint_request(), TICK)).world
        other = run(broker.submit(doubt, mint_request(side="NO"), TICK))

    assert "still on its way" in other.refusal
    assert len(machine.entries()) == 1


def test_a_fresh_order_in_doubt_is_sent_again_with_the_same_bytes(new_machine: MachineFactory):
    machine, injector = new_machine(), lost_calls("chain.execute")
    with machine.process(injector) as broker:
        doubt = run(broker.submit(fresh_desk(), mint_request(), TICK)).world
        machine.clock[0] += 10_000
        injector.faults = {}
        result = run(broker.settle(doubt, TICK, machine.now()))

    (entry,) = machine.entries()
    assert machine.chain.sends == [entry.tx]
    assert [receipt.kind for receipt in result.receipts] == ["filled"]
    assert count_consistent_mints(machine, result.world, fresh_desk()) == 1


def test_bytes_are_not_sent_again_once_their_decision_is_too_old(new_machine: MachineFactory):
    machine = new_machine()
    injector = lost_calls("chain.execute")
    note = injector.before

    def slow(name: str) -> None:
        note(name)
        machine.clock[0] += 31_000 if name == "chain.execute" else 0

    injector.before = slow
    placed = submit_order(machine, mint_request(), injector=injector)

    assert len(placed.world.waiting) == 1
    assert injector.calls.count("chain.execute") == 1


def test_bytes_that_are_not_those_that_were_kept_are_never_sent(new_machine: MachineFactory):
    machine = new_machine()
    doubt = submit_order(machine, mint_request(), injector=lost_calls("chain.execute")).world
    (entry,) = machine.entries()
    with machine.database.write() as connection:
        row = rows.fetch(connection, schema.outbox, {"order_id": entry.order_id})
        assert row is not None
        rows.change(connection, schema.outbox, row, {"tx": b"other bytes", "owner": "p2"})

    with machine.process() as broker, pytest.raises(InvariantError, match="differ from the stored ones"):
        run(broker.settle(doubt, TICK, machine.now()))
    assert machine.chain.sends == []


def test_a_stale_order_in_doubt_is_fenced_off_and_its_spend_is_free_again(new_machine: MachineFactory):
    machine = new_machine()
    doubt = submit_order(machine, mint_request(), injector=lost_calls("chain.execute")).world
    machine.clock[0] += 5 * MINUTE_MS

    with machine.process() as broker:
        result = run(broker.settle(doubt, TICK, machine.now()))

    assert [receipt.kind for receipt in result.receipts] == ["rejected"]
    assert "used its coin up" in result.receipts[0].facts["reason"]
    assert spend_with_reserves(result.world, machine.now()).total == 0
    (fence,) = machine.chain.sends
    assert decode(fence).commands == (("", "TransferObjects", ()),)
    assert count_consistent_mints(machine, result.world, fresh_desk()) == 0


def test_a_transaction_of_which_only_the_coin_shows_that_it_was_run_is_not_taken_for_dead(new_machine: MachineFactory):
    machine = new_machine(lag=1_000)

    def catch_up(name: str) -> None:
        if name == "chain.consumer":
            machine.chain.reads += 2_000  # between the two questions

    placed = submit_order(machine, mint_request(), injector=faults_by_name({"chain.execute": "lost_after"}, catch_up))

    assert [entry.state for entry in machine.entries()] == ["landed"]
    assert count_consistent_mints(machine, placed.world, fresh_desk()) == 1


def test_an_order_that_was_never_run_is_void_when_a_whole_epoch_has_passed_even_without_a_fence(
    new_machine: MachineFactory,
):
    machine = new_machine()
    doubt = submit_order(machine, mint_request(), injector=lost_calls("chain.execute")).world

    def states_after(epochs: int) -> list[str]:
        machine.clock[0] += 5 * MINUTE_MS
        machine.chain.pass_epochs(epochs)
        with machine.process(lost_calls("chain.read_basis")) as broker:
            run(broker.settle(doubt, TICK, machine.now()))
        return [entry.state for entry in machine.entries()]

    assert states_after(1) == ["sent"]
    assert states_after(1) == ["void"]
    assert machine.chain.sends == []


def test_an_order_that_lands_before_its_fence_is_kept(new_machine: MachineFactory):
    calls = FaultInjector()
    submit_order(new_machine(), mint_request(), injector=calls)
    machine = new_machine()
    late = dict.fromkeys(range(calls.calls.index("chain.execute"), 40), "late")
    doubt = submit_order(machine, mint_request(), injector=FaultInjector(late)).world
    machine.clock[0] += 5 * MINUTE_MS

    def land(name: str) -> None:
        if name == "chain.read_basis":
            machine.chain.heal()

    with machine.process(FaultInjector(before=land)) as broker:
        result = run(broker.settle(doubt, TICK, machine.now()))

    assert count_consistent_mints(machine, settle_all(machine, result.world, TICK), fresh_desk()) == 1


def test_settling_twice_shows_nothing_twice(new_machine: MachineFactory):
    machine = new_machine()
    submit_order(machine, mint_request())

    with machine.process() as broker:
        first = run(broker.settle(fresh_desk(), TICK - 1, machine.now()))
        second = run(broker.settle(first.world, TICK - 1, machine.now()))

    assert [receipt.kind for receipt in first.receipts] == ["filled"]
    assert (second.world, second.receipts) == (first.world, ())


def test_orders_of_ticks_that_the_desk_knows_are_not_taken_in_again(new_machine: MachineFactory):
    machine = new_machine()
    submit_order(machine, mint_request())

    with machine.process() as broker:
        result = run(broker.settle(fresh_desk(), TICK, machine.now()))

    assert result.receipts == ()


def test_two_orders_never_use_the_same_version_of_a_coin(new_machine: MachineFactory):
    machine, desk = new_machine(gas_coins=1, lag=50), fresh_desk()
    first = submit_order(machine, mint_request())
    second = submit_order(machine, mint_request(tick_at=TICK + MINUTE_MS), first.world)

    assert first.refusal == ""
    assert "has not caught up" in second.refusal
    machine.chain.reads += 100
    third = submit_order(machine, mint_request(tick_at=TICK + 2 * MINUTE_MS), first.world)
    assert third.refusal == ""
    assert count_consistent_mints(machine, third.world, desk) == 2
    coins = [entry.coin for entry in machine.entries() if entry.coin]
    assert len(coins) == len(set(coins)) == 2


@pytest.mark.parametrize(
    ("chain", "told"),
    [
        ({"deposit": 0}, "balance is too low"),
        ({"gas_coins": 0}, "has no SUI on testnet to pay for gas"),
        ({"gas": 1_000}, "has 1,000 MIST, and gas_budget is 50,000,000"),
        ({"chain_id": MAINNET[0]}, "the node belongs to mainnet, and the setting sui_network says testnet"),
    ],
    ids=["empty manager", "no gas", "little gas", "mainnet"],
)
def test_what_is_missing_is_reported_as_a_refusal_and_nothing_is_signed(
    new_machine: MachineFactory, chain: dict[str, Any], told: str
):
    machine, injector = new_machine(**chain), FaultInjector()

    placed = submit_order(machine, mint_request(), injector=injector)

    assert told in placed.refusal
    assert "signer.sign" not in injector.calls
    assert [entry.state for entry in machine.entries()] == ["void"]


@pytest.mark.parametrize(
    ("chain", "told", "hint"),
    [
        ({"deposit": 0}, "holds nothing to trade with", "deposit"),
        ({"gas_coins": 0}, "has no SUI", "send some SUI to 0x"),
        ({"chain_id": MAINNET[1]}, "the node belongs to mainnet", "sui_node_url"),
    ],
)
def test_a_check_before_the_first_order_shows_what_is_missing(
    new_machine: MachineFactory, chain: dict[str, Any], told: str, hint: str
):
    with new_machine(**chain).process() as broker, pytest.raises(UserError, match=told) as caught:
        run(broker.sender.check())

    assert hint in caught.value.hint


def test_a_check_of_a_sound_writer_shows_what_the_manager_holds(new_machine: MachineFactory):
    with new_machine().process() as broker:
        assert run(broker.sender.check()) == 100 * QUOTE


def test_only_yes_and_no_of_markets_of_the_chain_are_traded(new_machine: MachineFactory):
    machine = new_machine()
    request = mint_request()
    wide = replace(request, order=replace(request.order, contract=Contract(ORACLE, STRIKE, STRIKE + FLOAT)))
    named = replace(request, order=replace(request.order, contract=Contract("BTC-hourly", STRIKE, None)))

    assert "only YES and NO" in submit_order(machine, wide).refusal
    assert "only YES and NO" in submit_order(machine, named).refusal
    assert machine.entries() == []


def test_a_cancel_is_refused(new_machine: MachineFactory):
    with new_machine().process() as broker:
        assert "cannot be cancelled" in run(broker.cancel(fresh_desk(), "o1", TICK)).refusal


def test_a_market_that_has_expired_is_refused_before_anything_is_signed(new_machine: MachineFactory):
    machine = new_machine()
    machine.clock[0] += 200 * HOUR_MS
    injector = FaultInjector()

    placed = submit_order(machine, mint_request(), injector=injector)

    assert "settled" in placed.refusal
    assert "signer.sign" not in injector.calls
