"""The life of a market: created, activated, pushed to, expired, settled, paid out and forgotten."""

from dataclasses import replace
from decimal import Decimal

import pytest

from pitboss.core import codec
from pitboss.core.instant import HOUR_MS, MINUTE_MS
from pitboss.venues.predict import aborts
from pitboss.venues.predict.aborts import Abort
from pitboss.venues.predict.quote import Quote, amount
from pitboss.venues.predict.schedule import listed_slots
from pitboss.venues.predict.state import (
    ACCOUNT,
    QUOTE,
    Contract,
    Grid,
    MarketTerms,
    PredictWorld,
    open_markets,
    open_world,
    status,
)
from pitboss.venues.predict.surface import synthetic
from pitboss.venues.predict.svi import FLOAT, Svi, flat
from pitboss.venues.predict.trade import (
    ContractTrade,
    WorldStep,
    mint,
    mint_spend,
    preview,
    quote_mint,
    redeem,
    redeem_settled,
    weigh_mint,
    weigh_spend,
)
from pitboss.venues.predict.world import advance, list_markets, push, sweep
from venues.predict.scene import (
    HOURLY,
    LATER,
    NOW,
    SMILE,
    SPOT,
    between,
    money,
    no,
    venue,
    with_account,
    with_open_market,
    world_after,
    yes,
)
from venues.predict.single_markets import activate, create_oracle, push_price, push_svi, set_ask_bounds

EXPIRY = NOW + HOUR_MS


def assert_aborted(step: WorldStep, abort: Abort, world: PredictWorld) -> None:
    """Nothing changed and the receipt says why."""
    assert step.abort == abort
    assert step.world is world
    (receipt,) = step.receipts
    assert receipt.kind == "rejected"
    assert receipt.facts["abort"] == abort.name


def quote_of(world: PredictWorld, contract: Contract, now: int = NOW) -> Quote:
    found = preview(world, contract, now)
    assert isinstance(found, Quote), found
    return found


def assert_traded(found: ContractTrade | Abort) -> ContractTrade:
    assert isinstance(found, ContractTrade), found
    return found


def test_a_market_is_inactive_then_active_then_pending_then_settled() -> None:
    world = world_after(create_oracle(open_world(QUOTE, QUOTE), HOURLY, "BTC", EXPIRY, NOW))
    assert status(world.oracles[HOURLY], NOW) == "inactive"
    world = world_after(activate(world, HOURLY, NOW))
    assert status(world.oracles[HOURLY], EXPIRY - 1) == "active"
    assert status(world.oracles[HOURLY], EXPIRY) == "pending"
    world = world_after(push_price(world, HOURLY, SPOT, SPOT, EXPIRY + 700))
    assert status(world.oracles[HOURLY], EXPIRY + 700) == "settled"
    assert world.oracles[HOURLY].settled_at == EXPIRY + 700


def test_activation_happens_once_and_before_expiry() -> None:
    world = world_after(create_oracle(open_world(QUOTE, QUOTE), HOURLY, "BTC", EXPIRY, NOW))
    assert_aborted(activate(world, HOURLY, EXPIRY), aborts.ORACLE_EXPIRED, world)
    assert_aborted(activate(world, "nothing", NOW), aborts.UNKNOWN, world)
    world = world_after(activate(world, HOURLY, EXPIRY - 1))
    assert_aborted(activate(world, HOURLY, NOW), aborts.ALREADY_ACTIVE, world)


def test_a_market_needs_a_new_name_and_a_sound_grid() -> None:
    world = venue()
    assert_aborted(create_oracle(world, HOURLY, "BTC", EXPIRY, NOW), aborts.BAD_ORACLE, world)
    assert_aborted(create_oracle(world, "x", "BTC", EXPIRY, NOW, Grid(tick=1)), aborts.BAD_ORACLE, world)


def test_the_first_price_at_or_after_expiry_settles_at_its_spot_and_the_next_changes_nothing() -> None:
    world = world_after(push_price(venue(), HOURLY, SPOT + 5, SPOT, EXPIRY - 1))
    assert world.oracles[HOURLY].settlement is None
    step = push_price(world, HOURLY, 64_000 * FLOAT, 1, EXPIRY)
    assert [(receipt.kind, receipt.facts["price"]) for receipt in step.receipts] == [("settled", Decimal(64_000))]
    assert_aborted(push_price(step.world, HOURLY, SPOT, SPOT, EXPIRY + 1), aborts.ORACLE_SETTLED, step.world)


def test_a_surface_is_refused_at_and_after_expiry_and_when_it_is_no_distribution() -> None:
    world = venue()
    world_after(push_svi(world, HOURLY, SMILE, EXPIRY - 1))
    assert_aborted(push_svi(world, HOURLY, SMILE, EXPIRY), aborts.ORACLE_EXPIRED, world)
    assert_aborted(push_svi(world, HOURLY, Svi(1e-7, 0.4, 0.0, 0.02, 0.0005), NOW), aborts.RISING, world)
    assert_aborted(push_svi(world, HOURLY, flat(0.0), NOW), aborts.RISING, world)
    settled = world_after(push_price(world, HOURLY, SPOT, SPOT, EXPIRY))
    assert_aborted(push_svi(settled, HOURLY, SMILE, EXPIRY), aborts.ORACLE_SETTLED, settled)


def test_pushes_out_of_order_or_without_a_price_are_refused() -> None:
    world = venue()
    assert_aborted(push_price(world, HOURLY, SPOT, SPOT, NOW - 1), aborts.OLD_PUSH, world)
    assert_aborted(push_svi(world, HOURLY, SMILE, NOW - 1), aborts.OLD_PUSH, world)
    assert_aborted(push_price(world, HOURLY, 0, SPOT, NOW), aborts.BAD_PRICE, world)
    assert_aborted(push_price(world, HOURLY, SPOT, 0, NOW), aborts.ZERO_FORWARD, world)


@pytest.mark.parametrize(
    ("contract", "settlement", "wins"),
    [
        (yes(63_000), 63_000 * FLOAT + 1, True),
        (yes(63_000), 63_000 * FLOAT, False),
        (no(63_000), 63_000 * FLOAT, True),
        (no(63_000), 63_000 * FLOAT + 1, False),
        (between(63_000, 64_000), 63_000 * FLOAT, False),
        (between(63_000, 64_000), 63_000 * FLOAT + 1, True),
        (between(63_000, 64_000), 64_000 * FLOAT, True),
        (between(63_000, 64_000), 64_000 * FLOAT + 1, False),
    ],
)
def test_a_tie_is_nos_and_a_range_holds_its_upper_end(contract: Contract, settlement: int, wins: bool) -> None:
    world = world_after(mint(venue(), ACCOUNT, contract, QUOTE, NOW))
    before = world.accounts[ACCOUNT].cash
    world = world_after(push_price(world, HOURLY, settlement, settlement, EXPIRY + 5))
    step = redeem_settled(world, ACCOUNT, contract, EXPIRY + 6)
    assert world_after(step).accounts[ACCOUNT].cash - before == (QUOTE if wins else 0)
    assert step.receipts[0].kind == "settled"


def test_a_mint_needs_an_active_market_with_a_price_of_the_last_thirty_seconds() -> None:
    world = venue()
    world_after(mint(world, ACCOUNT, yes(), QUOTE, NOW + 30_000))
    assert_aborted(mint(world, ACCOUNT, yes(), QUOTE, NOW + 30_001), aborts.STALE, world)
    assert_aborted(mint(world, ACCOUNT, yes(), QUOTE, NOW - 1), aborts.STALE, world)
    assert_aborted(mint(world, ACCOUNT, yes(), QUOTE, EXPIRY), aborts.EXPIRED, world)
    settled = world_after(push_price(world, HOURLY, SPOT, SPOT, EXPIRY))
    assert_aborted(mint(settled, ACCOUNT, yes(), QUOTE, EXPIRY), aborts.SETTLED, settled)
    idle = replace(world, oracles={HOURLY: replace(world.oracles[HOURLY], active=False)})
    assert_aborted(mint(idle, ACCOUNT, yes(), QUOTE, NOW), aborts.INACTIVE, idle)


def test_a_mint_off_the_grid_of_nothing_or_while_paused_aborts() -> None:
    world = venue()
    half = Contract(HOURLY, 63_600 * FLOAT + FLOAT // 2, None)
    assert_aborted(mint(world, ACCOUNT, half, QUOTE, NOW), aborts.OFF_GRID, world)
    assert_aborted(mint(world, ACCOUNT, yes(49_999), QUOTE, NOW), aborts.OFF_GRID, world)
    assert_aborted(mint(world, ACCOUNT, between(64_000, 63_000), QUOTE, NOW), aborts.OFF_GRID, world)
    assert_aborted(mint(world, ACCOUNT, Contract(HOURLY, None, None), QUOTE, NOW), aborts.OFF_GRID, world)
    assert_aborted(mint(world, ACCOUNT, yes(), 0, NOW), aborts.NO_QUANTITY, world)
    assert_aborted(mint(world, ACCOUNT, yes(), -5, NOW), aborts.NO_QUANTITY, world)
    assert_aborted(mint(world, ACCOUNT, yes(market_id="no such"), QUOTE, NOW), aborts.UNKNOWN, world)
    paused = replace(world, terms=MarketTerms(paused=True))
    assert_aborted(mint(paused, ACCOUNT, yes(), QUOTE, NOW), aborts.PAUSED, paused)


def test_a_strike_whose_price_is_certain_does_not_quote_and_one_nearly_so_is_out_of_bounds() -> None:
    world = venue()
    assert_aborted(mint(world, ACCOUNT, yes(150_000), QUOTE, NOW), aborts.PRICE_AT_EDGE, world)
    near = with_open_market(world, "short", EXPIRY, svi=Svi(0.00002, 0.002, -0.3, 0.001, 0.004))
    assert_aborted(mint(near, ACCOUNT, yes(60_000, "short"), QUOTE, NOW), aborts.ASK_OUT_OF_BOUNDS, near)
    assert_aborted(mint(near, ACCOUNT, no(60_000, "short"), QUOTE, NOW), aborts.ASK_OUT_OF_BOUNDS, near)


def test_a_market_may_tighten_its_ask_bounds_and_give_them_up_again() -> None:
    world = venue()
    tight = world_after(set_ask_bounds(world, HOURLY, (600_000_000, 900_000_000), NOW))
    assert_aborted(mint(tight, ACCOUNT, yes(), QUOTE, NOW), aborts.ASK_OUT_OF_BOUNDS, tight)
    world_after(mint(world_after(set_ask_bounds(tight, HOURLY, None, NOW)), ACCOUNT, yes(), QUOTE, NOW))
    assert_aborted(set_ask_bounds(world, HOURLY, (1, 900_000_000), NOW), aborts.LOOSER_BOUNDS, world)
    assert_aborted(set_ask_bounds(world, "x", None, NOW), aborts.UNKNOWN, world)


def test_a_mint_beyond_the_balance_aborts() -> None:
    world = venue(cash=QUOTE)
    assert_aborted(mint(world, ACCOUNT, yes(), 2 * QUOTE, NOW), aborts.TOO_LITTLE_CASH, world)
    assert_aborted(mint(world, "stranger", yes(), QUOTE, NOW), aborts.TOO_LITTLE_CASH, world)


def test_the_vault_takes_no_liability_beyond_its_exposure_cap() -> None:
    world = venue(vault=1_000 * QUOTE, cash=10**12)
    largest = 0
    for quantity in range(100 * QUOTE, 4_000 * QUOTE, 100 * QUOTE):
        found = weigh_mint(world, ACCOUNT, no(63_000), quantity, NOW)
        if isinstance(found, ContractTrade):
            largest = quantity
            assert found.vault.total_mtm * 10 <= found.vault.balance * 8
    assert largest > 0
    assert_aborted(mint(world, ACCOUNT, no(63_000), 20_000 * QUOTE, NOW), aborts.EXPOSURE, world)


def test_a_mint_is_quoted_as_if_it_had_been_made_and_a_larger_one_is_never_cheaper() -> None:
    world = venue(vault=10_000 * QUOTE, cash=10**12)
    shown = quote_of(world, yes()).ask
    asks = [assert_traded(quote_mint(world, yes(), size * QUOTE, NOW)).price for size in (1, 10, 100, 1_000, 5_000)]
    assert asks == sorted(asks)
    assert asks[0] >= shown
    assert asks[-1] > shown
    step = mint(world, ACCOUNT, yes(), 5_000 * QUOTE, NOW)
    assert step.receipts[0].facts["price"] == Decimal(asks[-1]).scaleb(-9)


def test_what_a_spend_buys_costs_no_more_than_the_spend_even_where_size_moves_the_price() -> None:
    world = venue(vault=10_000 * QUOTE, cash=10**12)
    for spend in (1, 7, QUOTE, 50 * QUOTE, 3_000 * QUOTE):
        found = weigh_spend(world, ACCOUNT, yes(), spend, NOW)
        if isinstance(found, ContractTrade):
            assert found.amount <= spend
            assert found.amount >= spend * 98 // 100 - 1
    small = assert_traded(weigh_spend(world, ACCOUNT, yes(), 2 * QUOTE, NOW))
    assert small.quantity == 2 * QUOTE * FLOAT // small.price


def test_minting_moves_exactly_the_cost_to_the_vault_and_redeeming_the_payout_back() -> None:
    world = venue()
    ask = assert_traded(weigh_mint(world, ACCOUNT, yes(), 3 * QUOTE, NOW)).price
    after = world_after(mint(world, ACCOUNT, yes(), 3 * QUOTE, NOW))
    cost = amount(ask, 3 * QUOTE)
    assert after.vault.balance - world.vault.balance == cost
    assert world.accounts[ACCOUNT].cash - after.accounts[ACCOUNT].cash == cost
    assert after.accounts[ACCOUNT].positions[yes().key].cost == cost
    half = world_after(redeem(after, ACCOUNT, yes(), QUOTE, NOW))
    held = half.accounts[ACCOUNT].positions[yes().key]
    assert (held.quantity, held.cost) == (2 * QUOTE, cost - cost // 3)
    gone = world_after(redeem(half, ACCOUNT, yes(), 2 * QUOTE, NOW))
    assert gone.accounts[ACCOUNT].positions == {}
    assert money(gone) == money(world)
    assert gone.vault.balance > world.vault.balance  # the spread stays with the vault
    assert gone.vault.total_mtm == gone.vault.total_max_payout == 0


def test_redeeming_more_than_is_held_aborts() -> None:
    world = world_after(mint(venue(), ACCOUNT, yes(), QUOTE, NOW))
    assert_aborted(redeem(world, ACCOUNT, yes(), QUOTE + 1, NOW), aborts.NO_POSITION, world)
    assert_aborted(redeem(world, ACCOUNT, no(), 1, NOW), aborts.NO_POSITION, world)
    assert_aborted(redeem(world, ACCOUNT, between(63_000, 64_000), 1, NOW), aborts.NO_RANGE, world)
    assert_aborted(redeem(world, ACCOUNT, yes(), 0, NOW), aborts.NO_QUANTITY, world)
    assert_aborted(redeem(world, ACCOUNT, yes(), QUOTE, NOW + 31_000), aborts.STALE, world)
    assert_aborted(redeem(world, ACCOUNT, yes(), QUOTE, EXPIRY), aborts.EXPIRED, world)
    assert_aborted(redeem_settled(world, ACCOUNT, yes(), EXPIRY), aborts.NOT_SETTLED, world)


def test_both_sides_at_once_lose_twice_the_spread() -> None:
    world = venue()
    quote = quote_of(world, yes())
    assert quote.ask + quote.opposite.ask == FLOAT + 2 * quote.spread
    assert quote_of(world, no()) == quote.opposite


def test_a_range_costs_its_two_ends_and_leaves_the_vault_exactly_hedged_against_them() -> None:
    world = venue()
    middle = quote_of(world, between(63_000, 64_000)).fair
    assert middle == quote_of(world, yes(63_000)).fair - quote_of(world, yes(64_000)).fair
    after = world_after(mint(world, ACCOUNT, between(63_000, 64_000), 5 * QUOTE, NOW))
    assert after.vault.total_max_payout == 5 * QUOTE
    gone = world_after(redeem(after, ACCOUNT, between(63_000, 64_000), 5 * QUOTE, NOW))
    assert gone.vault.total_max_payout == gone.vault.total_mtm == 0


def test_of_twins_the_one_with_the_freshest_price_is_the_market() -> None:
    world = with_open_market(venue(), "twin", EXPIRY)
    assert [oracle.id for oracle in open_markets(world, NOW)] == [HOURLY]  # equally fresh: by name
    step = push(world, "BTC", SPOT + FLOAT, NOW + 1_000, silent=(HOURLY,))
    assert [oracle.id for oracle in open_markets(step.world, NOW + 1_000)] == ["twin"]
    assert open_markets(step.world, NOW, "ETH") == ()
    assert open_markets(step.world, EXPIRY) == ()


def test_one_push_serves_every_market_of_the_underlying() -> None:
    world = venue(markets=2)
    step = push(world, "BTC", 64_000 * FLOAT, EXPIRY + 5, {LATER: flat(0.001)}, basis=1_000_000)
    assert [receipt.symbol for receipt in step.receipts] == [HOURLY]
    assert step.world.oracles[HOURLY].settlement == 64_000 * FLOAT
    later = step.world.oracles[LATER]
    assert (later.spot, later.forward) == (64_000 * FLOAT, 64_064 * FLOAT)
    assert (later.svi, later.surfaced_at) == (flat(0.001), EXPIRY + 5)
    assert push(world, "ETH", SPOT, NOW).world == world


def test_a_sweep_pays_everyone_and_forgets_the_market() -> None:
    world = with_account(venue(markets=2), "other", 50 * QUOTE)
    world = world_after(mint(world, ACCOUNT, yes(), 3 * QUOTE, NOW))
    world = world_after(mint(world, "other", no(), 4 * QUOTE, NOW))
    world = world_after(mint(world, "other", between(62_000, 64_000), 2 * QUOTE, NOW))
    world = world_after(mint(world, ACCOUNT, yes(market_id=LATER), QUOTE, NOW))
    before = {name: account.cash for name, account in world.accounts.items()}
    settled = push(world, "BTC", 63_500 * FLOAT, EXPIRY + 9).world
    step = sweep(settled, EXPIRY + 9)
    assert {name: account.cash - before[name] for name, account in step.world.accounts.items()} == {
        ACCOUNT: 3 * QUOTE,
        "other": 2 * QUOTE,
    }
    assert len(step.receipts) == 3
    assert list(step.world.oracles) == [LATER]
    assert list(step.world.vault.books) == [LATER]
    assert step.world.vault.total_mtm == step.world.vault.books[LATER].mtm
    assert step.world.vault.total_max_payout == QUOTE
    assert money(step.world) == money(world)


def test_the_paper_venue_lists_its_schedule_and_never_grows_with_time() -> None:
    world = open_world(1_000_000 * QUOTE, 100 * QUOTE)
    most = 0
    for minute in range(0, 3 * 24 * 60, 15):
        at = NOW + minute * MINUTE_MS
        world = advance(
            world, "BTC", SPOT + minute * FLOAT, at, lambda oracle, at=at: synthetic(0.5, oracle.expiry_at, at)
        ).world
        assert {oracle.expiry_at for oracle in open_markets(world, at)} == {slot.expiry_at for slot in listed_slots(at)}
        assert all(oracle.priced_at == oracle.surfaced_at == at for oracle in open_markets(world, at))
        most = max(most, len(world.oracles))
    assert most < 25
    assert list_markets(world, "BTC", at).world is world


def test_a_world_is_stored_and_read_back_to_the_same_bytes() -> None:
    world = world_after(mint(venue(markets=2), ACCOUNT, between(63_000, 64_000), 5 * QUOTE, NOW))
    world = world_after(mint_spend(world, ACCOUNT, no(), 2 * QUOTE, NOW))
    again = codec.parse(PredictWorld, codec.loads(codec.dumps(world)))
    assert again == world
    assert codec.dumps(again) == codec.dumps(world)
    assert codec.dumps(world_after(mint(again, ACCOUNT, yes(), 9, NOW))) == codec.dumps(
        world_after(mint(world, ACCOUNT, yes(), 9, NOW))
    )
